"""What is measured: a point, a kind of work at given sizes, in one precision, through one framework.

Sizes have the names of the columns of flat rows (`COLUMNS`), so that a bench file and a table of rows say the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SUITES = ("kernels", "train", "serve", "vision", "collectives")
COLUMNS = (
    "kind",
    "dtype",
    "m",
    "n",
    "k",
    "seconds",
    "bytes",
    "b",
    "h",
    "hk",
    "s",
    "d",
    "model",
    "compile",
    "remat",
    "params",
    "peak_gib",
    "layers",
    "f",
    "vocab",
)
MORE_COLUMNS = ("causal", "framework")  # what a row says besides, where it isn't causal or through PyTorch
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
    """One thing to measure. `causal` holds for attention; `compile` and `remat` for models."""

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


@dataclass(frozen=True, slots=True)
class Summary:
    """Seconds of one call over the samples taken."""

    median: float
    p25: float
    p75: float
    low: float
    high: float
    samples: int
    calls: int  # in each sample, one after another
    samples_s: tuple[float, ...] = ()  # seconds of one call by each sample, sorted, four digits

    @property
    def spread(self) -> float:
        """Interquartile range over the median."""
        return (self.p75 - self.p25) / self.median if self.median else 0.0


@dataclass(frozen=True, slots=True)
class Watched:
    """What the device said of itself while a point ran; None where it says nothing."""

    power_w: float | None = None
    energy_j: float | None = None  # of one call
    utilisation: float | None = None  # share of the time that any kernel ran
    memory_bytes: float | None = None  # most in use on the device
    temperature_c: float | None = None  # highest
    clock_hz: float | None = None  # median clock of the cores
    throttled: tuple[str, ...] = ()  # reasons the device gave for lowering its clocks
    samples: int = 0


@dataclass(frozen=True, slots=True)
class Measurement:
    """What came of a point: `ok`, or why not (`unstable`, `oom`, `failed`, `unsupported`)."""

    point: Point
    framework: str  # torch or jax
    status: str
    seconds: Summary | None = None
    reason: str = ""  # in one line, where the status isn't ok
    flops: float = 0.0  # useful arithmetic of one call
    moved_bytes: float = 0.0  # fewest bytes one call must move through memory
    items: float = 0.0  # tokens, images or elements of one call
    params: int = 0
    peak_bytes: float | None = None  # most the framework's allocator held
    error: float | None = None  # relative to float64, where it was checked
    watched: Watched = field(default_factory=Watched)

    @property
    def usable(self) -> bool:
        """Whether calibration and comparisons may use it."""
        return self.status == "ok" and self.seconds is not None
