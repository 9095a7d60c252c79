"""Training in JAX: by rounding on a CPU, in the hardware's own formats on a GPU or TPU."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from chipwise.errors import InputError
from chipwise.numerics.engine import Backward
from chipwise.numerics.jax_rounding import Rounded, layer_of, rounded
from chipwise.numerics.programs import Program
from chipwise.numerics.recipes import Recipe
from chipwise.numerics.runs import Count

DTYPES = {"fp16": jnp.float16, "bf16": jnp.bfloat16}
_EVERY = 10  # native runs: steps between looks at what an fp32 backward pass would have given


class JaxEngine:
    """Trains a program whose `init(seed)` gives a tree of weights; they lie in one flat array."""

    def __init__(self, program: Program, emulate: bool) -> None:
        self.program, self.emulate = program, emulate
        self.software = f"JAX {jax.__version__}"
        first = jax.devices()[0]
        self.platform = first.platform
        self.device = "CPU" if first.platform == "cpu" else first.device_kind
        self.compiled: dict[Any, Any] = {}
        # the reference is fp32 itself: by default TPUs multiply it in bf16, and GPUs in tf32
        jax.config.update("jax_default_matmul_precision", "highest")

    @property
    def weights(self) -> int:
        """How many weights are trained."""
        return int(self.flat.size)

    def native(self, recipe: Recipe) -> bool:
        """Whether the hardware computes in the recipe's formats."""
        if recipe.low is None:
            return True
        if self.emulate or self.platform == "cpu" or recipe.products is not None:
            return False
        return recipe.low.name == "bf16" or self.platform != "tpu"  # TPUs have no fp16

    def begin(self, recipe: Recipe, seed: int) -> None:
        """Fresh weights of a seed."""
        self.recipe, self.seed, self.step = recipe, seed, 0
        params = self.program.make(seed)
        paths = jax.tree_util.tree_flatten_with_path(params)[0]
        if not paths or not all(jnp.issubdtype(jnp.result_type(leaf), jnp.floating) for _, leaf in paths):
            raise InputError("program.init", type(params).__name__, "a function that returns a tree of floating arrays")
        self.flat, self.unravel = _flat(params)
        layers = [layer_of(path) for path, _ in paths]
        self.layers = list(dict.fromkeys(layers))
        sizes = [int(jnp.size(leaf)) for _, leaf in paths]
        self.segments = jnp.asarray(np.repeat([self.layers.index(layer) for layer in layers], sizes))
        self.native_run = self.native(recipe) and recipe.low is not None
        if recipe.low is not None and not recipe.master:
            kept = DTYPES[recipe.low.name]
            self.flat = self.flat.astype(kept) if self.native_run else rounded(self.flat, recipe.low)
        self.state = self.program.optimizer.start(jnp.zeros_like(self.flat))
        self.numbers: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])

    def backward(self, batch: Any, scale: float, step: int) -> Backward:
        """Loss and gradients of a batch."""
        sites, function = self._function(batch)
        loss, self.gradient, counted, norm, finite = function(self.flat, batch, jnp.float32(scale))
        self._tally(sites, np.asarray(counted))
        if self.native_run and step % _EVERY == 0:
            keys = [(layer, "weight gradients") for layer in self.layers]
            self._tally(keys, np.asarray(self._compared(batch)))
        return Backward(float(loss), float(norm), bool(finite))

    def _tally(self, keys: list[tuple[str, str]], counted: Any) -> None:
        for key, numbers in zip(keys, counted, strict=True):
            cell = self.numbers[key]
            for i, number in enumerate(numbers):
                cell[i] += int(number)

    def _function(self, batch: Any) -> Any:
        """The compiled pass of the recipe's formats; loss scaling is an argument, so those recipes share one."""
        low = self.recipe.low
        key = (low, self.recipe.products, self.recipe.master if self.native_run else None, self.native_run)
        if key not in self.compiled:
            self.compiled[key] = self._made(batch)
        return self.compiled[key]

    def _made(self, batch: Any) -> Any:
        unravel, low = self.unravel, self.recipe.low
        sites: list[tuple[str, str]] = []
        shape = jax.eval_shape(lambda w, b: self.program.loss(unravel(w.astype(jnp.float32)), b), self.flat, batch)
        if getattr(shape, "shape", None) != () or not jnp.issubdtype(shape.dtype, jnp.floating):
            raise InputError("program.loss", str(shape), "a floating number: an array of shape ()")
        rounding = None
        if low is not None and not self.native_run:
            rounding = Rounded(self.program.loss, self.recipe, self.program.path)
            sites = rounding.sites(unravel(self.flat), batch)

        def value(flat: Any, probes: list[Any], b: Any, scale: Any) -> tuple[Any, Any]:
            if rounding is not None:
                loss = rounding(unravel(flat), b, dict(zip(sites, probes, strict=True)))
            elif low is not None:
                kept = DTYPES[low.name]
                loss = self.program.loss(_cast(unravel(flat.astype(jnp.float32)), kept), _cast(b, kept))
            else:
                loss = self.program.loss(unravel(flat), b)
            loss = loss.astype(jnp.float32)
            return loss * scale, loss

        def both(flat: Any, b: Any, scale: Any) -> Any:
            probes = [jnp.zeros(3, jnp.float32) for _ in sites]
            (_, loss), (gradient, counts) = jax.value_and_grad(value, argnums=(0, 1), has_aux=True)(
                flat, probes, b, scale
            )
            gradient = gradient / scale.astype(gradient.dtype)
            wide = gradient.astype(jnp.float32)
            finite = jnp.isfinite(loss) & jnp.all(jnp.isfinite(wide))
            norm = jnp.sqrt(jnp.sum(wide * wide))
            return loss, gradient, jnp.stack(counts) if counts else jnp.zeros((0, 3)), norm, finite

        return sites, jax.jit(both)

    def _compared(self, batch: Any) -> Any:
        """By layer: gradients the hardware made 0 or infinite that an fp32 backward pass would not have."""
        if "compared" not in self.compiled:
            loss, unravel = self.program.loss, self.unravel

            def true(flat: Any, computed: Any, b: Any, segments: Any) -> Any:
                gradient = jax.grad(lambda flat: loss(unravel(flat), b).astype(jnp.float32))(flat)
                some = (gradient != 0) & jnp.isfinite(gradient)
                return self._by_layer(segments, some, some & (computed == 0), some & jnp.isinf(computed))

            self.compiled["compared"] = jax.jit(true)
        return self.compiled["compared"](self.flat.astype(jnp.float32), self.gradient, batch, self.segments)

    def _by_layer(self, segments: Any, *flags: Any) -> Any:
        sums = [jax.ops.segment_sum(flag.astype(jnp.float32), segments, len(self.layers)) for flag in flags]
        return jnp.stack(sums, axis=1)

    def update(self) -> None:
        """One step of the optimizer; counts the weights an update left as they were."""
        self.step += 1
        low, optimizer, pure = self.recipe.low, self.program.optimizer, not self.recipe.master
        key = ("update", low if pure else None, self.native_run and pure)
        if key not in self.compiled:
            emulated = pure and low is not None and not self.native_run

            def to(values: Any) -> Any:
                return rounded(values, low) if emulated and low is not None else values

            def step(flat: Any, gradient: Any, state: Any, corrections: Any, segments: Any) -> Any:
                corrections = tuple(correction.astype(flat.dtype) for correction in corrections)
                new, update, state = optimizer.update(flat, gradient.astype(flat.dtype), state, corrections, to)
                some = update != 0
                counted = self._by_layer(segments, some, some & (new == flat), some & jnp.isinf(new))
                return new, state, counted

            self.compiled[key] = jax.jit(step)
        corrections = tuple(map(jnp.float32, optimizer.corrections(self.step)))
        self.flat, self.state, counted = self.compiled[key](
            self.flat, self.gradient, self.state, corrections, self.segments
        )
        self._tally([(layer, "updates") for layer in self.layers], np.asarray(counted))

    def counts(self) -> dict[tuple[str, str], Count]:
        """What was lost since `begin`."""
        return {key: Count(*cell) for key, cell in self.numbers.items()}


def _flat(params: Any) -> tuple[Any, Any]:
    """Weights as one array of fp32, and the function that makes the tree of it again."""
    leaves = [np.asarray(leaf, np.float32) for leaf in jax.tree.leaves(params)]
    _, unravel = ravel_pytree(jax.tree.unflatten(jax.tree.structure(params), leaves))
    return jnp.asarray(np.concatenate([leaf.ravel() for leaf in leaves])), unravel


def _cast(tree: Any, to: Any) -> Any:
    return jax.tree.map(lambda x: x.astype(to) if jnp.issubdtype(jnp.result_type(x), jnp.floating) else x, tree)
