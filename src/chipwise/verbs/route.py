"""Verbs of jobs that are routed: simulate, submit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.route.names import DEFAULT_POLICY
from chipwise.verbs import defaults
from chipwise.verbs.arguments import knowledge_of

if TYPE_CHECKING:
    from chipwise.knowledge import Knowledge
    from chipwise.route.simulate.run import Watcher as SimulationProgress
    from chipwise.route.simulate.view import Simulation
    from chipwise.route.submit import Submission
    from chipwise.verbs.arguments import Progress


def simulate(
    trace: str | Path,
    pools: str | Path | None = None,
    *,
    policy: str | Sequence[str] = DEFAULT_POLICY,
    random: bool = False,
    failures: float = 0.0,
    repair: str | float = defaults.REPAIR,
    speed: Mapping[str, float] | Sequence[str] | None = None,
    tick: str | float = defaults.TICK,
    weights: Mapping[str, float] | Sequence[str] | None = None,
    plot: str | Path | None = None,
    knowledge: Knowledge | None = None,
    progress: SimulationProgress | None = None,
) -> Simulation:
    """Try scheduling policies on a trace of jobs: completion times, cost, energy, deadlines, fairness, use of pools.

    `trace` is a file of jobs with their arrivals, of recorded jobs, or a folder in Gavel's form, which has its own
    pools; `policy` is ``"fastest,cheapest"``, or ``"all"``. With `random`, run times and spot interruptions are drawn
    by the seed of `knowledge`; nodes fail at so many `failures` an hour each, and are back after `repair`. `speed` is
    that of recorded jobs on a chip, ``{"h100": 2.5}``; the policy is asked every `tick` at least; `weights` are those
    of ``balanced``, or ``delay`` of ``cheapest-within-deadline`` in US dollars an hour. Who held which chips when is
    drawn to `plot`, an .svg or a .png.

    >>> replay = simulate("examples/traces/gavel-seed0", policy="fastest,cheapest")
    >>> fastest, cheapest = replay.measures
    >>> fastest.completed == cheapest.completed == replay.jobs, fastest.cost_usd > cheapest.cost_usd
    (True, True)
    """
    from chipwise.route.policies import check_weights, policy_list
    from chipwise.route.simulate import plots
    from chipwise.route.simulate.run import SimulationOptions, open_trace
    from chipwise.route.simulate.run import simulate as run

    names = policy_list(policy if isinstance(policy, str) else ",".join(policy))
    options = SimulationOptions.read(knowledge_of(knowledge).seed if random else None, failures, repair, tick, weights)
    check_weights(names, options.weights)
    if plot is not None:
        plots.ready(Path(plot), len(names))
    simulation = run(open_trace(Path(trace), pools, speed, knowledge, progress), names, options, progress)
    if plot is not None:
        simulation.plot(plot)
    return simulation


def submit(
    jobs: str | Path | Sequence[str | Path],
    pools: str | Path | None = None,
    *,
    ledger: str | Path = "",
    policy: str | None = None,
    compile: bool = False,
    knowledge: Knowledge | None = None,
    progress: Progress | None = None,
) -> Submission:
    """Write the jobs of job files to a ledger, all or none, and say what each would take where.

    `ledger` is a file, ``postgresql://...`` (default: your own file), or a service at ``unix:///PATH``, which
    estimates the jobs by its own `pools`; `policy` is the one whose first choice is told (default: that of the router
    on the ledger). `compile` compiles programs that were not checked yet, for every pool. A job that can run in no
    pool is a `Refusal`, and nothing is written.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     submission = submit("examples/jobs/hello.yaml", "examples/pools/local.yaml", ledger=f"{folder}/ledger.db")
    >>> [(job.row.state, job.first_pool) for job in submission.jobs]
    [('pending', 'cpu')]
    """
    import time

    from chipwise.errors import NOTHING, InputError
    from chipwise.route.ledger import is_remote
    from chipwise.route.load import read_pools
    from chipwise.route.submit import read_jobs, submit_remotely
    from chipwise.route.submit import submit as run

    now = time.time()
    files = [Path(file) for file in ([jobs] if isinstance(jobs, str | Path) else jobs)]
    if is_remote(str(ledger)):
        if compile:
            raise InputError("compile", "a service", "a ledger of your own: services compile no programs")
        return submit_remotely(files, str(ledger), policy)
    if pools is None:
        raise InputError("pools", NOTHING, "a pools file, or CHIPWISE_POOLS naming one")
    read = read_jobs(files, now)
    where = read_pools(pools, knowledge)
    return run(read, where, str(ledger), policy=policy, compile=compile, now=now, progress=progress)
