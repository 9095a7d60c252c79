"""A point: a kind of work at given sizes, in one precision. One step or kernel, as it is measured and predicted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SUITES = ("kernels", "train", "serve", "vision", "collectives")
DTYPES = ("fp32", "tf32", "bf16", "fp16", "fp8", "int8")

# Each kind of work with the sizes that define it.
#   m, n, k: a product (m x k)(k x n); rows and columns of a norm or softmax; rows drawn from a table (gather: m of n
#   rows, k wide). b sequences of length s. Attention: h query heads, hk of keys, d wide. Decoders: layers, d model
#   width, h heads, hk of keys, f feed-forward width, vocab. bytes: of one operand. count: elements of the parameters.
KINDS: Mapping[str, tuple[str, ...]] = {
    "gemm": ("m", "n", "k"),
    "copy": ("bytes",),
    "add": ("bytes",),
    "rmsnorm": ("m", "n"),
    "softmax": ("m", "n"),
    "sdpa_fwd": ("b", "h", "hk", "s", "d"),
    "sdpa_fwdbwd": ("b", "h", "hk", "s", "d"),
    "gather": ("m", "n", "k"),
    "adamw": ("count",),
    "train": ("b", "s", "layers", "d", "h", "hk", "f", "vocab"),
    "prefill": ("b", "s", "layers", "d", "h", "hk", "f", "vocab"),
    "decode": ("b", "s", "layers", "d", "h", "hk", "f", "vocab"),
    "resnet50_train": ("b",),
    "resnet50_infer": ("b",),
    "vit_train": ("b", "s", "layers", "d", "h", "f"),
    "vit_infer": ("b", "s", "layers", "d", "h", "f"),
    "all_reduce": ("bytes", "devices"),
    "all_gather": ("bytes", "devices"),
    "reduce_scatter": ("bytes", "devices"),
    "all_to_all": ("bytes", "devices"),
}


@dataclass(frozen=True, slots=True)
class Point:
    """One kernel or step. `causal` holds for attention; `compile` and `remat` for models."""

    suite: str
    kind: str
    dtype: str
    sizes: Mapping[str, int]
    compile: bool = False  # torch.compile or one jit of the whole step; otherwise op by op
    remat: bool = False  # each block computed again in the backward pass
    causal: bool = True
    model: str = ""  # the preset's name, where the sizes are those of one

    def key(self) -> tuple[Any, ...]:
        """What makes two points the same."""
        return (self.kind, self.dtype, tuple(sorted(self.sizes.items())), self.compile, self.remat, self.causal)

    def as_json(self) -> dict[str, Any]:
        """Plain values; what is false or empty is left out."""
        flags = {name: True for name in ("compile", "remat") if getattr(self, name)}
        causal = {} if self.causal or not self.kind.startswith("sdpa") else {"causal": False}
        return {
            "suite": self.suite,
            "kind": self.kind,
            "dtype": self.dtype,
            **dict(self.sizes),
            **flags,
            **causal,
            **({"model": self.model} if self.model else {}),
        }
