"""Shapes as XLA prints them: `bf16[8,128]{1,0:T(8,128)(2,1)S(1)}`, tuples of them, tokens."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from chipwise.compiled.hlo.lexical import NotHlo

BITS = {
    **dict.fromkeys(("token", "opaque"), 0),
    **dict.fromkeys(("s1", "u1"), 1),
    **dict.fromkeys(("s2", "u2"), 2),
    **dict.fromkeys(("s4", "u4", "f4e2m1fn"), 4),
    **dict.fromkeys(("pred", "s8", "u8"), 8),
    **dict.fromkeys(("f8e5m2", "f8e4m3", "f8e4m3fn", "f8e4m3b11fnuz", "f8e5m2fnuz", "f8e4m3fnuz"), 8),
    **dict.fromkeys(("f8e3m4", "f8e8m0fnu"), 8),
    **dict.fromkeys(("s16", "u16", "f16", "bf16"), 16),
    **dict.fromkeys(("s32", "u32", "f32"), 32),
    **dict.fromkeys(("s64", "u64", "f64", "c64"), 64),
    "c128": 128,
}
ON_CHIP, HOST = 1, 5  # memory spaces printed as S(n); 0 is HBM

_TOKEN = re.compile(r"\s*(?:/\*[^*]*\*/)?\s*(?:(\w+)\[([^\]]*)\](?:\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\})?|(b?\()|([,)]))")
_LAYOUT_PART = re.compile(r"([A-Z]+|[*#])((?:\([^()]*\))+)")
_DIM = re.compile(r"\s*(<=)?\s*(\d{1,18})\s*$")


@dataclass(frozen=True, slots=True)
class Shape:
    """An array, a tuple of shapes (`dtype` is "tuple"), or a token."""

    dtype: str
    dims: tuple[int, ...] = ()
    elements: tuple[Shape, ...] = ()
    minor_to_major: tuple[int, ...] | None = None
    tiles: tuple[tuple[int, ...], ...] = ()
    memory_space: int = 0
    element_bits: int = 0
    dynamic: tuple[bool, ...] = ()

    @property
    def is_tuple(self) -> bool:
        """Whether this is a tuple of shapes."""
        return self.dtype == "tuple"

    @property
    def size(self) -> int:
        """Number of array elements; of a tuple, the sum over its members."""
        return sum(e.size for e in self.elements) if self.is_tuple else math.prod(self.dims)

    @property
    def bits(self) -> int:
        """Bits of one element: as the layout packs it, otherwise as the type says."""
        return self.element_bits or BITS[self.dtype]

    @property
    def bytes(self) -> int:
        """Bytes of the values alone; upper bound for dynamic sizes, zero for tokens.

        >>> parse_shape("(bf16[3,5]{1,0}, pred[])").bytes
        31
        """
        if self.is_tuple:
            return sum(e.bytes for e in self.elements)
        return (self.size * self.bits + 7) // 8

    @property
    def tiled_bytes(self) -> int:
        """Bytes held in memory once padded to the layout's tiles; `bytes` where the layout names none.

        >>> parse_shape("bf16[3,5]{1,0:T(8,128)(2,1)}").tiled_bytes
        2048
        """
        if self.is_tuple:
            return sum(e.tiled_bytes for e in self.elements)
        dims = [self.dims[i] for i in reversed(self.minor_to_major)] if self.minor_to_major else list(self.dims)
        for tile in self.tiles:
            dims = [1] * (len(tile) - len(dims)) + dims
            cut = len(dims) - len(tile)
            dims = dims[:cut] + [-(-d // t) for d, t in zip(dims[cut:], tile, strict=True)] + list(tile)
        return (math.prod(dims) * self.bits + 7) // 8

    def leaves(self) -> Iterator[Shape]:
        """The arrays of this shape, depth first."""
        if self.is_tuple:
            for element in self.elements:
                yield from element.leaves()
        else:
            yield self


def parse_shape(text: str) -> Shape:
    """The shape `text` spells out.

    >>> parse_shape("f32[2,<=8]{1,0:T(8,128)S(1)}").memory_space
    1
    """
    stack: list[list[Shape]] = [[]]
    position, end, after = 0, len(text), False  # after: a member has just ended
    while position < end:
        token = _TOKEN.match(text, position)
        if token is None:
            if text[position:].strip():
                raise _bad(text)
            break
        position = token.end()
        dtype, dims, layout, opening, mark = token.groups()
        if after != (mark is not None) and not (mark == ")" and not stack[-1]):
            raise _bad(text)
        if dtype is not None:
            stack[-1].append(_array(text, dtype, dims, layout))
            after = True
        elif opening is not None:
            stack.append([])
            after = False
            if opening == "b(":
                stack[-1].append(_BUFFER)
        elif mark == ",":
            after = False
        else:
            members = stack.pop()
            if not stack:
                raise _bad(text)
            if members and members[0] is _BUFFER:
                stack[-1].extend(members[1:])
            else:
                stack[-1].append(Shape("tuple", elements=tuple(members)))
            after = True
        if len(stack) == 1 and mark == ",":
            raise _bad(text)
    if len(stack) != 1 or len(stack[0]) != 1:
        raise _bad(text)
    return stack[0][0]


_BUFFER = Shape("token")  # marks the members of a buffer type, `b(f32[8])`


def _bad(text: str) -> NotHlo:
    return NotHlo("HLO shape", text, "a shape such as bf16[8,128]{1,0:T(8,128)}")


def _array(text: str, dtype: str, sizes: str, layout: str | None) -> Shape:
    if dtype not in BITS:
        raise NotHlo("HLO shape", text, f"an element type XLA has, not {dtype}")
    dims, dynamic = [], []
    for size in sizes.split(",") if sizes.strip() else ():
        match = _DIM.match(size)
        if match is None:
            raise _bad(text)
        dims.append(int(match[2]))
        dynamic.append(match[1] is not None)
    if not layout:
        return Shape(dtype, tuple(dims), dynamic=tuple(dynamic) if any(dynamic) else ())
    order, _, rest = layout.partition(":")
    try:
        minor_to_major = tuple(int(i) for i in order.split(",")) if order.strip() else ()
        tiles, parts = _layout_parts(rest)
    except ValueError as error:
        raise _bad(text) from error
    if sorted(minor_to_major) != list(range(len(dims))):
        raise _bad(text)
    return Shape(
        dtype,
        tuple(dims),
        minor_to_major=minor_to_major,
        tiles=tiles,
        memory_space=parts.get("S", 0),
        element_bits=parts.get("E", 0),
        dynamic=tuple(dynamic) if any(dynamic) else (),
    )


def _layout_parts(text: str) -> tuple[tuple[tuple[int, ...], ...], dict[str, int]]:
    """Tiles, and the single numbers of memory space (S) and element bits (E); raises ValueError."""
    tiles: tuple[tuple[int, ...], ...] = ()
    parts: dict[str, int] = {}
    for key, groups in _LAYOUT_PART.findall(text):
        if key == "T" and "*" not in groups:
            tiles = tuple(tuple(int(n) for n in group.split(",")) for group in groups[1:-1].split(")("))
            if any(n < 1 for tile in tiles for n in tile):
                raise ValueError(text)
        elif key in ("S", "E"):
            parts[key] = int(groups[1:-1])
    return tiles, parts
