"""Training in JAX: losses, optimisers over trees of weights, and the case that threads their state."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from chipwise.bench.frameworks.interface import GRADIENT_SLACK, Case
from chipwise.bench.frameworks.jax_common import (
    Array,
    Context,
    case,
    compiled,
    float64,
    normal,
    precision_name,
    relative_error,
    small_model,
    widened,
)
from chipwise.bench.frameworks.jax_kernels import BETA1, adamw
from chipwise.ops.point import Point

Loss = Callable[..., Array]


def seeded(name: str, shape: tuple[int, ...], dtype: Any, scale: float, mean: float = 0.0) -> Array:
    """Random numbers that depend on a name, so that a model's weights don't depend on the order they are made in."""
    return normal(zlib.crc32(name.encode()), shape, dtype, scale, mean)


def cross_entropy(logits: Array, labels: Array) -> Array:
    """Mean cross-entropy over the last axis, in fp32."""
    wide = logits.astype(jnp.float32)
    chosen = jnp.take_along_axis(wide, labels[..., None], axis=-1)[..., 0]
    return jnp.mean(jax.nn.logsumexp(wide, axis=-1) - chosen)


def adamw_state(weights: Any) -> dict[str, Any]:
    """Weights, both moments in the weights' precision, and the number of the step."""
    mean, square = zeros_like(weights), zeros_like(weights)
    return {"weights": weights, "mean": mean, "square": square, "step": jnp.ones((), jnp.float32)}


def zeros_like(tree: Any) -> Any:
    """Zeros in the shape of a tree, made by one program rather than one for each shape."""
    return jax.jit(lambda: jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), tree))()


def adamw_step(loss: Loss) -> Callable[..., tuple[dict[str, Any], Array]]:
    """One step of training by AdamW on a batch: the next state and the loss."""

    def step(state: dict[str, Any], *batch: Array) -> tuple[dict[str, Any], Array]:
        value, gradients = jax.value_and_grad(loss)(state["weights"], *batch)
        old, tree = jax.tree.flatten(state["weights"])
        moments = (jax.tree.leaves(part) for part in (gradients, state["mean"], state["square"]))
        new = [adamw(w, g, m, v, state["step"]) for w, g, m, v in zip(old, *moments, strict=True)]
        weights, mean, square = (jax.tree.unflatten(tree, [one[i] for one in new]) for i in range(3))
        return {"weights": weights, "mean": mean, "square": square, "step": state["step"] + 1}, value

    return step


def copied(tree: Any) -> Any:
    """Copies of a tree's arrays, made by one program."""
    return jax.jit(lambda arrays: jax.tree.map(jnp.copy, arrays))(tree)


def threaded(
    point: Point,
    context: Context,
    step: Callable[..., tuple[Any, Array]],
    state: Any,
    batches: Sequence[tuple[Array, ...]],
    reference: Reference,
) -> Case:
    """A case whose state is donated to each call and given back by it; its output is the loss.

    On small models the first step of the very program that is timed is held against gradients in fp32: what they make
    of the moments, since the loss of random weights says little.
    """
    kept = copied(state) if small_model(point) else None  # a step consumes the originals
    program = compiled(step, state, *batches[0], donate=(0,), precision=precision_name(point.dtype), context=context)
    held = [state]

    def call(i: int) -> object:
        held[0], value = program(held[0], *batches[i % len(batches)])
        return value

    def check() -> float:
        assert kept is not None
        precise = widened((kept["weights"], *batches[0]))
        wide = compiled(jax.grad(reference.loss), *precise, precision="highest")(*precise)
        expected = reference.moment(precise[0], wide)
        after, _ = program(copied(kept), *batches[0])
        return relative_error(in_a_row(after[reference.name]), in_a_row(expected))

    return replace(case(point, call, check if kept is not None else None), slack=reference.slack)


@dataclass(frozen=True, slots=True)
class Reference:
    """What a first step is held against: the loss, and the moment of the state that gradients make."""

    loss: Loss
    name: str = "mean"
    moment: Callable[[Any, Any], Any] = lambda weights, gradients: jax.tree.map(lambda g: (1 - BETA1) * g, gradients)
    slack: float = GRADIENT_SLACK


def in_a_row(tree: Any) -> Any:
    """All numbers of a tree, in float64."""
    return np.concatenate([float64(leaf).ravel() for leaf in jax.tree.leaves(tree)])
