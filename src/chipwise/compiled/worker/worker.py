"""One job in a process of its own: ``python -m chipwise.compiled.worker.worker JOBFILE RESULTFILE [PIPE PARENT]``.

libtpu belongs to a whole process and may end it, so that each compile has its own. What came of it is written to
RESULTFILE, the optimized module beside it; PIPE is told the stages.
"""

from __future__ import annotations

import gzip
import json
import resource
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any, TextIO

from chipwise.compiled.job import Compiled, Job, Refused, digest, outcome_as_json
from chipwise.compiled.targets import TPU, Target, topology_arguments
from chipwise.compiled.timing.reading import read_schedule
from chipwise.compiled.worker import diagnose
from chipwise.compiled.worker.case import Progressed
from chipwise.compiled.worker.source_tracker import SourceTracker
from chipwise.compiled.worker.versions import require
from chipwise.io.worker import connect
from chipwise.units import format_bytes

MODULE = "module.hlo.gz"
NO_SPACE = 70  # exit status: the result could not be written

# The stages the parent is told, and what a failure in them is called.
_STAGES = {"importing": "import", "tracing": "trace", "compiling": "compile"}
_MEMORY = {
    "arguments": "argument_size_in_bytes",
    "outputs": "output_size_in_bytes",
    "aliased": "alias_size_in_bytes",
    "temporaries": "temp_size_in_bytes",
    "code": "generated_code_size_in_bytes",
    "peak": "peak_memory_in_bytes",
    "host_arguments": "host_argument_size_in_bytes",
    "host_outputs": "host_output_size_in_bytes",
    "host_aliased": "host_alias_size_in_bytes",
    "host_temporaries": "host_temp_size_in_bytes",
    "host_code": "host_generated_code_size_in_bytes",
}


def main(arguments: Sequence[str]) -> int:
    """Run the job of a file and write what came of it."""
    job_file, result_file = Path(arguments[0]), Path(arguments[1])
    send = connect(*arguments[2:]) if len(arguments) > 2 else _unheard
    job = Job.from_json(json.loads(job_file.read_text()))
    tracker = SourceTracker()
    try:
        outcome = outcome_of(job, result_file.parent, tracker, lambda stage: send(stage=stage))
        _write(result_file, {**outcome_as_json(outcome), "files": tracker.files, "packages": list(tracker.packages)})
    except OSError as error:
        print(f"the result could not be written: {error.strerror} ({error.filename})", file=sys.stderr)
        return NO_SPACE
    return 0


def outcome_of(job: Job, folder: Path, tracker: SourceTracker, say: Callable[[str], None]) -> Compiled | Refused:
    """Load, trace, compile and read; the module goes into `folder`. Raises only for faults of this machine."""
    stage = "importing"
    compiled: Compiled | None = None
    progressed = Progressed()
    try:
        for stage, compiled in _steps(job, folder, tracker, progressed):  # noqa: B007 - the last one is the result
            say(stage)
    except MemoryError:
        raise
    except (Exception, SystemExit) as error:
        if stage == "reading":
            raise
        return diagnose.refusal(_STAGES[stage], error, job, progressed)
    assert compiled is not None
    return compiled


def _steps(
    job: Job, folder: Path, tracker: SourceTracker, progressed: Progressed
) -> Iterator[tuple[str, Compiled | None]]:
    """Yields each stage as it begins, and the result at the end."""
    yield "importing", None
    from chipwise.compiled import loaders

    with _warnings(job) as warned:
        with tracker.watching():
            program = loaders.load(job.spec, topology_devices(job.target), job.mesh)
            yield "tracing", None
            lowered = program.lower()
        progressed.lowered = lambda: str(lowered.as_text(debug_info=True))
        progressed.arguments = lambda: largest_arguments(program.args)
        yield "compiling", None
        start = time.monotonic()
        compiled, notes = compiled_for(job, lowered)
        seconds = time.monotonic() - start
    yield "reading", None
    text = compiled.as_text()
    _write_module(folder / MODULE, text)
    schedule, unread = read_schedule(text)
    varies = tuple(f"varies: {description}" for description in program.varies)
    yield (
        "reading",
        Compiled(
            job_key=digest(job.as_json()),
            versions=require(job.target.platform, job.spec.kind),
            seconds=seconds,
            peak_rss=_peak_bytes(),
            memory=_memory(compiled.memory_analysis()),
            schedule=schedule,
            notes=tuple(
                dict.fromkeys((*program.notes, *notes, *varies, *diagnose.notes_of(warned, text, job), *unread))
            ),
            choices=program.choices,
        ),
    )


def topology_devices(target: Target) -> Sequence[Any]:
    """The devices of a target, as JAX sees them; nothing is allocated on them."""
    from jax.experimental import topologies

    if target.platform == TPU:
        return list(topologies.get_topology_desc(**topology_arguments(target)).devices)
    from chipwise.compiled import gpu

    return gpu.devices(target)


def compiled_for(job: Job, lowered: Any) -> tuple[Any, tuple[str, ...]]:
    """The compiled program, and notes: the user's options on top of what the target needs."""
    if job.target.platform == TPU:
        return lowered.compile(compiler_options=dict(job.options)), ()
    from chipwise.compiled import gpu

    return gpu.compiled_with(lowered, {**gpu.options(job.target), **job.options})


def largest_arguments(args: Any, count: int = 5) -> str:
    """The arguments that take most of a device, for a program that does not fit."""
    import jax

    sized = []
    for path, leaf in jax.tree_util.tree_flatten_with_path(args)[0]:
        shape = leaf.sharding.shard_shape(leaf.shape) if leaf.sharding is not None else leaf.shape
        kind = f"{leaf.dtype}[{','.join(map(str, shape))}]"
        sized.append((prod(shape) * leaf.dtype.itemsize, f"args{jax.tree_util.keystr(path)} {kind}"))
    total = format_bytes(float(sum(size for size, _ in sized)))
    largest = ", ".join(f"{name} {format_bytes(float(size))}" for size, name in sorted(sized, reverse=True)[:count])
    return f"arguments of one device: {total}; the largest: {largest}"


def _memory(stats: Any) -> dict[str, float]:
    values = {name: getattr(stats, field, None) for name, field in _MEMORY.items()}
    return {name: float(value) for name, value in values.items() if value is not None}


def _peak_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


@contextmanager
def _warnings(job: Job) -> Iterator[list[tuple[str, str]]]:
    """What Python code warns of meanwhile, each once: JAX says so when it narrows a type or can't donate."""
    warned: list[tuple[str, str]] = []

    def keep(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        warned.append((" ".join(str(message).split()), diagnose.warned_at(job)))

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = keep
        yield warned


def _write(path: Path, data: Any) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps(data, separators=(",", ":")))
    part.rename(path)


def _write_module(path: Path, text: str) -> None:
    with gzip.GzipFile(path, "wb", compresslevel=6, mtime=0) as file:
        file.write(text.encode())


def _unheard(**message: Any) -> None:
    """Where no parent listens."""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
