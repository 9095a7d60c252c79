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

from chipwise.observe.protobuf import BYTES, FIXED64, VARINT, Malformed, fields, messages, text_of

Attributes = dict[str, str]
NANO = 10**9
DELTA = 1  # AggregationTemporality: what a sum rose by since it was last told, instead of since it began


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
    for of_resource in messages(body, 1):
        resource = {key: text for message in messages(of_resource, 1) for key, text in _attributes(message, 1)}
        for of_scope in messages(of_resource, 2):
            for metric in messages(of_scope, 2):
                yield from _of_metric(metric, resource)


def _of_metric(metric: bytes, resource: Attributes) -> Iterator[NumberPoint]:
    name = unit = ""
    kinds: list[tuple[bytes, bool]] = []
    for number, kind, value in fields(metric):
        if kind == BYTES and number in (1, 3):
            name, unit = (text_of(value), unit) if number == 1 else (name, text_of(value))
        elif kind == BYTES and number in (5, 7):  # gauge, sum
            kinds.append((value, number == 7))
    for data, is_sum in kinds:
        settings = {number: value for number, kind, value in fields(data) if kind == VARINT}
        for point in messages(data, 1):
            at, amount = 0, None
            for number, kind, value in fields(point):
                if kind == FIXED64 and number == 3:
                    (at,) = struct.unpack("<Q", value)
                elif kind == FIXED64 and number in (4, 6):
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
    for pair in messages(message, place):
        key, text = "", None
        for number, kind, value in fields(pair):
            if number == 1 and kind == BYTES:
                key = text_of(value)
            elif number == 2 and kind == BYTES:
                text = _any_value(value)
        if text is not None:
            yield key, text


def _any_value(message: bytes) -> str | None:
    for number, kind, value in fields(message):
        if number == 1 and kind == BYTES:
            return text_of(value)
        if number == 2 and kind == VARINT:
            return str(bool(value))
        if number == 3 and kind == VARINT:
            return str(value - 2**64 if value >= 2**63 else value)
        if number == 4 and kind == FIXED64:
            return str(struct.unpack("<d", value)[0])
    return None
