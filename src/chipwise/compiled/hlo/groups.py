"""Which devices a collective joins: every form XLA prints replica groups in, as an array [groups, size]."""

from __future__ import annotations

import math
import re

import numpy as np
from numpy.typing import NDArray

from chipwise.compiled.hlo.lexical import NotHlo
from chipwise.compiled.hlo.module import Instruction
from chipwise.compiled.hlo.values import decode

Groups = NDArray[np.int64]

_NUMBER = r"\d{1,9}"
_LIST = rf"{_NUMBER}(?:,{_NUMBER})*"
_IOTA = re.compile(rf"\[({_LIST})\](?:<=\[({_LIST})\])?(?:T\(({_LIST})\))?$")
_MESH = re.compile(r"mesh\[([^\]]*)\](?:, ?device_ids=\((.*)\))? ?\{([^{}]*)\}$")
_AXIS = re.compile(rf"'?([^'=,:]+)'?=({_NUMBER})$")
_PICK = re.compile(rf"'?([^'=,:]+)'?(?::\(({_NUMBER})\)({_NUMBER}))?$")
_PLAIN = re.compile(rf"{_LIST}$")
_MOST = 1 << 24  # devices; text that claims more is corrupt


def replica_groups(instruction: Instruction, devices: int) -> Groups:
    """Device numbers of each group; one group of all `devices` where the text names none.

    Accepts `{{0,1},{2,3}}`, `[2,2]<=[4]`, `[2,2]<=[2,2]T(1,0)` and `mesh['x'=2,'y'=2] {'y'}`. Groups of unequal size
    are padded with -1.
    """
    text = instruction.raw.get("replica_groups", "{}")
    if text.startswith("mesh[") and "device_ids" in instruction.raw:
        text = f"{text}, device_ids={instruction.raw['device_ids']}"  # printed as if it were an attribute of its own
    return parse_groups(text, devices)


def parse_groups(text: str, devices: int) -> Groups:
    """The groups `text` spells.

    >>> parse_groups("[2,2]<=[2,2]T(1,0)", 4).tolist()
    [[0, 2], [1, 3]]
    >>> parse_groups("mesh['x'=2,'y'=3] {'x'}", 6).tolist()
    [[0, 3], [1, 4], [2, 5]]
    """
    if text in ("{}", "{{}}"):
        return np.arange(devices, dtype=np.int64).reshape(1, devices)
    if text.startswith("{"):
        return _explicit(text)
    if text.startswith("mesh["):
        return _mesh(text)
    groups = _iota(text, text)
    if groups.ndim != 2:
        raise _bad(text)
    return groups


def source_target_pairs(instruction: Instruction) -> Groups:
    """The [pairs, 2] of a collective-permute: from which device to which."""
    text = instruction.raw.get("source_target_pairs", "{}")
    if text in ("{}", "{{}}"):
        return np.empty((0, 2), dtype=np.int64)
    pairs = _explicit(text)
    if pairs.shape[1] != 2:
        raise _bad(text)
    return pairs


def _bad(text: str) -> NotHlo:
    return NotHlo("HLO replica groups", text, "groups such as {{0,1},{2,3}}, [2,2]<=[4] or mesh['x'=4] {'x'}")


def _explicit(text: str) -> Groups:
    rows = decode(text)
    if not isinstance(rows, list) or not rows or not all(isinstance(row, list) for row in rows):
        raise _bad(text)
    if not all(isinstance(n, int) and 0 <= n < _MOST for row in rows for n in row):
        raise _bad(text)
    groups = np.full((len(rows), max(len(row) for row in rows)), -1, dtype=np.int64)
    for i, row in enumerate(rows):
        groups[i, : len(row)] = row
    return groups


def _iota(text: str, whole: str) -> Groups:
    """Counted devices, reshaped and transposed: `[dims]<=[reshape]T(permutation)`."""
    match = _IOTA.match(text)
    if match is None:
        raise _bad(whole)
    dims, reshape, order = ([int(n) for n in part.split(",")] if part is not None else None for part in match.groups())
    dims = dims or []
    reshape = reshape or dims
    count = math.prod(dims)
    permutation = order if order is not None else list(range(len(reshape)))
    if count > _MOST or math.prod(reshape) != count or sorted(permutation) != list(range(len(reshape))):
        raise _bad(whole)
    devices = np.arange(count, dtype=np.int64).reshape(reshape).transpose(permutation)
    return devices.reshape(dims)


def _mesh(text: str) -> Groups:
    """Groups along the named axes of a mesh; an axis may be split, `'x':(2)4` being size 4 after the first 2."""
    match = _MESH.match(text)
    if match is None:
        raise _bad(text)
    names, sizes = _axes(match[1], text)
    count = math.prod(sizes)
    if not 0 < count <= _MOST:
        raise _bad(text)
    devices = _assigned(match[2], count, text)
    picks: dict[str, list[tuple[int, int, int]]] = {}  # axis -> (first, size, place in the group)
    for order, pick in enumerate(match[3].split(",") if match[3].strip() else ()):
        part = _PICK.match(pick.strip())
        if part is None or part[1] not in names:
            raise _bad(text)
        size = sizes[names.index(part[1])]
        picks.setdefault(part[1], []).append((int(part[2] or 1), int(part[3] or size), order))
    shape: list[int] = []
    grouped: dict[int, int] = {}  # place in the group -> dimension
    for name, size in zip(names, sizes, strict=True):
        done = 1
        for first, width, order in sorted(picks.get(name, [])):
            if first < done or first % done or width < 1 or size % (first * width):
                raise _bad(text)
            grouped[order] = len(shape) + 1
            shape += [first // done, width]
            done = first * width
        shape.append(size // done)
    members = [grouped[order] for order in sorted(grouped)]
    others = [d for d in range(len(shape)) if d not in members]
    width = math.prod(shape[d] for d in members)
    return devices.reshape(shape).transpose(others + members).reshape(-1, width)


def _axes(text: str, whole: str) -> tuple[list[str], list[int]]:
    names, sizes = [], []
    for axis in text.split(","):
        match = _AXIS.match(axis.strip())
        if match is None or match[1] in names:
            raise _bad(whole)
        names.append(match[1])
        sizes.append(int(match[2]))
    return names, sizes


def _assigned(text: str | None, count: int, whole: str) -> Groups:
    """The devices of a mesh in order: counted, listed, or an iota of their own."""
    if text is None:
        return np.arange(count, dtype=np.int64)
    if _PLAIN.match(text):
        devices = np.array([int(n) for n in text.split(",")], dtype=np.int64)
    else:
        devices = _iota(text, whole).reshape(-1)
    if devices.size != count:
        raise _bad(whole)
    return devices
