"""OpenTelemetry's metrics as they come over HTTP, in protobuf or JSON: numbers of gauges and sums, and of what.

Of the protocol (opentelemetry-proto v1: metrics.proto, common.proto, resource.proto; read 2026-11-19) no more is read
than that; fields that are not known are passed over, as protobuf has it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Attributes = dict[str, str]
NANO = 10**9
DELTA = 1  # AggregationTemporality: what a sum rose by since it was last told, instead of since it began
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MOST_VARINT_BYTES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberPoint:
    """A number of a metric at a moment."""

    name: str
    unit: str
    is_counter: bool  # a sum that only rises
    is_delta: bool
    at_s: int
    value: float
    attributes: Attributes  # of its resource, then its own


class Malformed(ValueError):
    """A body that is not what it says."""


def points_of_json(body: bytes) -> list[NumberPoint]:
    """The points of a body in JSON: 64-bit numbers are texts, fields in lower camel case."""
    try:
        return list(_of_document(json.loads(body)))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise Malformed(f"no metrics of OTLP in JSON ({type(error).__name__})") from None


def points_of_protobuf(body: bytes) -> list[NumberPoint]:
    """The points of a body in protobuf."""
    try:
        return list(_of_request(body))
    except (ValueError, struct.error, OverflowError) as error:
        raise Malformed(f"no metrics of OTLP in protobuf ({error})") from None


def _of_document(document: Any) -> Iterator[NumberPoint]:
    for of_resource in document.get("resourceMetrics", ()):
        resource = _json_attributes(of_resource.get("resource", {}).get("attributes", ()))
        for of_scope in of_resource.get("scopeMetrics", ()):
            for metric in of_scope.get("metrics", ()):
                rising = metric.get("sum", {})
                for point in (*metric.get("gauge", {}).get("dataPoints", ()), *rising.get("dataPoints", ())):
                    value = point.get("asDouble", point.get("asInt"))
                    if value is not None:
                        yield NumberPoint(
                            name=str(metric["name"]),
                            unit=str(metric.get("unit", "")),
                            is_counter=bool(rising.get("isMonotonic")),
                            is_delta=_is_delta(rising.get("aggregationTemporality")),
                            at_s=int(point.get("timeUnixNano", 0)) // NANO,
                            value=float(value),
                            attributes=resource | _json_attributes(point.get("attributes", ())),
                        )


def _is_delta(temporality: object) -> bool:
    return temporality in (DELTA, "AGGREGATION_TEMPORALITY_DELTA")


def _json_attributes(rows: Sequence[Mapping[str, Any]]) -> Attributes:
    out = {}
    for row in rows:
        value = next(iter(row.get("value", {}).values()), None)
        if isinstance(value, str | int | float):
            out[str(row["key"])] = str(value)
    return out


def _of_request(body: bytes) -> Iterator[NumberPoint]:
    for of_resource in _messages(body, 1):
        resource = {key: text for message in _messages(of_resource, 1) for key, text in _attributes(message, 1)}
        for of_scope in _messages(of_resource, 2):
            for metric in _messages(of_scope, 2):
                yield from _of_metric(metric, resource)


def _of_metric(metric: bytes, resource: Attributes) -> Iterator[NumberPoint]:
    name = unit = ""
    kinds: list[tuple[bytes, bool]] = []
    for number, kind, value in _fields(metric):
        if kind == _BYTES and number in (1, 3):
            name, unit = (_text(value), unit) if number == 1 else (name, _text(value))
        elif kind == _BYTES and number in (5, 7):  # gauge, sum
            kinds.append((value, number == 7))
    for data, is_sum in kinds:
        settings = {number: value for number, kind, value in _fields(data) if kind == _VARINT}
        for point in _messages(data, 1):
            at, amount = 0, None
            for number, kind, value in _fields(point):
                if kind == _FIXED64 and number == 3:
                    (at,) = struct.unpack("<Q", value)
                elif kind == _FIXED64 and number in (4, 6):
                    (amount,) = struct.unpack("<d" if number == 4 else "<q", value)
            if amount is not None:
                yield NumberPoint(
                    name=name,
                    unit=unit,
                    is_counter=is_sum and bool(settings.get(3)),
                    is_delta=is_sum and settings.get(2) == DELTA,
                    at_s=at // NANO,
                    value=float(amount),
                    attributes=resource | dict(_attributes(point, 7)),
                )


def _attributes(message: bytes, place: int) -> Iterator[tuple[str, str]]:
    for pair in _messages(message, place):
        key, text = "", None
        for number, kind, value in _fields(pair):
            if number == 1 and kind == _BYTES:
                key = _text(value)
            elif number == 2 and kind == _BYTES:
                text = _any_value(value)
        if text is not None:
            yield key, text


def _any_value(message: bytes) -> str | None:
    for number, kind, value in _fields(message):
        if number == 1 and kind == _BYTES:
            return _text(value)
        if number == 2 and kind == _VARINT:
            return str(bool(value))
        if number == 3 and kind == _VARINT:
            return str(value - 2**64 if value >= 2**63 else value)
        if number == 4 and kind == _FIXED64:
            return str(struct.unpack("<d", value)[0])
    return None


def _messages(data: bytes, place: int) -> Iterator[bytes]:
    for number, kind, value in _fields(data):
        if number == place and kind == _BYTES:
            yield value


def _fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """The fields of a message: number, wire type, and a whole number or bytes."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, place = _varint(data, place)
            yield number, kind, value
            continue
        if kind == _BYTES:
            length, place = _varint(data, place)
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            raise Malformed(f"wire type {kind}")
        if place + length > len(data):
            raise Malformed("it is cut")
        yield number, kind, data[place : place + length]
        place += length


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(_MOST_VARINT_BYTES):
        if place + shift >= len(data):
            raise Malformed("it is cut")
        octet = data[place + shift]
        value |= (octet & 0x7F) << (7 * shift)
        if octet < 0x80:
            return value & (2**64 - 1), place + shift + 1
    raise Malformed("a number without an end")


def _text(octets: bytes) -> str:
    return octets.decode("utf-8", "replace")
