"""Numba: how functions are compiled, and when what is cached on disk is out of date.

`jit_cached` is called from Python and keeps what it compiles on disk, beside its file or in the user's cache folder;
`jit_helper` is called by other compiled functions; `jit_inline` becomes a part of its caller, for those that would pass
too much at each call. `jit_cached_alloc` is a `jit_cached` that allocates arrays. No fastmath anywhere: equal input
gives equal bits, also where `interpreted` runs them in Python.

Numba is imported at the first call, since that takes longer than much that commands do.

What is kept are pickles: whoever can write them runs code. A folder is used only where it and all in it are the user's
own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import RLock
from types import FunctionType, ModuleType
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from chipwise.io.owner import others_can_write
from chipwise.io.printable import printable

F = TypeVar("F", bound=Callable[..., object])
S = TypeVar("S", bound=np.generic)

CONSTANT = (bool, int, float, str, tuple)  # globals whose values are compiled in, wherever they come from
_LOCK = RLock()  # one thread makes what several call
_INTERPRETED: ContextVar[bool] = ContextVar("interpreted", default=False)


def jit_cached(function: F) -> F:
    """Compile at the first call; it makes no arrays."""
    return cast(F, Compiled(function, lambda: _kept(function, _lent())))


def jit_cached_alloc(function: F) -> F:
    """Compile at the first call; it may make arrays, and may be called by others that do."""
    return cast(F, Compiled(function, lambda: _kept(function, _plain())))


def jit_helper(function: F) -> F:
    """Compile as a part of what calls it; it makes no arrays."""
    return cast(F, Compiled(function, lambda: _njit(**_within())(function)))


def jit_inline(function: F) -> F:
    """Compile into what calls it."""
    return cast(F, Compiled(function, lambda: _njit(**_within(), forceinline=True)(function)))


@contextmanager
def interpreted() -> Iterator[None]:
    """Run compiled functions in Python meanwhile: of a handful of rows that is faster than loading what is compiled."""
    before = _INTERPRETED.set(True)
    try:
        with np.errstate(all="ignore"):  # as compiled: no error and no warning
            yield
    finally:
        _INTERPRETED.reset(before)


class Compiled:
    """A function that Numba compiles when it is first called."""

    def __init__(self, function: Callable[..., object], make: Callable[[], Any]) -> None:
        self.py_func = function
        self.__wrapped__, self.__doc__, self.__name__ = function, function.__doc__, function.__name__
        self.__module__, self.__qualname__ = function.__module__, function.__qualname__
        self._make = make
        self._made: Any = None

    def __call__(self, *args: Any) -> Any:
        """Its value, by compiled code."""
        if _INTERPRETED.get():
            return self.py_func(*args)
        return self.dispatcher(*args)

    @property
    def dispatcher(self) -> Any:
        """What Numba makes of it, with all that it calls."""
        if self._made is None:
            with _LOCK:
                if self._made is None:
                    _make_callees(cast(FunctionType, self.py_func))
                    self._made = self._make()
        return self._made


def _make_callees(function: FunctionType) -> None:
    """Put what Numba makes of the functions that one names in their place: Numba looks them up by name."""
    for name, place in _named(function):
        callee = place.get(name)
        if isinstance(callee, Compiled):
            place[name] = callee.dispatcher


def _named(function: FunctionType) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names that a function's code has, each with its module's names and with those of the modules that it names."""
    names = function.__code__.co_names
    modules = [v for v in map(function.__globals__.get, names) if isinstance(v, ModuleType)]
    places = [function.__globals__, *(vars(module) for module in modules)]
    return ((name, place) for name in names for place in places)


def _plain() -> dict[str, Any]:
    return {"error_model": "numpy"}


def _lent() -> dict[str, Any]:
    """For arrays of the caller's: nothing counts references to them, which would take most of the time."""
    from numba.core.options import DefaultOptions

    return _plain() | ({"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {})


def _within() -> dict[str, Any]:
    return _lent() | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def _njit(**how: Any) -> Any:
    from numba import njit

    return njit(**how)


def lent(array: NDArray[S]) -> NDArray[S]:
    """An array that compiled code reads alone, whoever owns it: it is compiled once, not again for each that may write.

    >>> import numpy as np
    >>> lent(np.zeros(2)).flags.writeable
    False
    """
    view = array.view()
    view.flags.writeable = False
    return view


def _kept(function: Callable[..., object], how: dict[str, Any]) -> Any:
    try:
        made: Any = _njit(cache=True, **how)(function)
    except RuntimeError:  # neither folder can be written
        return _njit(**how)(function)
    file = made._cache._cache_file
    if problem := others_can_write(Path(file._cache_path)):
        own = "NUMBA_CACHE_DIR names one of your own"
        _say_once(f"compiled code is not kept, and compiled again by each command: {problem}; {own}")
        return _njit(**how)(function)
    made._cache._cache_file = _file_class()(file._cache_path, file._index_name.removesuffix(".nbi"), made)
    load = made._cache.load_overload

    def load_or_say(signature: Any, context: Any) -> Any:
        kept = load(signature, context)
        if kept is None:
            _say_once("compiling for this machine: once after an install or an update, some 15 s for the router")
        return kept

    made._cache.load_overload = load_or_say
    return made


@cache
def _say_once(line: str) -> None:
    sys.stderr.write(printable(f"chipwise: {line}") + "\n")
    sys.stderr.flush()


@cache
def _file_class() -> Any:
    """The index file of what is kept, as Numba has it, with a stamp of our own."""
    from numba.core.caching import IndexDataCacheFile

    class File(IndexDataCacheFile):
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

    return File


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
    from numba.core.dispatcher import Dispatcher

    found, waiting = {made.py_func}, [made.py_func]
    while waiting:
        function = waiting.pop()
        yield function
        for name, place in _named(function):
            callee = place.get(name)
            if isinstance(callee, Dispatcher) and callee.py_func not in found:
                found.add(callee.py_func)
                waiting.append(callee.py_func)
