"""A program ready to be lowered (a function, its shapes, their places), and the choices a training step leaves open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jax.sharding import Mesh

KEPT = ("query_proj", "key_proj", "value_proj", "context", "out_proj", "mlpwo")  # "selective" keeps these and dots
BLOCK = 512  # rows of a block of queries and keys; MaxText's default (configs/base.yml, 2025-06)


@dataclass(frozen=True, slots=True)
class Recompute:
    """What the backward pass finds of the forward: ``none`` (all kept), ``dots``, or only what is named."""

    policy: str = "named"  # "none", "dots" or "named"
    keep: tuple[str, ...] = ()
    offload: tuple[str, ...] = ()


RECOMPUTE = {
    "none": Recompute("none"),
    "selective": Recompute("dots"),
    "full": Recompute(),
    "offload": Recompute(offload=("decoder_layer_input",)),
}


@dataclass(frozen=True, slots=True)
class Execution:
    """How a training step is run: everything that changes its time and memory and not what it computes."""

    micro_batch: int  # samples of one device at a time
    recompute: Recompute = RECOMPUTE["none"]
    accumulate: int = 1  # micro-batches before the update
    platform: str = "tpu"  # whose attention kernel: "tpu" is splash, "cudnn" is cuDNN's, others the compiler's own
    block_size: int = BLOCK  # of the splash kernel
    chunked_loss: bool = True  # logits a chunk at a time and computed again, or all at once and kept


@dataclass(frozen=True, slots=True)
class Program:
    """What is lowered and compiled. Shapes carry their shardings, so `lower` needs nothing else."""

    fn: Callable[..., Any]
    args: tuple[Any, ...]  # pytrees of jax.ShapeDtypeStruct
    donate: tuple[int, ...] = ()  # arguments whose memory the outputs may take
    mesh: Mesh | None = None
    out_shardings: Any = None  # pytree of shardings, or None: the compiler chooses
    varies: tuple[str, ...] = ()  # shapes said to vary from call to call, in words
    notes: tuple[str, ...] = ()
    choices: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # what a search may pick, and from what

    def lower(self) -> Any:
        """The program traced and lowered for its devices (a ``jax.stages.Lowered``)."""
        import jax

        if not self.donate and self.out_shardings is None and hasattr(self.fn, "lower"):
            return self.fn.lower(*self.args)  # already jitted: its own donations and shardings hold
        options: dict[str, Any] = {"donate_argnums": self.donate}
        if self.out_shardings is not None:
            options["out_shardings"] = self.out_shardings
        return jax.jit(self.fn, **options).lower(*self.args)
