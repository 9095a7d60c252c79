"""Low precision in JAX by rounding: the loss is traced, and run again with every floating result rounded.

Each rounding is a function with its own derivative: it rounds the value on the way forward and the gradient on the way
back. Counts leave the same way: every rounding takes a probe, an array of zeros, and gives what it counted as the
probe's "gradient", so that they add up over all uses, in scans too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Literal

from chipwise.numerics.formats import Format
from chipwise.numerics.recipes import Recipe

KEEP = "fp32"  # what happens in jax.named_scope("fp32") is not rounded
# results that hold no new number
_MOVES = {
    "reshape",
    "transpose",
    "broadcast_in_dim",
    "squeeze",
    "slice",
    "dynamic_slice",
    "gather",
    "concatenate",
    "rev",
    "copy",
    "copy_p",
    "stop_gradient",
    "pad",
    "split",
    "select_n",
    "convert_element_type",
    "expand_dims",
    "dynamic_update_slice",
    "optimization_barrier",
    "sharding_constraint",
    "max",
    "min",
    "neg",
    "abs",
    "sign",
    "reduce_max",
    "reduce_min",
    "sort",
    "clamp",
}
# XLA makes one kernel of a chain of these, and only its result is stored
_ELEMENTWISE = {
    "add",
    "add_any",
    "sub",
    "mul",
    "div",
    "neg",
    "abs",
    "sign",
    "max",
    "min",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log1p",
    "tanh",
    "logistic",
    "erf",
    "erfc",
    "erf_inv",
    "integer_pow",
    "pow",
    "square",
    "sqrt",
    "rsqrt",
    "cbrt",
    "sin",
    "cos",
    "select_n",
    "clamp",
    "stop_gradient",
}
_CALLS = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "remat2": "jaxpr",
    "remat": "jaxpr",
    "checkpoint": "jaxpr",
}
_PRODUCTS = {"dot_general", "conv_general_dilated"}
Probes = Mapping[tuple[str, str], Any]


def rounded(values: Any, to: Format) -> Any:
    """Values rounded to a format, in fp32.

    A cast there and back could be taken out by XLA, and ReducePrecision makes subnormals 0; so the mantissa is cut by
    ReducePrecision at fp32's range, and small values are rounded to multiples of the smallest number.
    """
    near = jax.lax.reduce_precision(values, 8, to.mantissa_bits)
    if not to.range_of_fp32:
        step = 2.0 ** (to.least_exponent - to.mantissa_bits)
        near = jnp.where(jnp.abs(values) < 2.0**to.least_exponent, jnp.round(values / step) * step, near)
    if to.saturates:
        return jnp.where(jnp.isfinite(values), jnp.clip(near, -to.largest, to.largest), values)
    return jnp.where(jnp.abs(near) > to.largest, jnp.copysign(jnp.inf, values), near)


def scaled(values: Any, to: Format) -> Any:
    """Values rounded to a format after scaling the largest of them to its largest number ("current scaling")."""
    top = jnp.max(jnp.abs(values))
    fine = (top > 0) & jnp.isfinite(to.largest / top)
    factor = jnp.where(fine, to.largest / jnp.where(fine, top, 1.0), 1.0)
    return jnp.where(fine, rounded(values * factor, to) / factor, values)


How = tuple[Format, bool] | None  # a format, and whether it is scaled per tensor; None: left as it is


def _apply(values: Any, how: How) -> tuple[Any, Any]:
    """Rounded values, and counts: not 0 before, 0 after, infinite after."""
    if how is None:
        return values, jnp.zeros(3, jnp.float32)
    after = scaled(values, how[0]) if how[1] else rounded(values, how[0])
    if how[0].range_of_fp32:  # nothing to count
        return after, jnp.zeros(3, jnp.float32)
    some = values != 0
    counts = (some, some & (after == 0), jnp.isinf(after) & jnp.isfinite(values))
    return after, jnp.stack([jnp.sum(flags, dtype=jnp.int32) for flags in counts]).astype(jnp.float32)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def through(ahead: How, back: How, values: Any, probe: Any, probe_back: Any) -> Any:
    """Values rounded one way, their gradient the other; `probe` and `probe_back` are the probes."""
    return _apply(values, ahead)[0]


def _forward(ahead: How, back: How, values: Any, probe: Any, probe_back: Any) -> tuple[Any, Any]:
    return _apply(values, ahead)


def _backward(ahead: How, back: How, counts: Any, gradient: Any) -> tuple[Any, Any, Any]:
    after, lost = _apply(gradient, back)
    return after, counts, lost


through.defvjp(_forward, _backward)


class Rounded:
    """A loss that rounds as a recipe says; `probes` of a first trace tell which (layer, kind) it counts."""

    def __init__(self, loss: Callable[[Any, Any], Any], recipe: Recipe, path: Path) -> None:
        if recipe.low is None:
            raise ValueError(recipe.name)
        self.loss, self.products, self.file = loss, recipe.products, str(path.resolve())
        self.plain: How = (recipe.low, False)
        self.probed: dict[tuple[str, str], None] = {}
        self.probes: Probes = {}

    def sites(self, params: Any, batch: Any) -> list[tuple[str, str]]:
        """Every (layer, kind) that a trace meets."""
        jax.eval_shape(lambda p, b: self(p, b, {}), params, batch)
        return list(self.probed)

    def __call__(self, params: Any, batch: Any, probes: Probes) -> Any:
        """The loss on rounded weights, by rounded steps."""
        self.probes = probes
        paths = jax.tree_util.tree_flatten_with_path(params)[0]
        leaves = [self._weight(layer_of(path), leaf) for path, leaf in paths]
        traced = jax.make_jaxpr(self.loss)(params, batch)
        weights = dict(zip(traced.jaxpr.invars, (layer_of(path) for path, _ in paths), strict=False))
        out = self._run(traced.jaxpr, traced.consts, [*leaves, *jax.tree.leaves(batch)], weights, "")
        return out[0]

    def _probe(self, layer: str, kind: str) -> Any:
        self.probed[layer, kind] = None
        return self.probes.get((layer, kind), jnp.zeros(3, jnp.float32))

    def _weight(self, layer: str, leaf: Any) -> Any:
        probe, back = self._probe(layer, "weights"), self._probe(layer, "weight gradients")
        return through(self.plain, self.plain, leaf, probe, back)

    def _run(self, jaxpr: Any, consts: Sequence[Any], args: Sequence[Any], weights: dict[Any, str], scope: str) -> Any:
        """A jaxpr, equation by equation; `weights` says which variables are weights, or mere views of them."""
        values: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
        values.update(zip(jaxpr.invars, args, strict=True))

        def read(atom: Any) -> Any:
            return atom.val if isinstance(atom, Literal) else values[atom]

        fused = _fused(jaxpr)
        for equation in jaxpr.eqns:
            layer = _joined(scope, str(equation.source_info.name_stack))
            inputs = [read(atom) for atom in equation.invars]
            names = [None if isinstance(atom, Literal) else weights.get(atom) for atom in equation.invars]
            outputs = self._equation(equation, inputs, names, layer, fused)
            values.update(zip(equation.outvars, outputs, strict=True))
            if equation.primitive.name in _MOVES and names and names[0]:
                weights.update(dict.fromkeys(equation.outvars, names[0]))
        return [read(atom) for atom in jaxpr.outvars]

    def _equation(
        self, equation: Any, inputs: list[Any], names: list[str | None], scope: str, fused: set[Any]
    ) -> list[Any]:
        name, params = equation.primitive.name, equation.params
        if name in _CALLS:
            inner = params[_CALLS[name]]
            jaxpr, consts = (inner.jaxpr, inner.consts) if hasattr(inner, "consts") else (inner, ())
            return list(self._run(jaxpr, consts, inputs, _named(jaxpr.invars, names), scope))
        if name == "scan":
            return self._scan(params, inputs, names, scope)
        if name == "cond":
            return self._cond(params, inputs, names, scope)
        keep = KEEP in scope.split("/")
        layer = "/".join(part for part in scope.split("/") if _is_layer(part)) or self._line(equation)
        eight = self.products is not None and name in _PRODUCTS and any(names) and not keep
        if eight:
            inputs = [self._operand(value, weight, layer) for value, weight in zip(inputs, names, strict=True)]
        outputs = _called(equation, inputs)
        if keep or name in _MOVES or equation.outvars[0] in fused:
            return outputs
        return [self._result(part, layer, eight) for part in outputs]

    def _operand(self, value: Any, weight: str | None, layer: str) -> Any:
        if self.products is None or value.dtype != jnp.float32:
            return value
        owner, kind = (weight, "weights") if weight else (layer, "activations")
        return through((self.products[0], True), None, value, self._probe(owner, kind), jnp.zeros(3, jnp.float32))

    def _result(self, value: Any, layer: str, eight: bool) -> Any:
        # numbers (the loss among them) stay fp32, as they do in mixed precision
        if getattr(value, "dtype", None) != jnp.float32 or value.size < 2:
            return value
        back = (self.products[1], True) if eight and self.products is not None else self.plain
        probe, probe_back = self._probe(layer, "activations"), self._probe(layer, "gradients")
        return through(self.plain, back, value, probe, probe_back)

    def _scan(self, params: Any, inputs: list[Any], names: list[str | None], scope: str) -> list[Any]:
        fixed, carried, closed = params["num_consts"], params["num_carry"], params["jaxpr"]
        weights = _named(closed.jaxpr.invars, names)

        def body(carry: Any, slices: Any) -> tuple[Any, Any]:
            out = self._run(closed.jaxpr, closed.consts, [*inputs[:fixed], *carry, *slices], dict(weights), scope)
            return out[:carried], out[carried:]

        carry, stacked = jax.lax.scan(
            body,
            inputs[fixed : fixed + carried],
            inputs[fixed + carried :],
            length=params["length"],
            reverse=params["reverse"],
            unroll=params["unroll"],
        )
        return [*carry, *stacked]

    def _cond(self, params: Any, inputs: list[Any], names: list[str | None], scope: str) -> list[Any]:
        branches = [
            lambda *args, closed=closed: self._run(
                closed.jaxpr, closed.consts, args, _named(closed.jaxpr.invars, names[1:]), scope
            )
            for closed in params["branches"]
        ]
        return list(jax.lax.switch(inputs[0], branches, *inputs[1:]))

    def _line(self, equation: Any) -> str:
        """The line of the program that an equation comes from."""
        trace = equation.source_info.traceback
        for frame in trace.frames if trace is not None else ():
            if frame.file_name == self.file:
                return f"{Path(self.file).name}:{frame.line_num}"
        return "loss"


def _called(equation: Any, inputs: Sequence[Any]) -> list[Any]:
    """One equation as it stands, as jax.core's own interpreter runs it."""
    out = equation.primitive.bind(*inputs, **equation.primitive.get_bind_params(equation.params))
    return list(out) if equation.primitive.multiple_results else [out]


def layer_of(path: Any) -> str:
    """The layer of a weight: its place in the tree without its own name, or its name alone at the top."""
    names = [jax.tree_util.keystr((key,), simple=True) for key in path]
    return "/".join(names[:-1] or names) or "weights"


def _fused(jaxpr: Any) -> set[Any]:
    """Variables that live inside a chain of elementwise operations only: none but such reads them."""
    inside = {equation.outvars[0] for equation in jaxpr.eqns if equation.primitive.name in _ELEMENTWISE}
    inside -= {atom for atom in jaxpr.outvars if not isinstance(atom, Literal)}
    for equation in jaxpr.eqns:
        if equation.primitive.name not in _ELEMENTWISE:
            inside -= {atom for atom in equation.invars if not isinstance(atom, Literal)}
    return inside


def _named(variables: Sequence[Any], names: Sequence[str | None]) -> dict[Any, str]:
    return {var: name for var, name in zip(variables, names, strict=True) if name}


def _is_layer(part: str) -> bool:
    """Whether a part of a scope is a name of the user's: einsum adds its formula, transformations their brackets."""
    return part not in ("", KEEP) and "->" not in part and "(" not in part


def _joined(scope: str, more: str) -> str:
    return "/".join(part for part in (scope, more) if part)
