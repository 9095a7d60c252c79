"""What `simulate`, `submit` and the views of jobs, pools and routers return: the JSON of the commands, rows, tables."""

import json

import pytest
from typer.testing import CliRunner

from chipwise import api
from chipwise.cli.main import app
from chipwise.errors import ChipwiseError, InputError


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
    assert record["policies"]["fastest"]["cost_usd"] == simulation.of_policy("fastest").cost_usd


def test_a_simulation_has_a_row_a_policy_and_a_row_a_job(gavel):
    simulation = api.simulate(gavel, policy="fastest,cheapest")
    rows, jobs = simulation.flat_rows(), simulation.job_rows()
    assert [row["policy"] for row in rows] == ["fastest", "cheapest"]
    assert [row["completed"] for row in rows] == [2, 2] and rows[0]["utilisation_v100"] > 0 == rows[1][
        "utilisation_v100"
    ]
    assert [(job["policy"], job["job"]) for job in jobs] == [(p, j) for p in ("fastest", "cheapest") for j in "abc"]
    assert jobs[0]["pools"] == "v100" and jobs[2]["end_s"] is None and "9 accelerators" in jobs[2]["refused"]


def test_the_best_of_a_simulations_column_is_marked_for_people(gavel):
    page = api.simulate(gavel, policy="fastest,cheapest")._repr_html_()
    assert "*</td>" in page and "refused 1:" in page and "kWh" not in page  # no power is known
    assert "*" not in str(api.simulate(gavel, policy="fastest"))


def test_a_gavel_trace_has_its_own_pools_and_other_traces_need_some(gavel):
    with pytest.raises(ChipwiseError, match="can't combine --speed with a Gavel trace"):
        api.simulate(gavel, speed={"v100": 2.0})
    with pytest.raises(InputError, match="--pools: nothing"):
        api.simulate("examples/traces/mixed-day.yaml")
