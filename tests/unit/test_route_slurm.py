"""What Slurm is asked for, word for word, and what is read from its answers: recorded ones of 22.05, and newer forms."""

import json
import shlex
import time
from dataclasses import replace
from pathlib import Path

import pytest
from route_cases import pool

from chipwise.errors import InputError
from chipwise.predict.estimate import Estimate
from chipwise.route.backend import BackendDown, BackendRefused, Launch
from chipwise.route.backends import shim
from chipwise.route.backends.slurm.backend import SlurmBackend, make, pool_capacity
from chipwise.route.backends.slurm.read import (
    STATES,
    SlurmNode,
    jobs_from_json,
    jobs_from_table,
    nodes_from_json,
    nodes_from_table,
    state_of,
)
from chipwise.route.backends.slurm.request import request_of, sbatch
from chipwise.route.backends.slurm.rest import Rest, job_of
from chipwise.route.job import Checkpoint, Job, Variant
from chipwise.route.option import Option

ANSWERS = Path(__file__).parent / "slurm_answers"
H200 = pool(
    "h200",
    32,
    backend="slurm",
    chip="h200",
    family="gpu",
    unit=8,
    max_seconds=86400.0,
    address=(
        ("partition", "gpu"),
        ("account", "research"),
        ("qos", "high"),
        ("reservation", "maint"),
        ("constraint", "nvlink&h200"),
        ("cpus", "96"),
        ("memory", "512G"),
        ("container", "pyxis"),
        ("mounts", "/data:/data:ro"),
        ("secrets", "HF_TOKEN,LD_PRELOAD,SLURM_JWT,A B"),
        ("exclusive", "true"),
    ),
)


def launch(at=H200, chips=16, restartable=True, **more):
    """An attempt that is not written anywhere."""
    variant = Variant(at.family, at.family, chips, command=("train", "--lr", "3e-4"), **more)
    job = Job("llama; rm -rf /", (variant,), checkpoint=Checkpoint(restartable, 600.0, "/ckpt/llama"))
    return Launch(
        "l0-17-2",
        2,
        "17",
        job,
        variant,
        at,
        Option(at.name, at.family, chips, "", Estimate(1, 1, 1, "measured"), 1, 1),
        Path("/shared/attempts/l0-17-2"),
        {"CHIPWISE_JOB": "llama; rm -rf /"},
        3600.0,
    )


def test_slurms_signal_is_never_before_the_jobs_own_limit_though_it_may_be_a_minute_early():
    request = request_of(launch(), {})
    assert request.seconds - request.warning - 60 >= launch().time_limit


def test_a_gang_in_containers_is_asked_for_word_for_word():
    request = request_of(launch(image="nvcr.io#nvidia/jax:24.10"), {})
    assert sbatch(request) == [
        "sbatch",
        "--parsable",
        "--job-name=l0-17-2",
        "--comment=chipwise l0-17-2",
        "--partition=gpu",
        "--account=research",
        "--qos=high",
        "--reservation=maint",
        "--constraint=nvlink&h200",
        "--mem=512G",
        "--nodes=2",
        "--ntasks=2",
        "--ntasks-per-node=1",
        "--gres=gpu:h200:8",
        "--cpus-per-task=96",
        "--exclusive",
        "--time=0-01:02:30",
        "--signal=B:TERM@90",
        "--requeue",
        "--dependency=singleton",
        "--open-mode=append",
        "--export=ALL",
        "--chdir=/shared/attempts/l0-17-2",
        "--output=/shared/attempts/l0-17-2/slurm.log",
    ]
    assert request.before == (
        "srun",
        "--nodes=2",
        "--ntasks=2",
        "--ntasks-per-node=1",
        "--kill-on-bad-exit=1",
        "--export=ALL",
        "--cpus-per-task=96",
        "--container-image=nvcr.io#nvidia/jax:24.10",
        "--container-mounts=/shared/attempts/l0-17-2:/shared/attempts/l0-17-2,/ckpt/llama:/ckpt/llama,/data:/data:ro",
    )
    assert request.environment == {
        "CHIPWISE_PYTHON": "python3",
        "CHIPWISE_FOLDER": "/shared/attempts/l0-17-2",
        "CHIPWISE_POOL": "h200",
    }


def test_a_job_that_is_not_restartable_is_never_started_again():
    request = request_of(launch(restartable=False), {})
    assert "--no-requeue" in sbatch(request) and request.environment["CHIPWISE_ONCE"] == "1"


@pytest.mark.parametrize(
    ("image", "name"),
    [("jax:24", "docker://jax:24"), ("/images/jax.sif", "/images/jax.sif"), ("oras://site/jax", "oras://site/jax")],
)
def test_apptainer_gets_the_image_by_its_own_name(image, name):
    at = replace(H200, address=(("container", "apptainer"),))
    assert request_of(launch(at, 8, image=image), {}).before == (
        "apptainer",
        "exec",
        "--nv",
        "--bind=/shared/attempts/l0-17-2:/shared/attempts/l0-17-2",
        "--bind=/ckpt/llama:/ckpt/llama",
        name,
    )


def test_chips_that_are_cpus_are_asked_for_as_such():
    at = pool("hosts", 64, backend="slurm")
    words = sbatch(request_of(launch(at, 12), {}))
    assert "--cpus-per-task=12" in words and not [w for w in words if w.startswith("--gres")]


def test_a_render_shows_the_command_the_script_and_what_runs(tmp_path):
    backend = SlurmBackend("l0", lambda a: tmp_path / a, {"conf": "/etc/slurm/slurm.conf"})
    text = backend.render(launch(image="jax:24", secrets=("HF_TOKEN",)))
    command = text[text.index("sbatch ") : text.index(" <<'SCRIPT'")]
    assert shlex.split(command.replace("\\\n", "")) == sbatch(request_of(launch(image="jax:24"), {}))
    assert 'exec "$CHIPWISE_PYTHON" -I -S "$CHIPWISE_FOLDER/shim.py" "$CHIPWISE_FOLDER" "$SLURM_JOB_ID"' in text
    assert json.loads(text.split("# launch.json\n")[1].split("\n\n")[0])["argv"] == ["train", "--lr", "3e-4"]
    assert "# HF_TOKEN: from the router's environment" in text and '"--container-image=jax:24"' in text


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: launch(replace(H200, address=()), image="jax"), "doesn't say how images run there"),
        (lambda: launch(image="--help"), "no name of an image"),
        (lambda: launch(secrets=("HF_TOKEN",)), "no HF_TOKEN"),
        (lambda: launch(secrets=("LD_PRELOAD",)), "no variable of that name"),
        (lambda: launch(secrets=("SLURM_JWT",)), "no variable of that name"),
        (lambda: launch(secrets=("A B",)), "no variable of that name"),
        (lambda: replace(launch(), attempt="l0;1"), "letters, digits and dashes"),
        (lambda: replace(launch(image="x"), folder=Path("/a,b")), "can't be mounted"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(made, words):
    with pytest.raises(BackendRefused, match=words):
        request_of(made(), {})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("partitions", "gpu"),
        ("gres", "gpu:h200:8,tpu"),
        ("chips_per_node", "x"),
        ("container", "docker"),
        ("qos", "a\nb"),
        ("timeout", "0"),
        ("rest", "ftp://x"),
        ("rest", "http://me:secret@host"),
    ],
)
def test_an_address_that_cannot_be_meant_is_named(key, value, tmp_path):
    with pytest.raises(InputError, match=key) as error:
        make("slurm", [replace(H200, address=((key, value),))], tmp_path, "l0")
    assert "secret@" not in str(error.value)


def test_pools_of_one_cluster_agree_on_how_it_is_reached(tmp_path):
    two = [replace(H200, name=n, address=(("conf", f"/etc/{n}.conf"),)) for n in ("a", "b")]
    with pytest.raises(InputError, match=r"pools\.b\.address\.conf"):
        make("slurm", two, tmp_path, "l0")
    assert make("slurm", two[:1], tmp_path, "l0").folder_of("x") == tmp_path / "attempts" / "x"


def test_slurmrestd_gets_the_same_request():
    request = request_of(launch(replace(H200, address=H200.address[:-1]), image="jax"), {"PATH": "/bin"})
    assert job_of(request) == {
        "partition": "gpu",
        "account": "research",
        "qos": "high",
        "reservation": "maint",
        "constraints": "nvlink&h200",
        "memory_per_node": 512 * 1024,
        "name": "l0-17-2",
        "comment": "chipwise l0-17-2",
        "nodes": 2,
        "tasks": 2,
        "tasks_per_node": 1,
        "dependency": "singleton",
        "open_mode": "append",
        "gres": "gpu:h200:8",
        "cpus_per_task": 96,
        "time_limit": 63,
        "requeue": True,
        "current_working_directory": "/shared/attempts/l0-17-2",
        "standard_output": "/shared/attempts/l0-17-2/slurm.log",
        "environment": dict(request.environment),
    }
    with pytest.raises(BackendRefused, match="exclusive"):
        job_of(request_of(launch(), {}))


def test_slurmrestd_that_is_not_there_is_down(tmp_path):
    with pytest.raises(BackendDown, match="No such file"):
        Rest(f"unix:{tmp_path}/none", 1.0).jobs()


# answers


def test_recorded_jobs_are_read_the_same_from_json_and_from_the_table():
    jobs = jobs_from_json((ANSWERS / "squeue-22.05.json").read_text(), "squeue")
    assert [(j.name, j.state, j.exit_code, j.nodes) for j in jobs] == [
        ("u-1-1", "COMPLETED", 0, "v5e-0"),
        ("u-2-1", "FAILED", 3, "v5e-0"),
        ("u-3-1", "CANCELLED", 143, "v5e-1"),
        ("u-4-1", "NODE_FAIL", 143, "v5e-0"),
        ("u-5-1", "RUNNING", 0, "h200-[0-1]"),
        ("u-6-1", "PENDING", 0, ""),
    ]
    table = jobs_from_table((ANSWERS / "squeue-22.05.txt").read_text(), "squeue")
    assert sorted(table, key=lambda j: j.id) == jobs


def test_recorded_nodes_are_read_the_same_from_json_and_from_the_table():
    nodes = nodes_from_json((ANSWERS / "sinfo-22.05.json").read_text(), "sinfo")
    assert [(n.name, n.usable, n.chips("gpu:h200"), n.chips("tpu")) for n in nodes] == [
        ("h200-0", True, (8, 8), (0, 0)),
        ("h200-1", True, (8, 8), (0, 0)),
        ("v5e-0", False, (0, 0), (4, 0)),
        ("v5e-1", True, (0, 0), (4, 0)),
    ]
    table = nodes_from_table((ANSWERS / "sinfo-22.05.txt").read_text(), "sinfo")
    assert sorted(table, key=lambda n: n.name) == nodes


def test_an_empty_list_with_an_error_is_no_answer():
    with pytest.raises(BackendDown, match="Failed while looking for jobs"):
        jobs_from_json((ANSWERS / "squeue-22.05-away.json").read_text(), "squeue --json")


def test_newer_forms_of_numbers_and_states_are_read():
    """As the OpenAPI specification of Slurm 23.11 and 24.05 (v0.0.40) has them."""
    row = {
        "job_id": 7,
        "name": "l0-1-1",
        "job_state": ["NODE_FAIL", "COMPLETING"],
        "user_id": 1000,
        "state_reason": "None",
        "restart_cnt": 2,
        "nodes": "n1",
        "start_time": {"set": True, "infinite": False, "number": 17},
        "end_time": {"set": False, "infinite": False, "number": 0},
        "exit_code": {
            "status": ["SIGNALED"],
            "return_code": {"set": False, "infinite": False, "number": 0},
            "signal": {"id": {"set": True, "infinite": False, "number": 9}, "name": "KILL"},
        },
    }
    (job,) = jobs_from_json(json.dumps({"jobs": [row], "errors": [], "warnings": []}), "squeue")
    assert (job.state, job.exit_code, job.started, job.ended, job.restarts) == ("COMPLETING", 137, 17.0, None, 2)
    assert nodes_from_json('{"sinfo": [], "errors": []}', "sinfo") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        '{"jobs": {}}',
        '{"jobs": [7]}',
        '{"jobs": [{"job_id": "x"}]}',
        '{"jobs": [{"job_id": 1, "name": "a", "job_state": "NEW_STATE"}]}',
        '{"jobs": [{"job_id": true, "name": "a", "job_state": "RUNNING"}]}',
        "\x1b[2Jslurm: error",
        '{"jobs": [{"job_id": Infinity, "name": "a", "job_state": "RUNNING"}]}',
        '{"jobs": [{"job_id": 1, "name": "a", "job_state": "FAILED", "exit_code": -Infinity}]}',
        '{"jobs": [{"job_id": 1, "name": "a", "job_state": "FAILED", "end_time": NaN}]}',
        '{"jobs": [{"job_id": 1, "name": "a", "job_state": "RUNNING", "restart_cnt": 1e999}]}',
        '{"jobs": ' + "[" * 100_000,
    ],
)
def test_nonsense_is_told_in_one_printable_line(text):
    with pytest.raises(BackendDown) as error:
        jobs_from_json(text, "squeue --json")
    assert str(error.value).startswith("slurm: squeue --json") and str(error.value).isprintable()


def test_a_table_cut_short_is_no_answer():
    whole = (ANSWERS / "squeue-22.05.txt").read_text()
    with pytest.raises(BackendDown, match="can't be read"):
        jobs_from_table(whole[: len(whole) // 2 + 100], "squeue --Format")


def test_every_state_of_slurm_has_a_meaning():
    """squeue(1) of 22.05, JOB STATE CODES."""
    for name in (
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "CONFIGURING",
        "COMPLETING",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PENDING",
        "PREEMPTED",
        "RUNNING",
        "RESV_DEL_HOLD",
        "REQUEUE_FED",
        "REQUEUE_HOLD",
        "REQUEUED",
        "RESIZING",
        "REVOKED",
        "SIGNALING",
        "SPECIAL_EXIT",
        "STAGE_OUT",
        "STOPPED",
        "SUSPENDED",
        "TIMEOUT",
    ):
        assert state_of([name]) == name
    ours = {name: state for name, (state, _) in STATES.items()}
    assert {ours[n] for n in ("NODE_FAIL", "PREEMPTED", "BOOT_FAIL")} == {"lost"}
    assert {ours[n] for n in ("TIMEOUT", "OUT_OF_MEMORY", "DEADLINE")} == {"failed"}


# what a job's end means


def job_row(job, state, name="l0-1-1", **more):
    """A job in squeue's JSON."""
    return {"job_id": job, "name": name, "job_state": state, "user_id": 0, "nodes": "n1", "exit_code": 0, **more}


class Shown:
    """A link that shows given jobs."""

    def __init__(self, *rows):
        self.rows = rows

    def jobs(self):
        return jobs_from_json(json.dumps({"jobs": self.rows, "errors": []}), "squeue")


def shown(folder, *rows):
    """What a backend makes of jobs."""
    return SlurmBackend("l0", lambda a: folder / a, link=Shown(*rows)).list()


def leave(folder, by="7", exit_code=None, told=0, reason=""):
    """A claim, and an end where there is a status."""
    (folder / "l0-1-1").mkdir(exist_ok=True)
    (folder / "l0-1-1" / "claim").write_text(json.dumps({"by": by, "at": 1.0}))
    if exit_code is not None:
        (folder / "l0-1-1" / "end").write_text(
            json.dumps({"by": by, "exit_code": exit_code, "started": 1.0, "ended": 2.0, "told": told, "reason": reason})
        )


@pytest.mark.parametrize(
    ("state", "code", "found"),
    [
        ("COMPLETED", 0, ("succeeded", 0)),
        ("FAILED", 3, ("failed", 3)),
        ("NODE_FAIL", 143, ("lost", 143)),
        ("NODE_FAIL", 0, ("succeeded", 0)),
        ("CANCELLED", 143, ("cancelled", 143)),
        ("CANCELLED", 0, ("succeeded", 0)),
        ("TIMEOUT", 143, ("failed", 143)),
        ("PREEMPTED", 143, ("lost", 143)),
        ("RUNNING", 0, ("running", None)),
        ("COMPLETING", 0, ("running", None)),
        ("PENDING", 143, ("pending", None)),
    ],
)
def test_the_folder_has_the_status_and_slurm_what_befell_the_job(tmp_path, state, code, found):
    leave(tmp_path, exit_code=code)
    (seen,) = shown(tmp_path, job_row(7, state))
    assert (seen.state, seen.exit_code) == found


def test_a_job_without_an_end_is_not_taken_for_done(tmp_path):
    leave(tmp_path)
    (seen,) = shown(tmp_path, job_row(7, "COMPLETED"))
    assert seen.state == "lost" and "no end" in seen.reason


def test_a_program_has_time_to_end_before_its_job_counts_as_lost(tmp_path):
    leave(tmp_path)
    now = int(time.time())
    for ended, state in ((now, "running"), (now - 120, "lost")):
        (seen,) = shown(tmp_path, job_row(7, "NODE_FAIL", end_time=ended))
        assert seen.state == state and "its node failed" in seen.reason
    leave(tmp_path, exit_code=143, told=15)
    (seen,) = shown(tmp_path, job_row(7, "NODE_FAIL", end_time=now))
    assert seen.state == "lost"


def test_a_job_that_never_reached_its_folder_says_so(tmp_path):
    (seen,) = shown(tmp_path, job_row(7, "FAILED", exit_code=127 << 8, state_reason="NonZeroExitCode"))
    assert seen.state == "failed" and "do the nodes see that folder" in seen.reason
    (seen,) = shown(tmp_path, job_row(7, "FAILED", exit_code=1, state_reason="BadConstraints"))
    assert (seen.state, seen.exit_code) == ("failed", None) and "BadConstraints" in seen.reason


def test_a_job_that_its_node_could_not_launch_is_lost_and_may_be_tried_again(tmp_path):
    (seen,) = shown(tmp_path, job_row(7, "FAILED", exit_code=1, state_reason="JobLaunchFailure"))
    assert (seen.state, seen.exit_code) == ("lost", None) and "could not start it" in seen.reason


def test_a_job_that_found_the_claim_of_another_is_not_the_attempt(tmp_path):
    leave(tmp_path, by="7", exit_code=0)
    rows = job_row(7, "COMPLETED"), job_row(8, "FAILED", exit_code=shim.TAKEN << 8), job_row(9, "PENDING")
    assert [(s.backend_id, s.state) for s in shown(tmp_path, *rows)] == [("7", "succeeded"), ("9", "pending")]


def test_a_second_start_of_what_must_run_once_is_a_loss(tmp_path):
    leave(tmp_path)
    (seen,) = shown(tmp_path, job_row(7, "FAILED", exit_code=shim.ONCE << 8, restart_cnt=1))
    assert seen.state == "lost" and "not restartable" in seen.reason


def test_jobs_of_other_ledgers_are_not_ours(tmp_path):
    assert (
        shown(
            tmp_path, job_row(7, "RUNNING", "l00-1-1"), job_row(8, "RUNNING", "l1-1-1"), job_row(9, "RUNNING", "bash")
        )
        == []
    )


@pytest.mark.parametrize(
    ("more", "room"),
    [
        ({}, (24, 12, 8)),
        ({"unit": 8}, (24, 8, 8)),
        ({"count": 12}, (12, 12, 8)),
        ({"count": 8}, (8, 8, 8)),
        ({"address": (("partition", "b"),)}, (8, 0, 0)),
        ({"address": (("constraint", "x&y"),)}, (8, 8, 0)),
        ({"address": (("constraint", "[x*2&y]"),)}, (24, 12, 8)),
        ({"address": (("gres", "gpu"),)}, (24, 12, 8)),
    ],
)
def test_room_is_counted_by_partition_feature_and_unit(more, room):
    def node(name, used, partition, features, usable=True):
        return SlurmNode(
            name, usable, "", frozenset({partition}), frozenset(features), {"gpu:h200": 8}, {"gpu:h200": used}
        )

    nodes = [
        node("n0", 4, "a", ()),
        node("n1", 0, "a", ("x", "y")),
        node("n2", 8, "b", ()),
        node("n3", 0, "a", (), False),
    ]
    at = pool("p", **{"count": 100, "backend": "slurm", "chip": "h200", "family": "gpu", **more})
    found = pool_capacity(at, nodes)
    assert (found.total, found.free, found.down) == room


def test_a_drained_node_counts_as_down_and_is_excluded_by_name(tmp_path):
    avoiding = replace(H200, avoid=("n0", "n3"))
    request = request_of(launch(avoiding))
    assert "--exclude=n0,n3" in sbatch(request)
    assert not any(word.startswith("--exclude") for word in sbatch(request_of(launch())))
    nodes = [
        SlurmNode(f"n{n}", True, "", frozenset({"gpu"}), frozenset({"nvlink", "h200"}), {"gpu:h200": 8})
        for n in range(3)
    ]
    found = pool_capacity(replace(avoiding, count=100), nodes)
    assert (found.total, found.free, found.down) == (16, 16, 8)


def test_the_shim_stands_alone():
    assert "chipwise" not in {
        line.split()[1].split(".")[0]
        for line in Path(shim.__file__).read_text().splitlines()
        if line.startswith(("import ", "from "))
    }
