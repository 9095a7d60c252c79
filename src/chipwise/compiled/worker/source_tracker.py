"""What a program of the user's own is made of: the files and packages its import and tracing were seen to use."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from chipwise.compiled.worker.keys import Sources, file_hash

_OURS = str(Path(__file__).resolve().parents[2])  # the package chipwise
_SYSTEM = ("/proc/", "/sys/", "/dev/", "/etc/", "/usr/")
_PACKAGES = ("site-packages", "dist-packages")


def is_package_file(name: str) -> bool:
    """Whether a file belongs to an installed package, to Python or to chipwise rather than to the user.

    >>> is_package_file("<frozen importlib._bootstrap>"), is_package_file(os.__file__), is_package_file("mine.py")
    (True, True, False)
    """
    path = os.path.realpath(name)
    if name.startswith("<") or any(folder in Path(path).parts for folder in _PACKAGES):
        return True
    return path.startswith((_OURS + os.sep, *_python_folders()))


@cache
def _python_folders() -> tuple[str, ...]:
    folders = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")} | {str(Path(os.__file__).parent)}
    return tuple(os.path.realpath(folder) + os.sep for folder in folders if folder)


class SourceTracker:
    """Watches which files are read, and lists them with the modules that were imported."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}  # path -> hash
        self.packages: tuple[str, ...] = ()
        self._opened: set[str] = set()
        self._watching = False
        sys.addaudithook(self._hook)

    def sources(self) -> Sources:
        """Names only: the parent hashes them when it looks a program up."""
        return Sources(tuple(sorted(self.files)), self.packages)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Note every file read meanwhile; at the end, hash them as they are."""
        self._watching = True
        try:
            yield
        finally:
            self._watching = False
            self._freeze()

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._watching and event == "open" and isinstance(arguments[0], str):
            flags = arguments[2]
            if not (isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)):
                self._opened.add(arguments[0])

    def _freeze(self) -> None:
        modules = [str(file) for module in list(sys.modules.values()) if (file := getattr(module, "__file__", None))]
        for name in {*self._opened, *modules}:
            path = os.path.realpath(name)
            if _is_users(path):
                self.files[path] = file_hash(Path(path))
        installed = {name.partition(".")[0] for name in sys.modules}
        by_module = metadata.packages_distributions()
        self.packages = tuple(sorted({package for name in installed for package in by_module.get(name, ())}))


def _is_users(path: str) -> bool:
    if path.endswith((".pyc", ".pyo")) or path.startswith(_SYSTEM):
        return False
    return not is_package_file(path) and Path(path).is_file()
