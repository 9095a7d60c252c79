"""The user's own line behind an instruction: from its frames, or from a scope that names a line."""

from __future__ import annotations

import re
from pathlib import PurePath

from chipwise.compiled.hlo import Instruction

# How a scope names a line: JAX puts scopes into the names of operations, and XLA keeps those
_SCOPE = re.compile(r"line=([^/()=:]+:\d+)?")


def scope_of(line: str) -> str:
    """The name of a scope that stands for a line such as ``model.py:12``.

    >>> scope_of("model.py:12"), scope_of("")
    ('line=model.py:12', 'line=')
    """
    return f"line={line}"


def source_line(instruction: Instruction) -> str:
    """``file.py:12`` of the user's own line: a scope's, or the innermost frame outside installed packages; or ""."""
    metadata = instruction.metadata
    named = _SCOPE.findall(metadata.op_name)
    if named:
        return str(named[-1])
    for frame in metadata.frames:
        if frame.file and "site-packages" not in frame.file and "/jax/" not in frame.file:
            return f"{PurePath(frame.file).name}:{frame.line}"
    if metadata.source_file and "site-packages" not in metadata.source_file:
        return f"{PurePath(metadata.source_file).name}:{metadata.source_line}"
    return ""
