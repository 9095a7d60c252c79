"""Linear layers of the reference transformers: what each multiplies, in which precision, and adapters beside them.

A low-rank adapter (LoRA, arXiv 2106.09685) adds x A B to x W, of which only A and B are trained. A has the split of the
inputs of W over the tensor axis and B that of its outputs, so that no collective is added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from chipwise.programs.jax.collectives import Grid, gathered
from chipwise.programs.jax.low_precision import letters_of, product
from chipwise.programs.jax.weights import EXPERT_SHARD, SHARD, Weight

RANK = "z"  # the letter of an adapter's rank
ATTENTION = ("wq", "wk", "wv", "wo", "q_down", "q_up", "kv_down", "kv_up")
# name, or its end -> what is multiplied, and the dimension of the weight that is split over devices
SPECS: Mapping[str, tuple[str, int]] = {
    **dict.fromkeys(("wq", "wk", "wv"), ("bsd,dhk->bshk", 0)),
    "wo": ("bshk,hkd->bsd", 2),
    **dict.fromkeys(("q_down", "kv_down"), ("bsd,dr->bsr", 0)),
    **dict.fromkeys(("q_up", "kv_up"), ("bsr,rhk->bshk", 0)),
    **dict.fromkeys(("w_up", "w_gate", "s_up", "s_gate"), ("bsd,df->bsf", 0)),
    **dict.fromkeys(("w_down", "s_down"), ("bsf,fd->bsd", 1)),
    **dict.fromkeys(("e_up", "e_gate"), ("ecd,edf->ecf", 1)),
    "e_down": ("ecf,efd->ecd", 2),
}


def linear(
    x: jax.Array,
    w: Mapping[str, Any],
    name: str,
    grid: Grid,
    own: Callable[[jax.Array], jax.Array] = lambda weight: weight,
) -> jax.Array:
    """`x` through the layer `name` of `w` and its adapter; `own` takes this device's heads of a whole weight."""
    spec, axis = SPECS[name]
    over = EXPERT_SHARD if name.startswith("e_") else SHARD
    out = product(spec, x, own(gathered(w[name], grid, axis, over)), grid)
    if name + "_a" not in w:
        return out
    into, back = adapter_specs(spec)
    low = jnp.einsum(into, x, w[name + "_a"].astype(x.dtype))
    added: jax.Array = out + jnp.einsum(back, low, own(w[name + "_b"].astype(x.dtype)))
    return added


def adapters(layer: Mapping[str, Weight], rank: int, targets: str) -> dict[str, Weight]:
    """Both matrices of each adapter of a stacked layer; of the attention projections, or of all linear layers."""
    out: dict[str, Weight] = {}
    for name, weight in layer.items():
        if name not in SPECS or (targets == "attention" and name not in ATTENTION):
            continue
        spec, _ = SPECS[name]
        _, letters, _ = letters_of(spec)
        shape = dict(zip(letters, weight.shape[1:], strict=True)) | {RANK: rank}
        split = dict(zip(letters, weight.split[1:], strict=True)) | {RANK: None}
        for end, matrix in zip(("_a", "_b"), (letters_of(part)[1] for part in adapter_specs(spec)), strict=True):
            axes = [axis if axis in ("tensor", "expert") else None for axis in (split[letter] for letter in matrix)]
            out[name + end] = Weight((weight.shape[0], *(shape[letter] for letter in matrix)), (None, *axes))
    return out


def adapter_specs(spec: str) -> tuple[str, str]:
    """What both matrices of an adapter multiply.

    >>> adapter_specs("bsd,dhk->bshk"), adapter_specs("ecd,edf->ecf")
    (('bsd,dz->bsz', 'bsz,zhk->bshk'), ('ecd,edz->ecz', 'ecz,ezf->ecf'))
    """
    left, right, out = letters_of(spec)
    summed = [letter for letter in right if letter not in out]
    alike = "".join(letter for letter in right if letter in left and letter in out)
    low = "".join(letter for letter in left if letter not in summed) + RANK
    into = alike + "".join(summed) + RANK
    back = alike + RANK + "".join(letter for letter in right if letter not in left)
    return f"{left},{into}->{low}", f"{low},{back}->{out}"
