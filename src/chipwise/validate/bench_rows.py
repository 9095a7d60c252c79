"""Flat rows of measurements: one point a row, in the columns that bench files are written out in."""

from __future__ import annotations

from collections.abc import Mapping

from chipwise.errors import InputError
from chipwise.ops.point import DTYPES, KINDS, Point

COLUMNS = {"kind", "dtype", "seconds"}
FRAMEWORKS = ("torch", "jax")
# Sizes that may stand in another column: as many heads of keys as of queries, and as bench files are written out
_ELSEWHERE = {"hk": "h", "count": "params", "devices": "n"}
_TRUE = {"1", "true", "yes", "t"}
_FALSE = {"", "0", "false", "no", "f", "nan", "none"}
_ALIASES = {
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "half": "fp16",
    "float": "fp32",
    "float8_e4m3fn": "fp8",
    "fp8_e4m3": "fp8",
    "fp8e4m3": "fp8",
}


def number(row: Mapping[str, str], name: str) -> float | None:
    """A number of a row; None where the cell is empty."""
    text = row.get(name, "").strip()
    if text.lower() in ("", "nan", "none"):
        return None
    try:
        value = float(text)
    except ValueError:
        raise InputError(name, text, "a number") from None
    if not value > 0 or value == float("inf"):
        raise InputError(name, text, "a number above 0")
    return value


def flag(row: Mapping[str, str], name: str) -> bool:
    """A yes or no of a row; an empty cell is no.

    >>> flag({"remat": "True"}, "remat"), flag({}, "remat")
    (True, False)
    """
    text = row.get(name, "").strip().lower()
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise InputError(name, row[name], "true or false")


def point_of(row: Mapping[str, str]) -> Point:
    """The point that a row measured.

    >>> point_of({"kind": "gemm", "dtype": "bf16", "m": "64", "n": "32", "k": "16.0"}).sizes
    {'m': 64, 'n': 32, 'k': 16}
    """
    kind = kind_of(row)
    if kind not in KINDS:
        raise InputError("kind", row.get("kind", ""), f"one of {', '.join(KINDS)}")
    word = row.get("dtype", "").strip().lower().removeprefix("torch.") or "bf16"
    dtype = _ALIASES.get(word, word)
    if dtype not in DTYPES:
        raise InputError("dtype", row["dtype"], f"one of {', '.join(DTYPES)}")
    sizes = {}
    for name in KINDS[kind]:
        value = number(row, name)
        if value is None and name in _ELSEWHERE:
            value = number(row, _ELSEWHERE[name])
        if value is None:
            raise InputError(name, "", f"a number: {kind} rows need {', '.join(KINDS[kind])}")
        sizes[name] = round(value)
    causal = not row.get("causal", "").strip() or flag(row, "causal")
    return Point("rows", kind, dtype, sizes, flag(row, "compile"), flag(row, "remat"), causal, row.get("model", ""))


def kind_of(row: Mapping[str, str]) -> str:
    """What a row measured, in the spelling that kinds have."""
    return row.get("kind", "").strip().lower()


def framework_of(row: Mapping[str, str]) -> str:
    """What a row was measured through: PyTorch unless it says otherwise."""
    name = row.get("framework", "").strip().lower().removeprefix("py") or "torch"
    if name not in FRAMEWORKS:
        raise InputError("framework", row["framework"], f"one of {', '.join(FRAMEWORKS)}")
    return name
