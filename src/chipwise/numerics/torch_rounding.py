"""Low precision in PyTorch by rounding: every function's result, every weight it meets, and both their gradients.

`Rounding` is a torch function mode: it sees each call of a torch function on the way forward, swaps parameters for
rounded copies and passes results through an autograd function that rounds them, and rounds their gradient on the way
back. What a function does inside (the sums of a product, a softmax, a norm, a loss) stays fp32, as in real kernels.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from chipwise.numerics.formats import Format
from chipwise.numerics.recipes import Recipe
from chipwise.numerics.runs import Count

DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
_PRODUCTS = {
    "linear",
    "matmul",
    "__matmul__",
    "__rmatmul__",
    "mm",
    "bmm",
    "addmm",
    "baddbmm",
    "einsum",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "bilinear",
}
_LOSS = "loss"  # the layer of what is done outside every module


def rounded(values: Tensor, to: Format) -> Tensor:
    """Values rounded to a format, in fp32 again."""
    if to.saturates:
        clipped = values.clamp(-to.largest, to.largest)  # NaN stays; the cast below would make NaN of too large ones
        return clipped.to(DTYPES[to.name]).float()
    return values.to(DTYPES[to.name]).float()


def scaled(values: Tensor, to: Format) -> Tensor:
    """Values rounded to a format after scaling the largest of them to its largest number ("current scaling")."""
    top = float(values.abs().max()) if values.numel() else 0.0
    if not 0.0 < top < float("inf"):
        return values
    factor = to.largest / top
    return rounded(values * factor, to) / factor if factor < float("inf") else values


class Tallies:
    """Counts by (layer, kind), kept as plain numbers."""

    def __init__(self) -> None:
        self.numbers: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])

    def add(self, layer: str, kind: str, before: Tensor, after: Tensor) -> None:
        """Count what a rounding lost."""
        cell = self.numbers[layer, kind]
        some = int(torch.count_nonzero(before))
        cell[0] += some
        cell[1] += some - int(torch.count_nonzero(after))
        if not torch.isfinite(after.sum()):
            cell[2] += int((torch.isinf(after) & torch.isfinite(before)).sum())

    def counts(self) -> dict[tuple[str, str], Count]:
        """The counts so far."""
        return {key: Count(*cell) for key, cell in self.numbers.items()}


Step = Callable[[Tensor], Tensor]


class _Through(torch.autograd.Function):
    """Values through one function on the way forward, gradients through another on the way back."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, ahead: Step, back: Step) -> Tensor:
        """Round the values."""
        ctx.back = back
        return ahead(values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        """Round the gradient."""
        return ctx.back(gradients[0]), None, None


def _through(values: Tensor, ahead: Step, back: Step) -> Tensor:
    out: Tensor = _Through.apply(values, ahead, back)  # type: ignore[no-untyped-call]
    return out


class Rounding(TorchFunctionMode):
    """Rounds what happens inside `with`, as a recipe says, and counts what is lost by layer."""

    def __init__(self, model: nn.Module, recipe: Recipe, tallies: Tallies) -> None:
        super().__init__()
        if recipe.low is None:
            raise ValueError(recipe.name)
        self.low, self.products, self.tallies = recipe.low, recipe.products, tallies
        self.owner = {id(p): name for name, p in model.named_parameters()}
        self.copies: dict[int, Tensor] = {}  # of a step, by the parameter's id
        self.copied: dict[int, str] = {}  # layers by the id of the copy
        self.layers: list[str] = []
        self.hooks: list[Any] = []
        for name, module in model.named_modules():
            self.hooks.append(module.register_forward_pre_hook(self._enter(name)))
            self.hooks.append(module.register_forward_hook(self._leave, always_call=True))

    def close(self) -> None:
        """Take the hooks off the model."""
        for hook in self.hooks:
            hook.remove()

    def _enter(self, name: str) -> Callable[..., None]:
        def enter(*_: Any) -> None:
            self.layers.append(name or "model")

        return enter

    def _leave(self, *_: Any) -> None:
        self.layers.pop()

    def __enter__(self) -> Any:
        self.copies, self.copied, self.layers = {}, {}, []
        return super().__enter__()  # type: ignore[no-untyped-call]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function on rounded weights, and round what it gives."""
        kwargs = kwargs or {}
        layer = self.layers[-1] if self.layers else _LOSS
        eight = self.products is not None and _name(func) in _PRODUCTS and self._meets_weight(args, kwargs)
        args = tuple(self._swapped(value, layer, eight) for value in args)
        kwargs = {key: self._swapped(value, layer, eight) for key, value in kwargs.items()}
        result = func(*args, **kwargs)
        if isinstance(result, tuple) and type(result) is tuple:
            return tuple(self._result(part, layer, eight) for part in result)
        return self._result(result, layer, eight)

    def _swapped(self, value: Any, layer: str, eight: bool) -> Any:
        if isinstance(value, (list, tuple)) and any(isinstance(item, Tensor) for item in value):
            return type(value)([self._swapped(item, layer, eight) for item in value])
        if not isinstance(value, Tensor) or value.dtype != torch.float32:
            return value
        kind = "activations"
        if id(value) in self.owner:
            layer, kind = layer_of(self.owner[id(value)]), "weights"
            value = self._weight(value, layer)
        elif id(value._base) in self.copied:
            layer, kind = self.copied[id(value._base)], "weights"
        if eight and value.dim() > 1 and self.products is not None:
            return _through(value, self._counted(layer, kind, self.products[0], scaled), _same)
        return value

    def _weight(self, value: Tensor, layer: str) -> Tensor:
        """The rounded copy of a weight, one for each step, so that gradients of every use meet before rounding."""
        if id(value) not in self.copies:
            self.copies[id(value)] = _through(
                value,
                self._counted(layer, "weights", self.low, rounded),
                self._counted(layer, "weight gradients", self.low, rounded),
            )
            self.copied[id(self.copies[id(value)])] = layer
        return self.copies[id(value)]

    def _meets_weight(self, args: Any, kwargs: Any) -> bool:
        """Whether a weight is among the operands, or a view of its rounded copy, such as a transpose."""
        values = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
        return any(id(value) in self.owner or id(value._base) in self.copied for value in values)

    def _result(self, value: Any, layer: str, eight: bool) -> Any:
        # numbers (the loss among them) stay fp32, and a view shows what has been rounded already
        if not isinstance(value, Tensor) or value.dtype != torch.float32:
            return value
        if value.numel() < 2 or value._base is not None:
            return value
        back = self._counted(layer, "gradients", self.low, rounded)
        if eight and self.products is not None:
            back = self._counted(layer, "gradients", self.products[1], scaled)
        return _through(value, self._counted(layer, "activations", self.low, rounded), back)

    def _counted(self, layer: str, kind: str, to: Format, how: Callable[[Tensor, Format], Tensor]) -> Step:
        def step(values: Tensor) -> Tensor:
            after = how(values, to)
            if not to.range_of_fp32:
                self.tallies.add(layer, kind, values, after)
            return after

        return step


def layer_of(parameter: str) -> str:
    """The module a parameter belongs to.

    >>> layer_of("blocks.0.attention.weight"), layer_of("scale")
    ('blocks.0.attention', 'scale')
    """
    return parameter.rpartition(".")[0] or parameter


def _same(values: Tensor) -> Tensor:
    return values


def _name(func: Any) -> str:
    return str(getattr(func, "__name__", ""))
