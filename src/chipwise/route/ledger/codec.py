"""Records as JSON text and back, exactly: infinities, sets, tuples and every character included.

Fields that have their default are left out, and fields a text lacks get theirs, so that a ledger of an older version
is read by a newer one. The text is plain ASCII: no database refuses a character of it.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
_Step = Callable[[Any], Any]
_NUMBER = "$number"  # marks an infinity where the type does not say that a number is meant


def encode(value: object, kind: Any = None) -> str:
    """A record, or several (`kind` says of what type), as JSON text."""
    return json.dumps(_packer(kind or type(value))(value), ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def decode(kind: type[T], text: str) -> T:
    """The record of that type which `encode` wrote."""
    return _unpacker(kind)(json.loads(text))  # type: ignore[no-any-return]


def storable(text: str) -> str:
    """A text that every database stores: NUL and lone surrogates written as escapes.

    >>> storable("a\\x00b\\ud800é")
    'a\\\\x00b\\\\ud800é'
    """
    if text.isascii() and "\x00" not in text:
        return text
    return text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()


def _packer(kind: Any) -> _Step:
    return _made_packer(kind)


@cache
def _made_packer(kind: Any) -> _Step:
    if is_dataclass(kind):
        return _record_packer(kind)
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        step = _packer(next(a for a in inner if a is not type(None)))
        return lambda v: None if v is None else step(v)
    if origin is tuple and inner[-1] is Ellipsis:
        step = _packer(inner[0])
        return lambda v: [step(x) for x in v]
    if origin is tuple:
        steps = [_packer(a) for a in inner]
        return lambda v: [s(x) for s, x in zip(steps, v, strict=True)]
    if origin is frozenset:
        return sorted
    plain: dict[Any, _Step] = {float: _pack_float, int: int, str: str, bool: bool}
    return plain.get(kind, _pack_any)


def _unpacker(kind: Any) -> _Step:
    return _made_unpacker(kind)


@cache
def _made_unpacker(kind: Any) -> _Step:
    if is_dataclass(kind):
        return _record_unpacker(kind)
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        step = _unpacker(next(a for a in inner if a is not type(None)))
        return lambda v: None if v is None else step(v)
    if origin is tuple and inner[-1] is Ellipsis:
        step = _unpacker(inner[0])
        return lambda v: tuple(step(x) for x in v)
    if origin is tuple:
        steps = [_unpacker(a) for a in inner]
        return lambda v: tuple(s(x) for s, x in zip(steps, v, strict=True))
    if origin is frozenset:
        return frozenset
    plain: dict[Any, _Step] = {float: float, int: int, str: str, bool: bool}
    return plain.get(kind, _unpack_any)


def _record_packer(kind: Any) -> _Step:
    hints = get_type_hints(kind)
    parts = [(f.name, _packer(hints[f.name]), _default(f)) for f in fields(kind)]

    def pack(record: Any) -> dict[str, Any]:
        out = {}
        for name, step, default in parts:
            value = getattr(record, name)
            if default is MISSING or value != default:
                out[name] = step(value)
        return out

    return pack


def _record_unpacker(kind: Any) -> _Step:
    hints = get_type_hints(kind)
    known = {f.name for f in fields(kind)}
    # what JSON gives as it is needs no step: a ledger of thousands of jobs is read at once
    steps = [(f.name, _unpacker(hints[f.name])) for f in fields(kind) if hints[f.name] not in (int, str, bool)]

    def unpack(found: dict[str, Any]) -> Any:
        if not found.keys() <= known:
            found = {name: value for name, value in found.items() if name in known}
        for name, step in steps:
            if name in found:
                found[name] = step(found[name])
        return kind(**found)

    return unpack


def _default(field: Any) -> Any:
    return field.default_factory() if field.default_factory is not MISSING else field.default


def _pack_float(value: float) -> float | str:
    return float(value) if math.isfinite(value) else str(float(value))


def _pack_any(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _pack_any(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_pack_any(v) for v in value]
    if hasattr(value, "item"):  # a number of numpy's
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {_NUMBER: str(value)}
    return value


def _unpack_any(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {_NUMBER}:
            return float(value[_NUMBER])
        return {k: _unpack_any(v) for k, v in value.items()}
    return [_unpack_any(v) for v in value] if isinstance(value, list) else value
