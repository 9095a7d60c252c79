"""Protobuf's wire format read without its library: the fields of a message, by number.

Those that are not known are passed over, as protobuf has it (protobuf.dev/programming-guides/encoding, 2026-11-19).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types
MOST_VARINT_BYTES = 10


class Malformed(ValueError):
    """A body that is not what it says."""


def messages(data: bytes, place: int) -> Iterator[bytes]:
    """The messages in a field of that number."""
    for number, kind, value in fields(data):
        if number == place and kind == BYTES:
            yield value


def fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """The fields of a message: number, wire type, and a whole number or bytes."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, place = _varint(data, place)
            yield number, kind, value
            continue
        if kind == BYTES:
            length, place = _varint(data, place)
        elif kind in (FIXED64, FIXED32):
            length = 8 if kind == FIXED64 else 4
        else:
            raise Malformed(f"wire type {kind}")
        if place + length > len(data):
            raise Malformed("it is cut")
        yield number, kind, data[place : place + length]
        place += length


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(MOST_VARINT_BYTES):
        if place + shift >= len(data):
            raise Malformed("it is cut")
        octet = data[place + shift]
        value |= (octet & 0x7F) << (7 * shift)
        if octet < 0x80:
            return value & (2**64 - 1), place + shift + 1
    raise Malformed("a number without an end")


def text_of(octets: bytes) -> str:
    """Text of anyone's."""
    return octets.decode("utf-8", "replace")
