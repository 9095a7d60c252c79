"""What "training in bf16" means: which format weights, activations, gradients and updates have, and loss scaling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chipwise.errors import InputError, UnknownName
from chipwise.numerics.formats import BF16, E4M3, E5M2, FP16, Format

STATIC_SCALE = 1024.0
# PyTorch's GradScaler and the mixed-precision paper (arXiv 1710.03740) start high and halve on overflow
DYNAMIC_SCALE = 65_536.0


@dataclass(frozen=True, slots=True)
class Recipe:
    """One way to train. `low` is the format of activations, gradients and the weights they meet (None: fp32).

    `master`: weights and optimizer state are kept and updated in fp32; else they are in `low` too. `products`: the
    formats of the operands of products with weights and of the gradients that enter them, scaled per tensor.
    """

    name: str
    precision: str
    low: Format | None
    master: bool
    scaling: str = "none"  # none, static or dynamic
    products: tuple[Format, Format] | None = None
    words: str = ""


RECIPES = (
    Recipe("fp32", "fp32", None, True, words="everything in fp32"),
    Recipe("bf16", "bf16", BF16, False, words="weights, activations, gradients, optimizer state and updates in bf16"),
    Recipe("bf16+master", "bf16", BF16, True, words="bf16 activations and gradients; fp32 weights and optimizer state"),
    Recipe("fp16", "fp16", FP16, True, words="fp16 activations and gradients, fp32 weights; no loss scaling"),
    Recipe("fp16+static", "fp16", FP16, True, "static", words="as fp16, the loss times a fixed scale"),
    Recipe(
        "fp16+dynamic",
        "fp16",
        FP16,
        True,
        "dynamic",
        words="as fp16, the scale halved on overflow and doubled after a run of finite steps",
    ),
    Recipe(
        "fp8",
        "fp8",
        BF16,
        True,
        products=(E4M3, E5M2),
        words="products with weights: e4m3 operands, e5m2 gradients, scaled per tensor; the rest as bf16+master",
    ),
)
PRECISIONS = ("fp32", "bf16", "fp16", "fp8")


def chosen(precisions: str) -> tuple[Recipe, ...]:
    """The recipes of a list of precisions; fp32 always comes first, since the others are compared with it.

    >>> [recipe.name for recipe in chosen("bf16")]
    ['fp32', 'bf16', 'bf16+master']
    """
    names = [name.strip().lower() for name in precisions.split(",") if name.strip()]
    if not names:
        raise InputError("precisions", precisions, f"some of {', '.join(PRECISIONS)}")
    for name in names:
        if name not in PRECISIONS:
            raise UnknownName("precisions", name, PRECISIONS)
    if set(names) == {"fp32"}:
        raise InputError("precisions", precisions, "at least one besides fp32, which the others are compared with")
    return tuple(recipe for recipe in RECIPES if recipe.precision in {"fp32", *names})


def of_precision(recipes: Sequence[Recipe], precision: str) -> tuple[Recipe, ...]:
    """The recipes of one precision, the plainest first."""
    return tuple(recipe for recipe in recipes if recipe.precision == precision)


class LossScale:
    """The factor on the loss: 1, fixed, or dynamic.

    >>> scale = LossScale("dynamic", 1024.0, grow_after=2)
    >>> for finite in (False, True, True): scale.update(finite)
    >>> scale.value
    65536.0
    """

    def __init__(self, scaling: str, static: float, grow_after: int) -> None:
        self.dynamic = scaling == "dynamic"
        self.value = DYNAMIC_SCALE if self.dynamic else static if scaling == "static" else 1.0
        self.grow_after, self.good = grow_after, 0

    def update(self, finite: bool) -> None:
        """Learn whether the gradients of a step were finite."""
        if not self.dynamic:
            return
        self.good = self.good + 1 if finite else 0
        if not finite:
            self.value = max(self.value / 2, 1.0)
        elif self.good == self.grow_after:
            self.value, self.good = self.value * 2, 0
