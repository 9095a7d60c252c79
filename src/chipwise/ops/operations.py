"""The operations a model is made of: products, attention, memory-bound work, and the table that holds them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from chipwise.workload.model import Model
from chipwise.workload.params import Params


@dataclass(frozen=True, slots=True)
class Window:
    """What makes a product a convolution: its rows are windows that slide over an image, and hold its values often."""

    taps: float  # values of one channel in a window
    stride: float  # input positions for each output position: the square of the stride
    groups: float = 1.0  # of channels, each convolved alone
    of_data: bool = False  # over the images themselves, whose gradient nobody needs

    @property
    def shared(self) -> float:
        """Windows that hold one value, on average."""
        return max(1.0, self.taps / self.stride)

    @property
    def covered(self) -> float:
        """Input positions that are read for each output position."""
        return self.taps / self.shared


@dataclass(frozen=True, slots=True)
class Matmul:
    """`count` products of (rows x k) by (k x n) a sequence; with `groups`, that many experts share the rows.

    Of a convolution with groups of channels, k and n are those of one group.
    """

    name: str
    rows: float
    n: float
    k: float
    count: float
    split: str = ""
    groups: float = 1.0
    place: str = "layer"  # "layer", "head" (output layer), "stem" (first convolutions, patches)
    quantized: bool = True  # low-precision training computes this product in the low precision
    per_sequence: bool = False  # rows do not shrink with context parallelism
    window: Window | None = None  # of a convolution

    @property
    def blocks(self) -> float:
        """Products side by side: the groups of a convolution."""
        return self.window.groups if self.window else 1.0


@dataclass(frozen=True, slots=True)
class Attention:
    """`count` attention cores a sequence: `span` keys seen by each query on average before masking."""

    heads: float
    kv_heads: float
    qk_dim: float
    v_dim: float
    queries: float
    span: float
    causal: bool
    count: float

    @property
    def visible(self) -> float:
        """Mean keys a query attends to."""
        if self.span < self.queries:
            return self.span * (1 - self.span / (2 * self.queries)) if self.causal else self.span
        return self.queries / 2 if self.causal else self.span


class StreamKind(StrEnum):
    """Memory-bound work that isn't the same everywhere."""

    PLAIN = "plain"
    NORM = "norm"  # a norm over images or groups of channels, and the activation behind it
    JOIN = "join"  # a branch added to another
    DROPOUT = "dropout"  # in training alone


@dataclass(frozen=True, slots=True)
class Stream:
    """Memory-bound work: bytes moved per row forward, `kernels` launches, when nothing is fused."""

    name: str
    rows: float
    bytes_per_row: float  # at two bytes an element
    count: float
    kernels: float
    split: bool  # tensor (and sequence) parallelism divides it
    place: str = "layer"
    kind: StreamKind = StreamKind.PLAIN


@dataclass(frozen=True, slots=True)
class OpTable:
    """Every operation of one forward pass over one sequence, and the parameters behind it."""

    model: Model
    sequence: int
    matmuls: tuple[Matmul, ...]
    attention: tuple[Attention, ...]
    streams: tuple[Stream, ...]
    params: Params
    expert_layers: int
    rows: float  # tokens (or patches, or pixels of the widest map) a sequence

    @property
    def flops_forward(self) -> float:
        """Model FLOPs of one forward pass over one sequence (causal attention counted once)."""
        mm = sum(2 * m.rows * m.n * m.k * m.count * m.blocks for m in self.matmuls)
        at = sum(2 * a.queries * a.visible * a.heads * (a.qk_dim + a.v_dim) * a.count for a in self.attention)
        return mm + at
