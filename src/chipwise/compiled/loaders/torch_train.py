"""A training step around a PyTorch graph: gradients by JAX, then SGD with momentum or AdamW."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from chipwise.compiled.loaders.torch_graph import Graph
from chipwise.errors import InputError
from chipwise.programs.jax.optimizer import adamw
from chipwise.programs.optimizers import AdamW

OPTIMIZERS = ("sgd", "adamw")
_RATE, _MOMENTUM = 1e-3, 0.9
_ADAMW = AdamW(_RATE)


def training_step(graph: Graph, optimizer: str) -> Callable[..., Any]:
    """`step(params, state, buffers, key, *inputs) -> (params, state, buffers, loss)`."""
    if optimizer not in OPTIMIZERS:
        raise InputError("optimizer", optimizer, " or ".join(OPTIMIZERS))
    update = _sgd if optimizer == "sgd" else _adamw

    def step(params: Any, state: Any, buffers: Any, key: Any, *inputs: Any) -> tuple[Any, Any, Any, Any]:
        trained = {name: p for name, p in params.items() if jnp.issubdtype(p.dtype, jnp.floating)}

        def loss(trained: Any) -> tuple[Any, dict[str, Any]]:
            written, outputs = graph.run({**params, **trained}, buffers, inputs, key)
            value = outputs[0]
            if value.shape != ():
                raise InputError("loss", f"shape {value.shape}", "one number: a scalar tensor")
            return value.astype(jnp.float32), written

        (value, written), grads = jax.value_and_grad(loss, has_aux=True)(trained)
        new, state = update(trained, grads, state)
        return {**params, **new}, state, {**buffers, **written}, value

    return step


def optimizer_state(optimizer: str, params: Mapping[str, jax.ShapeDtypeStruct]) -> dict[str, Any]:
    """Shapes of the optimizer's state: fp32, as PyTorch recipes keep it."""
    floats = {name: p for name, p in params.items() if jnp.issubdtype(p.dtype, jnp.floating)}

    def moments() -> dict[str, jax.ShapeDtypeStruct]:
        return {name: jax.ShapeDtypeStruct(p.shape, jnp.float32, sharding=p.sharding) for name, p in floats.items()}

    if optimizer == "sgd":
        return {"momentum": moments()}
    return {"first": moments(), "second": moments(), "count": jax.ShapeDtypeStruct((), jnp.int32)}


def _sgd(params: Any, grads: Any, state: Any) -> tuple[Any, Any]:
    momentum = jax.tree.map(lambda m, g: _MOMENTUM * m + g.astype(jnp.float32), state["momentum"], grads)
    new = jax.tree.map(lambda p, m: (p.astype(jnp.float32) - _RATE * m).astype(p.dtype), params, momentum)
    return new, {"momentum": momentum}


def _adamw(params: Any, grads: Any, state: Any) -> tuple[Any, Any]:
    count = state["count"] + 1
    new, first, second = adamw(_ADAMW, params, grads, (state["first"], state["second"]), _ADAMW.corrections(count))
    return new, {"first": first, "second": second, "count": count}
