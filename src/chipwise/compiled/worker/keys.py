"""What a compile depends on, as hashes: the program's sources, the target, options, versions, and our own code.

None of it imports the program or jax, so that a lookup is fast. A program of the user's own is known by the files
and packages the worker saw it use: the first compile lists them, a lookup hashes them again.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from chipwise.compiled.job import Job, digest
from chipwise.compiled.worker.versions import package_version

SCHEMA = 3  # of what an entry holds
_HERE = Path(__file__).resolve().parents[2]  # the package chipwise
_LARGE = 64 * 2**20  # bytes; a larger file is known by its size and time


@dataclass(frozen=True, slots=True)
class Sources:
    """Files and packages that importing and tracing a program brought in."""

    files: tuple[str, ...] = ()  # absolute paths
    packages: tuple[str, ...] = ()

    def stamp(self) -> dict[str, str]:
        """Each file's hash and each package's version, as they are now."""
        files = {path: file_hash(Path(path)) for path in self.files}
        return files | {f"package {name}": package_version(name) for name in self.packages}


def request_key(job: Job, versions: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """Everything but the content of the user's own sources."""
    spec = job.spec
    data = dict(spec.data)
    if "folder" in data:
        data["folder"] = str(Path(str(data["folder"])).resolve())
    return digest(
        {
            "schema": SCHEMA,
            "spec": [spec.kind, spec.name, data],
            "loaders": code_hash(*loaders(spec.kind), "compiled/gpu.py"),
            "target": asdict(job.target),
            "options": dict(job.options),
            "mesh": list(job.mesh.items()),
            "versions": dict(versions),
            "environment": {name: value for name, value in environment.items() if name.startswith("JAX_")},
        }
    )


@cache
def loaders(kind: str) -> tuple[str, ...]:
    """Our own files that turn a program of this kind into what is compiled.

    >>> loaders("file")[1:]
    ('compiled/loaders/placement.py', 'compiled/loaders/stablehlo.py', 'programs/program.py')
    """
    first = {"function": "function", "torch": "torch", "file": "files"}.get(kind)
    if first is None:
        return ("compiled/loaders", "programs")
    names, left = set(), [f"compiled.loaders.{first}"]
    while left:
        name = left.pop().replace(".", "/") + ".py"
        if name not in names and (_HERE / name).is_file():
            names.add(name)
            left += re.findall(r"chipwise\.((?:compiled\.loaders|programs)\.[\w.]+)", (_HERE / name).read_text())
    return tuple(sorted(names))


def entry_key(request: str, stamp: Mapping[str, str]) -> str:
    """The name of the cache's entry: the request with the sources it was made from."""
    return digest([request, dict(stamp)])


def listed_by_worker(kind: str) -> bool:
    """Whether a program's sources are only known once it has been imported."""
    return kind in ("function", "torch")


def listed_sources(job: Job) -> Sources:
    """The sources of a program that need no import to be listed."""
    return Sources((str(Path(job.spec.name).resolve()),)) if job.spec.kind == "file" else Sources()


def extractor_hash() -> str:
    """The code that makes a schedule of a module: when it changes, stored modules are read again."""
    return code_hash("compiled/hlo", *(f"compiled/timing/{name}.py" for name in ("extract", "products", "schedule")))


def words_hash() -> str:
    """The code that puts a refusal into words: when it changes, refusals are asked for again."""
    return code_hash(*(f"compiled/worker/{name}.py" for name in ("case", "diagnose", "messages")))


@cache
def code_hash(*names: str) -> str:
    """A hash over our own Python files and folders of them."""
    files = [path for name in names for path in _python_files(_HERE / name)]
    return digest([[path.relative_to(_HERE).as_posix(), file_hash(path)] for path in files])


def _python_files(path: Path) -> Iterable[Path]:
    if path.is_dir():
        return sorted(path.rglob("*.py"))
    return [path] if path.is_file() else []


def file_hash(path: Path) -> str:
    """The SHA-256 of a file's content, or "absent"."""
    try:
        with path.open("rb") as file:
            state = os.fstat(file.fileno())
            if state.st_size > _LARGE:
                return f"size {state.st_size} time {state.st_mtime_ns}"
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return "absent"  # also what can't be read: the worker will say why
