"""Submitting, simulating and opening ledgers as a library: what `chipwise jobs submit` and `simulate` call."""

from __future__ import annotations

from pathlib import Path

import pytest

from chipwise.errors import InputError, Refusal
from chipwise.route.job_view import wait_for_jobs
from chipwise.route.ledger.liveness import LEASE_S, liveness
from chipwise.route.ledger.records import RouterRow
from chipwise.route.load import load_pools
from chipwise.route.names import DEFAULT_POLICY, JOB_STATES
from chipwise.route.simulate.run import SimulationOptions, load_gavel_trace, simulate
from chipwise.route.submit import read_jobs, submit

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def pools():
    return load_pools(EXAMPLES / "pools" / "local.yaml")


def test_a_submission_says_where_each_job_would_go_first(tmp_path, pools):
    ledger = str(tmp_path / "ledger.db")
    result = submit(read_jobs([EXAMPLES / "jobs" / "hello.yaml"], 1000.0), pools, ledger, now=1000.0)
    (job,) = result.jobs
    assert (job.row.id, job.row.state, job.row.submitted, job.first_pool) == ("1", JOB_STATES[0], 1000.0, "cpu")
    assert (result.policy, result.policy_source) == (DEFAULT_POLICY, "assumed: no router runs")
    waited = wait_for_jobs(ledger, ["1"], timeout=0.0)
    assert [job.state for job in waited.jobs] == ["pending"] and not waited.over  # the time is up at once


def test_a_submission_is_written_whole_or_not_at_all(tmp_path, pools):
    ledger = tmp_path / "ledger.db"
    hello, other = read_jobs([EXAMPLES / "jobs" / "hello.yaml"] * 2, 0.0)
    with pytest.raises(InputError, match="policy"):
        submit([hello, other], pools, str(ledger), policy="cheapst")
    assert not ledger.exists()


def test_a_router_is_dead_after_two_leases_without_a_heartbeat():
    row = RouterRow("a", "host", 1, "cheapest", started=0.0, seen=100.0)
    assert liveness(row, 100.0 + 2 * LEASE_S - 1) == "alive" and liveness(row, 100.0 + 2 * LEASE_S) == "dead"
    assert liveness(RouterRow("a", "host", 1, "cheapest", 0.0, 100.0, stopped=99.0), 100.0) == "stopped"


@pytest.fixture
def trace(tmp_path):
    (tmp_path / "jobs.csv").write_text(
        "job_id,arrival_s,workload,scale_factor,total_steps\na,0,A,1,1000\nb,10,A,1,500\nc,20,A,9,500\n"
    )
    (tmp_path / "throughput.csv").write_text("workload,accelerator,scale_factor,steps_per_s\nA,v100,1,2\n")
    (tmp_path / "cluster.csv").write_text("accelerator,count,usd_per_hour\nv100,2,3.6\n")
    return load_gavel_trace(tmp_path)


def test_a_simulation_has_figures_outcomes_and_refusals_of_every_policy(trace):
    told = []

    class Watcher:
        def compiling(self, policy):
            from contextlib import nullcontext

            told.append(policy)
            return nullcontext()

        def progress(self, policy, done, jobs):
            told.append((policy, jobs))

    simulation = simulate(trace, ["fastest", "cheapest"], SimulationOptions(tick_s=60.0), Watcher())
    assert (simulation.kind, simulation.jobs, simulation.span_s, simulation.seed) == ("gavel", 3, 20.0, None)
    assert [m.completed for m in simulation.measures] == [2, 2] and {"fastest", "cheapest"} <= set(told)
    ((job, reason),) = simulation.refusals("cheapest")
    assert job == "c" and "2 of the 9 accelerators" in reason


def test_a_policy_of_energy_needs_watts(trace):
    with pytest.raises(Refusal, match="no watts"):
        simulate(trace, ["least-energy"])
