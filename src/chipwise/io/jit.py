"""Numba: how functions are compiled, and when what is cached on disk is out of date.

`jit_cached` is called from Python and keeps what it compiles on disk, beside its file or in the user's cache folder;
`jit_helper` is called by other compiled functions; `jit_inline` becomes a part of its caller, for those that would pass
too much at each call. `jit_cached_alloc` is a `jit_cached` that allocates arrays. No fastmath anywhere: equal input
gives equal bits.

What is kept are pickles: whoever can write them runs code. A folder is used only where it and all in it are the user's
own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numba.core.caching import IndexDataCacheFile
from numba.core.dispatcher import Dispatcher
from numba.core.options import DefaultOptions
from numpy.typing import NDArray

from chipwise.io.owner import others_can_write
from chipwise.io.printable import printable

F = TypeVar("F", bound=Callable[..., object])
S = TypeVar("S", bound=np.generic)

PLAIN: dict[str, Any] = {"error_model": "numpy"}
# arrays of the caller's: nothing counts references to them, which would take most of the time
LENT: dict[str, Any] = PLAIN | ({"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {})
CONSTANT = (bool, int, float, str, tuple)  # globals whose values are compiled in, wherever they come from
WITHIN: dict[str, Any] = LENT | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def jit_cached(function: F) -> F:
    """Compile at the first call; it makes no arrays."""
    return _kept(function, LENT)


def jit_cached_alloc(function: F) -> F:
    """Compile at the first call; it may make arrays, and may be called by others that do."""
    return _kept(function, PLAIN)


def jit_helper(function: F) -> F:
    """Compile as a part of what calls it; it makes no arrays."""
    return cast(F, njit(**WITHIN)(function))


def jit_inline(function: F) -> F:
    """Compile into what calls it."""
    return cast(F, njit(**WITHIN, forceinline=True)(function))


def lent(array: NDArray[S]) -> NDArray[S]:
    """An array that compiled code reads alone, whoever owns it: it is compiled once, not again for each that may write.

    >>> import numpy as np
    >>> lent(np.zeros(2)).flags.writeable
    False
    """
    view = array.view()
    view.flags.writeable = False
    return view


def _kept(function: F, how: dict[str, Any]) -> F:
    try:
        made: Any = njit(cache=True, **how)(function)
    except RuntimeError:  # neither folder can be written
        return cast(F, njit(**how)(function))
    file = made._cache._cache_file
    if problem := others_can_write(Path(file._cache_path)):
        _say_once(problem)
        return cast(F, njit(**how)(function))
    made._cache._cache_file = _File(file._cache_path, file._index_name.removesuffix(".nbi"), made)
    return cast(F, made)


@cache
def _say_once(problem: str) -> None:
    own = "NUMBA_CACHE_DIR names one of your own"
    sys.stderr.write(
        printable(f"chipwise: compiled code is not kept, and compiled again by each command: {problem}; {own}") + "\n"
    )


class _File(IndexDataCacheFile):
    """Out of date when any source that went into it has changed: Numba itself looks at the caller's alone."""

    def __init__(self, folder: str, base: str, made: Any) -> None:
        self._made = made
        self._known = ""
        super().__init__(folder, base, "")  # type: ignore[no-untyped-call]

    @property
    def _source_stamp(self) -> str:
        if not self._known:  # at the first call, when all that it names is there
            self._known = sources_of(self._made)
        return self._known

    @_source_stamp.setter
    def _source_stamp(self, stamp: str) -> None:
        """Found by ourselves."""


def sources_of(made: Any) -> str:
    """A digest of every file whose functions a compiled function reaches, and of the constants that these name."""
    files, constants = set(), set()
    for function in _reached(made):
        files.add(function.__code__.co_filename)
        named = ((name, function.__globals__.get(name)) for name in function.__code__.co_names)
        constants |= {f"{name} {value!r}" for name, value in named if isinstance(value, CONSTANT)}
    digest = sha256()
    for file in sorted(files):
        digest.update(Path(file).read_bytes() + b"\0")
    digest.update("\0".join(sorted(constants)).encode())
    return digest.hexdigest()


def _reached(made: Any) -> Iterator[FunctionType]:
    """The function and all compiled ones that it calls, directly or not."""
    found, waiting = {made.py_func}, [made.py_func]
    while waiting:
        function = waiting.pop()
        yield function
        modules = [v for v in map(function.__globals__.get, function.__code__.co_names) if isinstance(v, ModuleType)]
        for name in function.__code__.co_names:
            for place in (function.__globals__, *(vars(module) for module in modules)):
                callee = place.get(name)
                if isinstance(callee, Dispatcher) and callee.py_func not in found:
                    found.add(callee.py_func)
                    waiting.append(callee.py_func)
