"""Records as JSON text and back, exactly: infinities, sets, tuples and every character included.

Fields that have their default are left out, and fields a text lacks get theirs, so that a ledger of an older version
is read by a newer one. The text is plain ASCII: no database refuses a character of it.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
_Step = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, eq=False)
class _Direction:
    """To JSON or from it: what becomes of records, sequences, plain types, and values whose type says nothing."""

    record: Callable[[Any], _Step]
    sequence: Callable[[Iterable[Any]], Any]
    plain: Mapping[Any, _Step]
    other: _Step


_NUMBER = "$number"  # marks an infinity where the type does not say that a number is meant


def encode(value: object, kind: Any = None) -> str:
    """A record, or several (`kind` says of what type), as JSON text."""
    return json.dumps(pack(value, kind), ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def decode(kind: type[T], text: str) -> T:
    """The record of that type which `encode` wrote."""
    return unpack(kind, json.loads(text))


def pack(value: object, kind: Any = None) -> Any:
    """A record, or several, as what JSON can hold."""
    declared: Any = kind or type(value)
    return _converter(declared, _PACK)(value)


def unpack(kind: type[T], document: Any) -> T:
    """The record of that type which `pack` made a document of; the document is used up."""
    declared: Any = kind
    return _converter(declared, _UNPACK)(document)  # type: ignore[no-any-return]


def storable(text: str) -> str:
    """A text that every database stores: NUL and lone surrogates written as escapes.

    >>> storable("a\\x00b\\ud800é")
    'a\\\\x00b\\\\ud800é'
    """
    if text.isascii() and "\x00" not in text:
        return text
    return text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()


@cache
def _converter(kind: Any, direction: _Direction) -> _Step:
    """What turns a value of a type into JSON, or back: one walk over the type, whichever the direction."""
    if is_dataclass(kind):
        return direction.record(kind)
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        step = _converter(next(a for a in inner if a is not type(None)), direction)
        return lambda v: None if v is None else step(v)
    if origin is tuple and inner[-1] is Ellipsis:
        step = _converter(inner[0], direction)
        return lambda v: direction.sequence(map(step, v))
    if origin is tuple:
        steps = [_converter(a, direction) for a in inner]
        return lambda v: direction.sequence(s(x) for s, x in zip(steps, v, strict=True))
    return direction.plain.get(origin or kind, direction.other)


def _record_packer(kind: Any) -> _Step:
    hints = get_type_hints(kind)
    parts = [(f.name, _converter(hints[f.name], _PACK), _default(f)) for f in fields(kind)]

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
    names = {f.name for f in fields(kind)}
    # what JSON gives as it is needs no step: a ledger of thousands of jobs is read at once
    steps = [(name, _converter(hints[name], _UNPACK)) for name in names if hints[name] not in (int, str, bool)]

    def unpack(document: dict[str, Any]) -> Any:
        if not document.keys() <= names:
            document = {name: value for name, value in document.items() if name in names}
        for name, step in steps:
            if name in document:
                document[name] = step(document[name])
        return kind(**document)

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


_SCALARS: dict[Any, _Step] = {int: int, str: str, bool: bool}
_PACK = _Direction(_record_packer, list, {**_SCALARS, float: _pack_float, frozenset: sorted}, _pack_any)
_UNPACK = _Direction(_record_unpacker, tuple, {**_SCALARS, float: float, frozenset: frozenset}, _unpack_any)
