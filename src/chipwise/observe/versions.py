"""Versions of what a run rests on, as its log says them: driver, compiler, libraries of collectives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from chipwise.observe.data_files import rows

_VERSION = r"\s{1,8}v?(?P<version>\d{1,6}(?:\.\d{1,10}){1,4}[\w.+-]{0,40})"


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((row["label"], re.compile(f"(?:{row['before']}){_VERSION}")) for row in rows("versions.csv"))


def versions_in(line: str) -> Iterator[tuple[str, str]]:
    """What a line says of versions, by what they are of.

    >>> dict(versions_in("| NVIDIA-SMI 580.95.05    Driver Version: 580.95.05    CUDA Version: 13.0 |"))
    {'driver': '580.95.05', 'cuda': '13.0'}
    >>> dict(versions_in("node1:7:7 [0] NCCL INFO NCCL version 2.27.5+cuda12.9"))
    {'nccl': '2.27.5+cuda12.9'}
    """
    if "ersion" not in line:
        return
    for label, pattern in _patterns():
        match = pattern.search(line)
        if match is not None:
            yield label, match["version"].rstrip(".-+")
