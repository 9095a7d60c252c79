"""What the JAX cases share: precisions, random inputs, sets that outgrow the cache, compiling, errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from chipwise.bench.frameworks.interface import Case, Device, Unsupported
from chipwise.ops.point import Point
from chipwise.ops.work import work_of

Array = jax.Array
ARRAY_DTYPE = {"fp32": jnp.float32, "tf32": jnp.float32, "bf16": jnp.bfloat16, "fp16": jnp.float16, "int8": jnp.int8}
MOST_SETS = 64
MEMORY_SHARE = 0.25  # of the device, for the inputs of kernels
HOST_ELEMENTS = 2**18  # up to here drawing on the host takes less time than compiling a generator for the shape
CHECKED_ELEMENTS, CHECKED_FLOPS = 2**22, 2e9  # larger results aren't worth the minutes of float64
CHECKED_PARAMS, CHECKED_MODEL_FLOPS = 30_000_000, 1e11  # of models, against fp32 on the same device
_REFUSED = ("UNIMPLEMENTED", "INVALID_ARGUMENT", "NOT_FOUND: No registered")


@dataclass(slots=True)
class Context:
    """The device that cases are built for, and what was found while building them."""

    device: Device
    local: Sequence[Any]  # the JAX devices of its kind, the measured one first
    notes: list[str] = field(default_factory=list)
    planned_bytes: float | None = None  # by the compiler, for the program built last

    @property
    def capability(self) -> str:
        """Compute capability as JAX says it ("9.0", "gfx942"), or nothing."""
        return str(getattr(self.local[0], "compute_capability", ""))

    def note(self, text: str) -> None:
        """Remember something that a reader of the results needs, once."""
        if text not in self.notes:
            self.notes.append(text)


def one_line(error: BaseException, limit: int = 200) -> str:
    """The first line of an error's message, or its type where it has none."""
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def is_out_of_memory(error: BaseException) -> bool:
    """Whether XLA says that memory ran out, while compiling or running.

    >>> is_out_of_memory(RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 80GiB."))
    True
    """
    return isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error) or "Out of memory" in str(error)


def array_dtype(point: Point) -> Any:
    """The dtype of the arrays of a point; fp8 is the kernels' own affair."""
    if point.dtype not in ARRAY_DTYPE:
        raise Unsupported(f"JAX has no {point.kind} in {point.dtype} here")
    return ARRAY_DTYPE[point.dtype]


def model_dtype(point: Point, context: Context) -> Any:
    """The dtype of a model's weights; only floating point, and only compiled as a whole."""
    if not point.compile:
        raise Unsupported("JAX runs models compiled")
    if point.dtype not in ("fp32", "tf32", "bf16", "fp16"):
        raise Unsupported(f"{point.kind} in {point.dtype} isn't written for JAX; fp32, tf32, bf16 and fp16 are")
    require_tf32(point, context)
    return ARRAY_DTYPE[point.dtype]


def require_tf32(point: Point, context: Context) -> None:
    """Refuse tf32 where there is no such unit."""
    if point.dtype == "tf32" and context.device.platform not in ("cuda", "rocm"):
        raise Unsupported(f"tf32 exists on GPUs only, not on {context.device.name}")


def precision_name(dtype: str) -> str:
    """What `jax.default_matmul_precision` is set to: full fp32 products unless tf32 is asked for."""
    return {"fp32": "highest", "tf32": "tensorfloat32"}.get(dtype, "default")


def sets_for(set_bytes: float, device: Device) -> int:
    """How many sets of inputs together pass twice the last-level cache, within 64 sets and a quarter of memory.

    >>> device = Device("cuda", "x", memory_bytes=80e9, count=1, cache_bytes=50e6)
    >>> sets_for(30e6, device), sets_for(200e6, device), sets_for(1e3, device)
    (4, 1, 64)
    """
    sets = math.ceil(2 * device.cache_bytes / max(set_bytes, 1.0))
    affordable = int(MEMORY_SHARE * device.memory_bytes / max(set_bytes, 1.0))
    return max(1, min(sets, affordable, MOST_SETS))


@partial(jax.jit, static_argnums=(1, 2))
def _normal(key: Array, shape: tuple[int, ...], dtype: Any, scale: float, mean: float) -> Array:
    wide = dtype if jnp.dtype(dtype).itemsize > 1 else jnp.bfloat16
    drawn = jax.random.normal(key, shape, wide) * jnp.asarray(scale, wide) + jnp.asarray(mean, wide)
    return drawn.astype(dtype)


@partial(jax.jit, static_argnums=(1, 2, 3, 4))
def _integers(key: Array, shape: tuple[int, ...], low: int, high: int, dtype: Any) -> Array:
    return jax.random.randint(key, shape, low, high, jnp.int32).astype(dtype)


def _key(seed: int) -> Array:
    return jax.random.key(seed, impl="rbg")  # the device's own generator: quick to compile and to run


def normal(seed: int, shape: tuple[int, ...], dtype: Any, scale: float = 1.0, mean: float = 0.0) -> Array:
    """Normally distributed numbers; int8 gets whole numbers from -127 to 127, all as likely."""
    if jnp.dtype(dtype) == jnp.int8:
        return integers(seed, shape, 255, low=-127, dtype=jnp.int8)
    if math.prod(shape) <= HOST_ELEMENTS:
        drawn = np.random.default_rng(seed).standard_normal(shape, np.float32) * np.float32(scale) + np.float32(mean)
        return jnp.asarray(drawn.astype(jnp.dtype(dtype)))
    values: Array = _normal(_key(seed), shape, dtype, scale, mean)
    return values


def integers(seed: int, shape: tuple[int, ...], count: int, low: int = 0, dtype: Any = jnp.int32) -> Array:
    """`count` different whole numbers from `low` on, all as likely."""
    if math.prod(shape) <= HOST_ELEMENTS:
        return jnp.asarray(np.random.default_rng(seed).integers(low, low + count, shape, jnp.dtype(dtype)))
    values: Array = _integers(_key(seed), shape, low, low + count, dtype)
    return values


def compiled(
    function: Callable[..., Any],
    *args: Any,
    donate: tuple[int, ...] = (),
    precision: str = "default",
    context: Context | None = None,
) -> Callable[..., Any]:
    """One program for these arguments; what XLA says it can't do is `Unsupported`."""
    try:
        with jax.default_matmul_precision(precision):
            program = jax.jit(function, donate_argnums=donate).lower(*args).compile()
    except (RuntimeError, NotImplementedError) as error:
        if is_out_of_memory(error) or not (isinstance(error, NotImplementedError) or _refused(error)):
            raise
        raise Unsupported(f"XLA can't compile it: {one_line(error)}") from error
    if context is not None:
        context.planned_bytes = _planned(program)
    return program


def _refused(error: BaseException) -> bool:
    return any(word in str(error) for word in _REFUSED)


def _planned(program: Any) -> float | None:
    """Bytes of arguments, results and scratch of a program as its compiler laid them out."""
    plan = program.memory_analysis()
    if plan is None:
        return None
    held_bytes = plan.argument_size_in_bytes + plan.output_size_in_bytes - plan.alias_size_in_bytes
    return float(held_bytes + plan.temp_size_in_bytes)


def case(point: Point, call: Callable[[int], object], check: Callable[[], float] | None = None) -> Case:
    """A case with the work of its point."""
    work = work_of(point)
    return Case(call, work.flops, work.moved_bytes, work.items, work.params, check)


def float64(array: object) -> np.ndarray[Any, np.dtype[np.float64]]:
    """An array on the host in float64."""
    return np.asarray(array).astype(np.float64)


def relative_error(result: object, expected: object) -> float:
    """||found - expected|| / ||expected||, in float64."""
    reference = float64(expected)
    difference = float(np.linalg.norm((float64(result) - reference).ravel()))
    size = float(np.linalg.norm(reference.ravel()))
    return difference / size if size else difference


def small_model(point: Point) -> bool:
    """Whether a model is small enough to be run again in fp32 as a check."""
    work = work_of(point)
    return work.params <= CHECKED_PARAMS and work.flops <= CHECKED_MODEL_FLOPS


def widened(tree: Any) -> Any:
    """The same values with every floating-point array in fp32."""

    def wide(x: Array) -> Array:
        return x.astype(jnp.float32) if jnp.issubdtype(x.dtype, jnp.floating) else x

    return jax.jit(lambda arrays: jax.tree.map(wide, arrays))(tree)


def checkable(point: Point, elements: int) -> bool:
    """Whether a result is small enough to be checked in float64."""
    return elements <= CHECKED_ELEMENTS and work_of(point).flops <= CHECKED_FLOPS
