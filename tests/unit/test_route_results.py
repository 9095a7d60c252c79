"""What `simulate`, `submit` and the views of jobs, pools and routers return: the JSON of the commands, rows, tables."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from chipwise import api
from chipwise.cli.main import app
from chipwise.errors import ChipwiseError, InputError
from chipwise.route.explain_job import explain_job
from chipwise.route.job_view import change_jobs, list_jobs, show_job, wait_for_jobs
from chipwise.route.load import load_jobs, read_pools
from chipwise.route.pool_view import drain_pool, list_pools, resume_pool
from chipwise.route.render import render
from chipwise.route.router.service import ServiceOptions
from chipwise.route.router.status import router_status


def command(*arguments):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture
def gavel(tmp_path):
    (tmp_path / "jobs.csv").write_text(
        "job_id,arrival_s,workload,scale_factor,total_steps\na,0,A,1,1000\nb,10,A,1,500\nc,20,A,9,500\n"
    )
    (tmp_path / "throughput.csv").write_text("workload,accelerator,scale_factor,steps_per_s\nA,v100,1,2\nA,k80,1,1\n")
    (tmp_path / "cluster.csv").write_text("accelerator,count,usd_per_hour\nv100,2,3.6\nk80,2,0.4\n")
    return tmp_path


def without_cpu(record):
    for figures in record["policies"].values():
        assert figures.pop("cpu_s") >= 0
    return record


def test_a_simulation_is_the_json_of_its_command(gavel):
    simulation = api.simulate(gavel, policy=["fastest", "cheapest"])
    said = command("simulate", "--gavel-trace", gavel, "--policy", "fastest,cheapest", "-o", "json")
    record = without_cpu(simulation.to_dict())
    assert without_cpu(said) == record and list(record["policies"]) == ["fastest", "cheapest"]
    assert record["policies"]["cheapest"]["refused_jobs"][0]["job"] == "c"
    assert record["policies"]["fastest"]["cost_usd"] == simulation.measures[0].cost_usd


def test_a_simulation_has_a_row_a_policy_and_a_row_a_job(gavel):
    simulation = api.simulate(gavel, policy="fastest,cheapest")
    rows, jobs = simulation.flat_rows(), simulation.job_rows()
    assert [row["policy"] for row in rows] == ["fastest", "cheapest"]
    assert [row["completed"] for row in rows] == [2, 2] and rows[0]["utilization_v100"] > 0 == rows[1][
        "utilization_v100"
    ]
    assert [(job["policy"], job["job"]) for job in jobs] == [(p, j) for p in ("fastest", "cheapest") for j in "abc"]
    assert jobs[0]["pools"] == "v100" and jobs[2]["end_s"] is None and "9 accelerators" in jobs[2]["refused"]


def test_the_best_of_a_simulations_column_is_marked_for_people(gavel):
    page = api.simulate(gavel, policy="fastest,cheapest")._repr_html_()
    assert "*</td>" in page and "refused 1:" in page and "kWh" not in page  # no power is known
    assert "*" not in str(api.simulate(gavel, policy="fastest"))


def test_a_gavel_trace_has_its_own_pools_and_other_traces_need_some(gavel):
    with pytest.raises(ChipwiseError, match="can't combine speed with a Gavel trace"):
        api.simulate(gavel, speed={"v100": 2.0})
    with pytest.raises(InputError, match="pools: missing"):
        api.simulate("examples/traces/mixed-day.yaml")


POOLS = "examples/pools/local.yaml"


@pytest.fixture
def ledger(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture
def submission(ledger):
    return api.submit("examples/jobs/hello.yaml", POOLS, ledger=ledger)


def without_times(value):
    """A document without what differs between two runs."""
    if isinstance(value, dict):
        return {
            key: without_times(item) for key, item in value.items() if key not in ("submitted", "at", "ledger", "id")
        }
    return [without_times(item) for item in value] if isinstance(value, list) else value


def test_a_submission_is_the_json_of_its_command(submission, tmp_path):
    said = command(
        "jobs", "submit", "examples/jobs/hello.yaml", "--pools", POOLS, "--ledger", tmp_path / "b", "-o", "json"
    )
    assert without_times(said) == without_times(submission.to_dict())
    (job,) = said["jobs"]
    assert job["first"] == "cpu" and job["state"] == "pending" and job["deadline"] is None
    assert job["options"][0]["duration_seconds"]["value"] == submission.jobs[0].first.seconds.value


def test_submitted_jobs_are_rows_of_pandas_and_tables_of_a_notebook(submission):
    (row,) = submission.flat_rows()
    assert row["name"] == submission.jobs[0].row.job.name and row["first"] == "cpu" and "failed_at" not in row
    assert "if every pool were free" in submission._repr_html_() and "can run in" in str(submission)


def test_views_of_jobs_are_the_json_of_their_commands(submission, ledger):
    jobs, sheet, why = list_jobs(str(ledger)), show_job(str(ledger), "1"), explain_job(str(ledger), "1")
    assert command("jobs", "list", "--ledger", ledger, "-o", "json") == jobs.to_dict()
    assert command("jobs", "show", "1", "--ledger", ledger, "-o", "json") == sheet.to_dict()
    assert command("jobs", "explain", "1", "--ledger", ledger, "-o", "json") == why.to_dict()
    assert tuple(jobs.flat_rows()[0]) == jobs.CSV_HEADER and list_jobs(str(ledger), owner="nobody").flat_rows() == []
    assert jobs.totals == {"pending": 1} and jobs.flat_rows()[0]["state"] == "pending"
    assert {k: v for k, v in why.to_dict().items() if k in sheet.to_dict()} == {
        **sheet.to_dict(),
        "command": "jobs explain",
    }
    assert any("no router has run" in line for line in why.to_dict()["now"])
    assert "What it would take" in sheet._repr_html_() and "What happened" in why._repr_html_()


def test_changed_and_waited_jobs_name_their_commands(submission, ledger):
    cancelled = change_jobs(str(ledger), "cancel", ["1"])
    waited = wait_for_jobs(str(ledger), ["1"])
    assert [cancelled.to_dict()["command"], waited.to_dict()["command"]] == ["jobs cancel", "jobs wait"]
    assert waited.over and not waited.succeeded and "totals" not in waited.to_dict()
    assert change_jobs(str(ledger), "retry", ["1"]).to_dict()["command"] == "jobs retry"


def test_jobs_of_an_unknown_state_are_refused(submission, ledger):
    with pytest.raises(InputError, match="state: 'done' is not accepted; expected one of pending, running"):
        list_jobs(str(ledger), state="done")


def test_pools_are_the_json_of_their_command_and_drained_with_a_reason(submission, ledger):
    pools = read_pools(POOLS)
    assert (
        command("pools", "--pools", POOLS, "--ledger", ledger, "-o", "json") == list_pools(pools, str(ledger)).to_dict()
    )
    drained = drain_pool(pools, "v5e", "new drivers", str(ledger))
    rows = {row["name"]: row for row in drained.flat_rows()}
    assert rows["v5e"]["drained"] and rows["v5e"]["reason"] == "new drivers" and not rows["cpu"]["drained"]
    assert rows["cpu"]["free"] is rows["cpu"]["answers"] is None and "shapes" not in rows["cpu"]  # no backend was asked
    assert "drained: new drivers" in drained._repr_html_() and "not asked for their free capacity" in str(drained)
    assert not any(status.drained for status in resume_pool(pools, "v5e", str(ledger)).pools)
    with pytest.raises(InputError, match=r"^reason: "):
        drain_pool(pools, "v5e", " ", str(ledger))


def test_the_status_of_routing_is_the_json_of_its_command(submission, ledger):
    status = router_status(str(ledger))
    said = command("router", "status", "--ledger", ledger, "-o", "json")
    assert without_times(said).keys() == without_times(status.to_dict()).keys()
    assert said["command"] == "router status" and said["jobs"] == {"pending": 1} and said["oldest_pending_job"] == "1"
    assert said["oldest_wait_seconds"] >= status.oldest_wait_s >= 0 and said["inconsistencies"] == []
    assert "No router has run" in status._repr_html_() and "has waited for longest" in str(status)


def test_jobs_that_came_together_have_waited_equally_long(submission, ledger):
    status = router_status(str(ledger))
    together = str(replace(status, as_old=19))
    assert "job 1 and 19 others submitted with it" in together and "has waited for longest" not in together
    assert status.as_old == 0 and "has waited for longest" in str(status)


def test_a_rendering_is_text_to_the_letter_and_a_row_a_pool():
    pools = read_pools("examples/pools/slurm.yaml")
    rendering = render(load_jobs("examples/jobs/fallback.yaml", 0.0), pools, 0.0)
    assert [row["pool"] for row in rendering.flat_rows()] == [one.option.pool for one in rendering.rendered]
    assert all(one.text.rstrip() in rendering.text() for one in rendering.rendered) and "sbatch" in str(rendering)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"lease": "3s"}, "lease: '3s' is not accepted; expected at least twice the interval of 2s"),
        ({"interval": "2h"}, "^interval: "),
        ({"keep": "1s"}, "^keep: "),
        ({"weights": ["cost"]}, "weights: 'cost' is not accepted; expected a name and a number"),
        ({"once": True, "until_idle": True}, "can't combine once with until_idle"),
    ],
)
def test_options_of_a_router_that_make_no_sense_are_refused(changes, words):
    options = {"policy": "balanced", "interval": "2s", "lease": "30s", "keep": "forever", "weights": {"cost": 2}}
    options |= {"once": False, "until_idle": False}
    assert ServiceOptions.read(**options).keep_s == float("inf") and ServiceOptions.read(**options).weights == {
        "cost": 2
    }
    with pytest.raises(ChipwiseError, match=words):
        ServiceOptions.read(**options | changes)
