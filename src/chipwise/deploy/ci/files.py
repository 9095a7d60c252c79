"""Workflow files in a repository that has others: each knows by its first line whether anybody has edited it."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from os.path import normpath
from pathlib import Path

from chipwise.catalog import load
from chipwise.deploy.ci.checks_file import Checks
from chipwise.errors import BrokenFile, InputError
from chipwise.io.atomic import atomic_write, check_writable
from chipwise.io.files import read_text

HEAD = "# Written by `chipwise deploy ci`, which writes it again as long as nobody edits it: "
EXTRAS = {"tpu": "tpu-compiler", "gpu": "gpu-compiler"}  # of pyproject.toml


def write_files(folder: Path, texts: Mapping[str, str]) -> tuple[Path, ...]:
    """Write all of them or none: one that is there and is not as it was written is refused."""
    whole = {folder / path: f"{HEAD}{_digest(text)}\n{text}" for path, text in texts.items()}
    for path in whole:
        _refuse_foreign(path)
    try:
        for path in whole:
            path.parent.mkdir(parents=True, exist_ok=True)
            check_writable(path, "to")
        for path, text in whole.items():
            atomic_write(text.encode(), path, "to")
    except OSError as error:
        raise InputError("to", str(folder), f"a folder that can be written ({error.strerror or error})") from None
    return tuple(whole)


def _refuse_foreign(path: Path) -> None:
    if not path.exists():
        return
    try:
        first, _, rest = read_text(path).partition("\n")
    except (BrokenFile, OSError):
        first, rest = "", ""
    if not first.startswith(HEAD):
        raise InputError("to", str(path), "no file there, or one of `deploy ci`: this one is somebody's own")
    if first.removeprefix(HEAD) != _digest(rest):
        raise InputError(
            "to", str(path), "a file as `deploy ci` left it (it was edited since; keep a copy and remove it)"
        )


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def install_command(checks: Checks) -> str:
    """What installs chipwise with the compilers that the targets and programs need."""
    chips = load().chips
    families = {chips[name].family for name in checks.chips if name in chips}
    extras = [extra for family, extra in EXTRAS.items() if family in families]
    extras += ["torch"] if any(_is_torch(check.torch, check.program) for check in checks.checks) else []
    return f'pip install "chipwise[{",".join(extras)}]"' if extras else "pip install chipwise"


def _is_torch(flag: bool | None, program: str) -> bool:
    return flag if flag is not None else "torch" in program


def inside(folder: Path, file: Path) -> str:
    """A file's path from the root of a repository, with slashes; links are left as they are: git has them so too."""
    try:
        return Path(normpath(file.absolute())).relative_to(normpath(folder.absolute())).as_posix()
    except ValueError:
        raise InputError("checks", str(file), f"a file inside {folder.absolute()}, where workflows find it") from None
