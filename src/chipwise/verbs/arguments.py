"""What verbs take as people write it: workloads, chips, knowledge."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chipwise.catalog import Accelerators
    from chipwise.knowledge import Knowledge
    from chipwise.observe.store.store import TelemetryStore
    from chipwise.serving.service import ServingTarget
    from chipwise.workload import Workload
    from chipwise.workload.serve import ServingWorkload

    AnyWorkload = Workload | ServingWorkload
    WorkloadLike = str | Path | Workload | ServingWorkload

Progress = Callable[[int, int, str], None]


def load(workload: str | Path, **changes: Any) -> AnyWorkload:
    """Load a workload of either kind: a file, a known model's name, or a Hugging Face ``config.json``.

    `changes` are those of the command line's flags: what is trained (``tokens``, ``batch``, ``sequence``...) or served
    (``input_len``, ``output_len``, ``rate``, ``ttft``...).

    >>> load("llama-3.1-8b", tokens="1T", batch=1024, sequence=8192).train.steps
    119210
    >>> load("llama-3.1-8b", input_len=1000, output_len=200, rate=10, ttft="500ms").serve.arrival.rate
    10.0
    """
    from chipwise.errors import UnknownName
    from chipwise.workload.read import FLAGS, SERVING, read_any

    known = {"model", *FLAGS, *SERVING}
    for name in changes:
        if name not in known:
            raise UnknownName("workload", name, known)
    return read_any(str(workload), {name: None if value is None else str(value) for name, value in changes.items()})


def knowledge_of(knowledge: Knowledge | None) -> Knowledge:
    """What is known: given, or by default."""
    from chipwise.knowledge import Knowledge

    return knowledge or Knowledge.default()


def any_workload(workload: WorkloadLike) -> AnyWorkload:
    """A workload of either kind, loaded where it is named."""
    return load(workload) if isinstance(workload, str | Path) else workload


def training_workload(workload: WorkloadLike) -> Workload:
    """A workload that is trained."""
    from chipwise.errors import InputError
    from chipwise.workload import Workload

    work = any_workload(workload)
    if not isinstance(work, Workload):
        accepted = "a workload that is trained; this one is served: use serve, capacity or compare"
        raise InputError("workload", work.name, accepted)
    return work


def serving_workload(workload: WorkloadLike) -> ServingWorkload:
    """A workload that is served."""
    from chipwise.errors import InputError
    from chipwise.workload.read import names_file, read_serving
    from chipwise.workload.serve import ServingWorkload

    model = isinstance(workload, str | Path) and not names_file(str(workload))  # which lacks what is asked of it
    work = read_serving(str(workload), {}) if model else any_workload(workload)
    if not isinstance(work, ServingWorkload):
        accepted = "a workload that is served; this one is trained: use predict, layouts or compare"
        raise InputError("workload", work.name, accepted)
    return work


def serving_target_of(workload: WorkloadLike, on: str, known: Knowledge) -> tuple[Accelerators, ServingTarget]:
    """The chips, and the workload on them."""
    from chipwise.catalog import parse
    from chipwise.serving.service import serving_target

    work, acc = serving_workload(workload), parse(on)
    return acc, serving_target(work, acc.chip, known.calibration)


def seconds_of(time: str | float, field: str) -> float:
    """A time as people write it, or seconds."""
    from chipwise.units import parse_duration

    return parse_duration(time, field) if isinstance(time, str) else float(time)


def own_telemetry(store: str | Path | None) -> TelemetryStore | None:
    """The store of telemetry that is named, or one's own where there is one."""
    from chipwise.io.paths import data_folder
    from chipwise.observe.store.store import open_store

    if not store and not (data_folder() / "telemetry.db").exists():
        return None
    return open_store(str(store or ""), create=False)
