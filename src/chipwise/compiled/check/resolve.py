"""What a PROGRAM argument names: an exported file, a function or PyTorch module of the user's, or a workload."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chipwise.compiled.job import MAX_PROGRAM_BYTES, Spec
from chipwise.errors import InputError, NoSuchFile
from chipwise.io.regular_file import check_regular

EXPORTED = (".bin", ".jaxexport", ".mlir", ".stablehlo", ".mlirbc")
ACCEPTED = (
    "package.module:function, file.py:function, a jax.export or StableHLO file "
    f"({', '.join(EXPORTED)}), a workload file (.yaml) or a known model's name"
)
_NAME = re.compile(r"[A-Za-z_][\w.]*")
_MOST_FILES = 200  # of the user's own, looked through for what they import


def program_spec(
    text: str,
    folder: Path,
    torch: bool | None = None,
    sizes: Mapping[str, int] | None = None,
    choices: Mapping[str, Any] | None = None,
) -> Spec | None:
    """The program `text` names, imported from `folder`; None where it names a workload.

    `torch` says whether a function makes a PyTorch module; None: as the imports of its file tell.
    """
    if not text.strip():
        raise InputError("program", text, ACCEPTED)
    path = Path(text)
    if path.suffix in EXPORTED:
        check_regular(path, MAX_PROGRAM_BYTES, "program")
        return Spec("file", text, {"sizes": dict(sizes)} if sizes else {})
    module, colon, name = text.rpartition(":")
    if not colon:
        if path.suffix == ".py":
            raise InputError("program", text, f"the function too: {text}:function")
        return None
    if not module or not _NAME.fullmatch(name):
        raise InputError("program", text, ACCEPTED)
    if module.endswith(".py") and not (folder / module).is_file():
        raise NoSuchFile("program", text, f"no {module}")
    data: dict[str, Any] = {"folder": str(folder)}
    if choices:
        data["choices"] = dict(choices)
    is_torch = makes_torch(module, folder) if torch is None else torch
    return Spec("torch" if is_torch else "function", text, data)


def makes_torch(module: str, folder: Path) -> bool:
    """Whether a module's source, and what it imports from `folder`, uses PyTorch and not JAX.

    Nothing is imported: the source alone is read. The nearest file that imports one of them decides.
    """
    if module.endswith(".py"):
        first = folder / module
        folder = first.parent
    else:
        source = _file_of(module, folder)
        if source is None:
            return False
        first = source
    level, visited = [first], {first}
    while level and len(visited) < _MOST_FILES:
        imports = {path: _imports(path) for path in level}
        tops = {name.partition(".")[0] for names in imports.values() for name in names}
        if "torch" in tops or "jax" in tops:
            return "torch" in tops and "jax" not in tops
        near = [_file_of(name, folder) for names in imports.values() for name in names]
        level = [path for path in dict.fromkeys(near) if path is not None and path not in visited]
        visited.update(level)
    return False


def _file_of(module: str, folder: Path) -> Path | None:
    """The file of a module below `folder`; of a name inside a module, that module's."""
    parts = module.split(".")
    for count in (len(parts), len(parts) - 1):
        base = folder.joinpath(*parts[:count])
        for path in (base.with_suffix(".py"), base / "__init__.py") if count else ():
            if path.is_file():
                return path
    return None


def _imports(path: Path) -> list[str]:
    """Dotted names a file imports, anywhere in it; none of a file that is not Python."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return []  # the worker says what is wrong with it
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names
