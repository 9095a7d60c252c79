"""Training in PyTorch: by rounding on a CPU, in the hardware's own formats on a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from chipwise.errors import InputError
from chipwise.numerics.engine import Backward
from chipwise.numerics.programs import Program
from chipwise.numerics.recipes import Recipe
from chipwise.numerics.runs import Count
from chipwise.numerics.torch_rounding import DTYPES, Rounding, Tallies, layer_of, rounded

_EVERY = 10  # native runs: steps between looks at what an fp32 backward pass would have given


class TorchEngine:
    """Trains a program whose `model()` is a torch module; weights lie in one flat array."""

    def __init__(self, program: Program, emulate: bool) -> None:
        self.program, self.emulate = program, emulate
        self.software = f"PyTorch {torch.__version__.partition('+')[0]}"
        gpu = torch.cuda.is_available()
        self.torch_device = torch.device("cuda" if gpu else "cpu")
        self.device = torch.cuda.get_device_name() if gpu else "CPU"
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False  # the reference is fp32 itself
        self.rounding: Rounding | None = None

    @property
    def weights(self) -> int:
        """How many weights are trained."""
        return int(self.flat.numel())

    def native(self, recipe: Recipe) -> bool:
        """Whether the hardware computes in the recipe's formats."""
        if recipe.low is None:
            return True
        if self.emulate or self.torch_device.type == "cpu" or recipe.products is not None:
            return False
        return recipe.low.name == "fp16" or torch.cuda.is_bf16_supported(including_emulation=False)

    def begin(self, recipe: Recipe, seed: int) -> None:
        """Fresh weights of a seed."""
        self.recipe, self.seed, self.step = recipe, seed, 0
        if self.rounding is not None:
            self.rounding.close()
        torch.manual_seed(seed)
        model = self.program.make()
        if not isinstance(model, nn.Module):
            raise InputError("program.model", type(model).__name__, "a function that returns a torch.nn.Module")
        self.model = model.float().to(self.torch_device).train()
        self.names = [(name, p) for name, p in self.model.named_parameters() if p.requires_grad]
        if not self.names:
            raise InputError("program.model", type(model).__name__, "a module with parameters to train")
        self.native_run = self.native(recipe)
        self.tallies = Tallies()
        self.rounding = None if self.native_run or recipe.low is None else Rounding(self.model, recipe, self.tallies)
        self._flatten()
        self.state = self.program.optimizer.start(torch.zeros_like(self.flat))

    def _flatten(self) -> None:
        """Make every parameter a piece of one array, kept in the format the recipe keeps weights in."""
        low = self.recipe.low
        self.flat = torch.cat([p.detach().reshape(-1) for _, p in self.names])
        if low is not None and not self.recipe.master:
            self.flat = self.flat.to(DTYPES[low.name]) if self.native_run else rounded(self.flat, low)
            if self.native_run:
                self.model.to(DTYPES[low.name])
        layers = [layer_of(name) for name, _ in self.names]
        self.layers = list(dict.fromkeys(layers))
        sizes = torch.tensor([p.numel() for _, p in self.names])
        index = torch.tensor([self.layers.index(layer) for layer in layers])
        self.segments = torch.repeat_interleave(index, sizes).to(self.torch_device)
        start = 0
        for _, p in self.names:
            p.data = self.flat[start : start + p.numel()].view(p.shape)
            start += p.numel()

    def backward(self, batch: Any, scale: float, step: int) -> Backward:
        """Loss and gradients of a batch."""
        torch.manual_seed(self.seed * 1_000_003 + step)  # dropout is the same in every recipe
        low = self.recipe.low
        pure = self.native_run and low is not None and not self.recipe.master
        batch = _moved(batch, self.torch_device, DTYPES[low.name] if pure and low is not None else None)
        with self._context():
            loss = self.program.loss(self.model, batch)
        if not isinstance(loss, Tensor) or loss.numel() != 1 or not loss.requires_grad:
            raise InputError("program.loss", _shown(loss), "a tensor of one element that depends on the parameters")
        (loss.float().reshape(()) * scale).backward()
        self.gradient = self._gradient() / scale
        if self.native_run and low is not None and step % _EVERY == 0:
            self._compare(batch, step)
        value = float(loss.detach())
        norm = float(self.gradient.float().norm())
        finite = abs(value) < float("inf") and bool(torch.isfinite(self.gradient).all())
        return Backward(value, norm, finite)

    def _context(self) -> AbstractContextManager[Any]:
        if self.rounding is not None:
            return self.rounding
        low = self.recipe.low
        if low is None or not self.recipe.master:
            return nullcontext()
        return torch.autocast(self.torch_device.type, DTYPES[low.name])

    def _gradient(self) -> Tensor:
        pieces = []
        for _, p in self.names:
            pieces.append(torch.zeros_like(p).reshape(-1) if p.grad is None else p.grad.reshape(-1))
            p.grad = None
        return torch.cat(pieces)

    def _compare(self, batch: Any, step: int) -> None:
        """Count gradients that the hardware made 0 or infinite and an fp32 backward pass would not have."""
        computed = self.gradient
        torch.manual_seed(self.seed * 1_000_003 + step)
        if self.recipe.master:
            with torch.autocast(self.torch_device.type, enabled=False):
                self.program.loss(self.model, batch).float().backward()
            true = self._gradient()
        else:  # the model itself is in the lower format: its copy in fp32, from the same weights
            wide = deepcopy(self.model).float()
            self.program.loss(wide, _moved(batch, self.torch_device, torch.float32)).backward()
            true = torch.cat(
                [
                    torch.zeros_like(p).reshape(-1) if p.grad is None else p.grad.reshape(-1)
                    for p in wide.parameters()
                    if p.requires_grad
                ]
            )
        some = (true != 0) & torch.isfinite(true)
        self._tally("weight gradients", some, some & (computed == 0), some & torch.isinf(computed))

    def update(self) -> None:
        """One step of the optimizer; counts the weights an update left as they were."""
        self.step += 1
        low, optimizer = self.recipe.low, self.program.optimizer

        def to(values: Tensor) -> Tensor:
            return values if low is None or self.recipe.master or self.native_run else rounded(values, low)

        with torch.no_grad():
            new, update, self.state = optimizer.update(
                self.flat, self.gradient, self.state, optimizer.corrections(self.step), to
            )
            some = update != 0
            self._tally("updates", some, some & (new == self.flat), some & torch.isinf(new))
            self.flat.copy_(new)

    def _tally(self, kind: str, *flags: Tensor) -> None:
        rows = [
            torch.bincount(self.segments, weights=flag.double(), minlength=len(self.layers)).tolist() for flag in flags
        ]
        for layer, *numbers in zip(self.layers, *rows, strict=True):
            cell = self.tallies.numbers[layer, kind]
            for i, number in enumerate(numbers):
                cell[i] += int(number)

    def counts(self) -> dict[tuple[str, str], Count]:
        """What was lost since `begin`."""
        return self.tallies.counts()


def _moved(batch: Any, device: torch.device, dtype: torch.dtype | None) -> Any:
    """A batch on the device; floating values in `dtype` where one is given."""
    if isinstance(batch, Tensor):
        moved = batch.to(device)
        return moved.to(dtype) if dtype is not None and moved.is_floating_point() else moved
    if isinstance(batch, Mapping):
        return {key: _moved(value, device, dtype) for key, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        return type(batch)([_moved(value, device, dtype) for value in batch])
    return batch


def _shown(loss: Any) -> str:
    return f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else f"a {type(loss).__name__}"
