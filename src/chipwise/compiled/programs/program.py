"""A program ready to be lowered: a function, the shapes it takes, and where they lie on the target's devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jax.sharding import Mesh


class UnsupportedOp(Exception):
    """An operation of the user's program that has no translation to XLA."""

    def __init__(self, op: str, source: str, hint: str) -> None:
        self.op, self.source, self.hint = op, source, hint
        at = f" at {source}" if source else ""
        super().__init__(f"{op}{at} has no translation to XLA; {hint}")


@dataclass(frozen=True, slots=True)
class Program:
    """What the worker lowers and compiles. Shapes carry their shardings, so `lower` needs nothing else."""

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

    def argument_bytes(self) -> int:
        """Bytes of all arguments before sharding."""
        import jax

        return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(self.args))
