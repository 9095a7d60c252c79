"""The committed modules, and what is known of them from their source and the compiler (see make_samples.py)."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

from chipwise.compiled import hlo

FOLDER = Path(__file__).parent / "samples"
EXPECTED: dict[str, dict[str, Any]] = json.loads((FOLDER / "expected.json").read_text())
NAMES = sorted(path.name.removesuffix(".hlo.gz") for path in FOLDER.glob("*.hlo.gz"))


@cache
def text(name: str) -> str:
    return gzip.decompress((FOLDER / f"{name}.hlo.gz").read_bytes()).decode()


@cache
def module(name: str) -> hlo.Module:
    return hlo.parse(text(name))


def instructions(name: str) -> list[hlo.Instruction]:
    return [i for computation in module(name).computations.values() for i in computation]


def of_opcode(name: str, *opcodes: str) -> list[hlo.Instruction]:
    return [i for i in instructions(name) if i.opcode in opcodes]
