"""Job and pools files through the command line: what is bad is one line and leaves nothing behind; the demo runs."""

import json
import os
import subprocess
import sys

import pytest
from command import ROOT, chipwise, good

from patience import PATIENCE_S

JOB = "name: x\ncommand: [echo, hello]\nestimates: {cpu: 1s}\n"
POOLS = "pools:\n  - {name: cpu, backend: local, chip: cpu, count: 1}\n"


@pytest.fixture
def place(tmp_path):
    """A folder with a good job and good pools, and the environment of a ledger of its own."""
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "pools.yaml").write_text(POOLS)
    told = {
        **os.environ,
        "CHIPWISE_DATA": str(tmp_path / "data"),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "CHIPWISE_LEDGER": str(tmp_path / "ledger.db"),
        "CHIPWISE_POOLS": str(tmp_path / "pools.yaml"),
    }
    return tmp_path, told


def refused(place, *arguments):
    folder, told = place
    done = chipwise(*arguments, cwd=folder, env=told)
    assert done.returncode == 2 and done.stdout == ""
    [line] = done.stderr.splitlines()
    assert line.startswith("chipwise: ")
    assert not (folder / "ledger.db").exists()
    return line


@pytest.mark.parametrize("file", ["job", "pools"])
def test_the_schemas_are_printed_as_they_are_committed(file):
    printed = good("schema", file)
    assert json.loads(printed)["title"] == f"chipwise {file}"
    assert printed == (ROOT / f"src/chipwise/route/data/{file}.schema.json").read_text(encoding="utf-8")


def test_an_unknown_schema_is_refused():
    done = chipwise("schema", "jobs")
    assert done.returncode == 2 and "one of workload, chip, bench, demand, job, pools" in done.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            JOB.replace("[echo, hello]", "echo hello"),
            "command: 'echo hello' is not accepted; expected a list such as [python, train.py]; no shell reads it",
        ),
        (JOB.replace("estimates", "estimtes"), "did you mean estimates"),
        (JOB + "environment: {HF_TOKEN: hunter2secret}\n", "environment: 'HF_TOKEN' is not accepted"),
        (JOB + "deadline: 2001-01-01T00:00Z\n", "a time that is not over"),
        (JOB + "workload: none.yaml\n", "no such file"),
        (JOB.replace("cpu: 1s", "h100: 1s"), "x can't run in any pool: cpu: no variant is for cpu chips"),
        (JOB + "constraints: {regions: [mars]}\n", "cpu: constraints.regions allow mars alone"),
        ("jobs: []\n", "at least one entry"),
        ("", "a file that isn't empty"),
        ("a: [\n", "valid YAML"),
    ],
)
def test_a_bad_job_is_one_line_and_nothing_is_written(place, text, words):
    (place[0] / "job.yaml").write_text(text)
    line = refused(place, "jobs", "submit", "job.yaml")
    assert words in line and "hunter2secret" not in line


@pytest.mark.parametrize(
    "family, chip, on",
    [
        pytest.param("tpu", "v5e", "v5e:2x2", marks=pytest.mark.compiler("tpu")),
        pytest.param("gpu", "h100", "h100:4", marks=pytest.mark.compiler("cuda")),
    ],
)
def test_what_the_compiler_refuses_is_refused_at_submission(place, family, chip, on):
    folder, told = place
    (folder / "pools.yaml").write_text(f"pools:\n  - {{name: mine, backend: local, chip: {chip}, count: 4}}\n")
    (folder / "job.yaml").write_text(
        f"name: x\nworkload: {ROOT}/examples/bert-large-pretrain.yaml\ncheckpoint: {{every: 1h}}\nvariants:\n"
        f"  {family}: {{chips: 4, command: [a], program: '{ROOT}/examples/programs/jax_dynamic.py:masked'}}\n"
    )
    told["CHIPWISE_CACHE"] = str(folder / "cache")
    assert f"the compiler refuses jax_dynamic.py:masked on {on}" in refused(
        place, "jobs", "submit", "job.yaml", "--compile"
    )


def test_a_deadline_out_of_reach_is_a_warning(place):
    folder, told = place
    (folder / "job.yaml").write_text(JOB.replace("1s", "2h") + "deadline: 1h\n")
    assert "no pool finishes it by" in good("jobs", "submit", "job.yaml", cwd=folder, env=told)


def test_of_several_jobs_all_or_none_are_taken(place):
    each = JOB.replace("\n", "\n    ").rstrip()
    (place[0] / "job.yaml").write_text(f"jobs:\n  - {each}\n  - {each.replace('cpu', 'tpu')}\n")
    assert "can't run in any pool" in refused(place, "jobs", "submit", "job.yaml")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (POOLS.replace("cpu, count", "h10, count"), "pools[0].chip: 'h10' is not accepted"),
        (POOLS.replace("local", "sge"), "one of local, slurm, ray, kubernetes"),
        (POOLS.replace("count: 1", "count: 0"), "pools[0].count: 0"),
        (POOLS.replace("local, chip: cpu", "slurm, chip: h100"), "pools[0].price: missing"),
        (POOLS + "backends: {slurm: {password: hunter2secret}}\n", "no secret in the file"),
    ],
)
def test_bad_pools_are_one_line_and_nothing_is_written(place, text, words):
    (place[0] / "pools.yaml").write_text(text)
    line = refused(place, "jobs", "submit", "job.yaml")
    assert words in line and "hunter2secret" not in line


def test_pools_are_priced_by_ones_own_prices(place):
    folder, told = place
    (folder / "pools.yaml").write_text(
        "pools:\n  - {name: p, backend: local, chip: h100, count: 16, cloud: aws, region: us-east-1, terms: ondemand}\n"
    )
    told["CHIPWISE_PRICES"] = str(ROOT / "examples/prices/own.csv")
    assert "own price" in good("pools", cwd=folder, env=told)


def test_the_demo_routes_a_job_and_runs_it(tmp_path):
    program = tmp_path / "chipwise"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m chipwise "$@"\n')
    program.chmod(0o755)
    told = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        ["sh", "scripts/demo.sh", str(program)],
        cwd=ROOT,
        env=told,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert "llama-lora of ada: succeeded" in done.stdout and "jobs: 1 succeeded" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["chipwise"]  # nothing is left behind
