"""Verbs of models that are served: serve, capacity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.verbs.arguments import knowledge_of, serving_target_of, serving_workload

if TYPE_CHECKING:
    from chipwise.knowledge import Knowledge
    from chipwise.serving.results import ServingCapacity, ServingSimulation
    from chipwise.verbs.arguments import Progress, WorkloadLike


def serve(
    workload: WorkloadLike,
    on: str,
    *,
    tp: int | None = None,
    pp: int | None = None,
    dp: int | None = None,
    ep: int | None = None,
    replicas: int | None = None,
    disaggregate: str | None = None,
    router: str = "least_loaded",
    max_batch: int | None = None,
    chunk: int | None = None,
    requests: int | None = None,
    curve: bool = False,
    knowledge: Knowledge | None = None,
    progress: Progress | None = None,
) -> ServingSimulation:
    """Simulate a served model at its load: TTFT, TPOT, ITL and end to end by percentile, and whether the SLO is met.

    `on` has all chips; `tp`, `pp`, `dp` and `ep` split a replica (default: the split with the largest load), as many
    `replicas` as fit, or ``disaggregate="2:6"`` for prefill and decode. `router` is ``round_robin``, ``least_loaded``
    or ``prefix``; `max_batch` sequences and a `chunk` of tokens are an iteration's limits (default: the stack's own).
    `requests` are simulated (default: 10,000, or 600 a replica where that is more; all of a trace or an offline
    job). `curve` adds latency at other loads, for `plot`.

    >>> from chipwise import load
    >>> chat = load("llama-3.1-8b", input_len=1000, output_len=200, rate=2, ttft="500ms")
    >>> simulation = serve(chat, on="h100:1", tp=1, requests=500)
    >>> simulation.slo_met, simulation.ttft.p50.value < simulation.ttft.p99.value < simulation.e2e.p99.value
    (True, True)
    """
    from chipwise.serving.results import simulate_service
    from chipwise.serving.sizing import ServiceRequest, read_pools
    from chipwise.serving.split import named_split

    pools = None if disaggregate is None else read_pools(disaggregate)
    request = ServiceRequest(named_split(tp, pp, dp, ep), replicas, pools, router, max_batch, chunk)
    known = knowledge_of(knowledge)
    acc, target = serving_target_of(workload, on, known)
    return simulate_service(target, acc, request, requests, known.seed, curve, progress)


def capacity(
    workload: WorkloadLike,
    on: str,
    *,
    tp: int | None = None,
    pp: int | None = None,
    dp: int | None = None,
    ep: int | None = None,
    disaggregate: str | None = None,
    deadline: str | float | None = None,
    knowledge: Knowledge | None = None,
    progress: Progress | None = None,
) -> ServingCapacity:
    """Find the largest load that chips sustain within an SLO, over every split of the replicas and their settings.

    `tp`, `pp`, `dp` and `ep` try one split alone. ``disaggregate="2:6"`` gives two replicas to prompts for six that
    decode; ``"auto"`` also tries as many as sustain most. The rate of the workload is not the load tried: it says how
    many chips it takes (`needed_chips`). An offline job takes a `deadline`.

    >>> from chipwise import load
    >>> chat = load("llama-3.1-8b", input_len=1000, output_len=200, rate=20, ttft="500ms", tpot="30ms")
    >>> largest = capacity(chat, on="h100:2", tp=1)
    >>> largest.load.low <= largest.load.value <= largest.load.high, str(largest.best.service)
    (True, '2 replicas of tp=1')
    """
    from chipwise.serving.results import find_capacity
    from chipwise.serving.split import named_split
    from chipwise.units import parse_duration_with_unit
    from chipwise.workload.serve import with_deadline

    known = knowledge_of(knowledge)
    if deadline is not None:
        seconds = parse_duration_with_unit(deadline, "deadline")
        workload = with_deadline(serving_workload(workload), seconds)
    acc, target = serving_target_of(workload, on, known)
    return find_capacity(target, acc, named_split(tp, pp, dp, ep), known.seed, progress, disaggregate)
