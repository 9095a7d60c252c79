"""Programs to train: presets that ship with chipwise, and users' files with the same few names in them."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from chipwise.errors import BrokenFile, ChipwiseError, InputError, MissingCompiler, NoSuchFile, UnknownName
from chipwise.numerics import optimizers
from chipwise.numerics.optimizers import Optimizer

PRESETS = ("char-transformer", "digits-cnn")
FRAMEWORKS = ("torch", "jax")
STEPS = 100
LEAST_STEPS, MOST_STEPS = 10, 1_000_000
_MAKES = {"torch": "model", "jax": "init"}
_MADE_FROM = {"torch": (), "jax": ("seed",)}
_CALLED = {
    "torch": {"loss": ("model", "batch"), "batches": ("seed",)},
    "jax": {"loss": ("params", "batch"), "batches": ("seed",)},
}
DEFINES = (
    "a PyTorch program defines model(), loss(model, batch) and batches(seed); "
    "a JAX program init(seed), loss(params, batch) and batches(seed)"
)
_TITLES = {"torch": "PyTorch", "jax": "JAX"}


@dataclass(frozen=True, slots=True)
class Program:
    """What is trained: `make` gives the model (PyTorch) or the weights of a seed (JAX)."""

    name: str
    path: Path
    framework: str
    make: Callable[..., Any]
    loss: Callable[[Any, Any], Any]
    batches: Callable[[int], Iterable[Any]]
    optimizer: Optimizer
    steps: int


def load(name: str, framework: str | None = None) -> Program:
    """The program of a preset's name or a Python file."""
    _without_plugins()
    if framework is not None and framework not in FRAMEWORKS:
        raise InputError("framework", framework, "torch or jax")
    if not name.endswith(".py"):
        if name not in PRESETS:
            if Path(name).exists():
                raise BrokenFile("program", name, "a Python file (its name ends in .py) or the name of a preset")
            raise UnknownName("program", name, PRESETS)
        chosen = framework or _installed()
        needs(chosen)
        if name == "digits-cnn":
            needs("sklearn")
        module = importlib.import_module(f"chipwise.numerics.presets.{chosen}_{name.replace('-', '_')}")
        return _program(name, module, chosen)
    module = _imported(name)
    return _program(name, module, _framework(name, module, framework))


def _without_plugins() -> None:
    """Where there is no accelerator, keep JAX from starting the plugins of those that are installed."""
    patterns = ("nvidia[0-9]*", "accel[0-9]*", "vfio/[0-9]*", "kfd")
    if not any(any(Path("/dev").glob(pattern)) for pattern in patterns):
        os.environ.setdefault("JAX_PLATFORMS", "cpu")


def needs(package: str) -> None:
    """Raise the command that installs a package which is missing."""
    if importlib.util.find_spec(package) is None:
        title = "scikit-learn" if package == "sklearn" else _TITLES[package]
        command = f"pip install {title if package == 'sklearn' else package}"
        raise MissingCompiler(title, f"{package} is not installed", command)


def _installed() -> str:
    for name in FRAMEWORKS:
        if importlib.util.find_spec(name) is not None:
            return name
    raise MissingCompiler("a preset", "neither torch nor jax is installed", "pip install torch")


def _imported(name: str) -> ModuleType:
    path = Path(name)
    if not path.is_file():
        raise NoSuchFile("program", name)
    spec = importlib.util.spec_from_file_location("chipwise_program", path.resolve())
    if spec is None or spec.loader is None:
        raise BrokenFile("program", name, "a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))  # it may import its neighbors
    try:
        with _located(name, path):
            spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
    return module


def _framework(name: str, module: ModuleType, wanted: str | None) -> str:
    has = [framework for framework in FRAMEWORKS if callable(getattr(module, _MAKES[framework], None))]
    if wanted is not None and wanted not in has:
        raise InputError("program", name, f"a {_TITLES[wanted]} program, which defines {_MAKES[wanted]}()")
    if not has:
        raise InputError("program", name, "a file that defines model() (PyTorch) or init(seed) (JAX)")
    if wanted is None and len(has) > 1:
        raise InputError(
            "program", name, "the framework, torch or jax, where a file defines both model() and init(seed)"
        )
    return wanted or has[0]


def _program(name: str, module: ModuleType, framework: str) -> Program:
    needs(framework)
    missing = [function for function in ("loss", "batches") if not callable(getattr(module, function, None))]
    if missing:
        given = "loss(model, batch)" if framework == "torch" else "loss(params, batch)"
        raise InputError("program", name, f"a file that defines {given} and batches(seed) (no {', '.join(missing)})")
    for function, arguments in {_MAKES[framework]: _MADE_FROM[framework], **_CALLED[framework]}.items():
        _check_signature(name, getattr(module, function), function, arguments)
    steps = getattr(module, "steps", STEPS)
    if isinstance(steps, bool) or not isinstance(steps, int) or not LEAST_STEPS <= steps <= MOST_STEPS:
        raise InputError("program.steps", steps, f"a whole number from {LEAST_STEPS} to {MOST_STEPS:,}")
    return Program(
        name,
        Path(str(module.__file__)),
        framework,
        getattr(module, _MAKES[framework]),
        module.loss,
        module.batches,
        optimizers.read(getattr(module, "optimizer", None), "program.optimizer"),
        steps,
    )


def _check_signature(name: str, called: Callable[..., Any], function: str, arguments: tuple[str, ...]) -> None:
    """Refuse a function that does not take what it will be given."""
    try:
        signature = inspect.signature(called)
    except (TypeError, ValueError):
        return  # a builtin: only calling tells
    try:
        signature.bind(*arguments)
    except TypeError:
        mine = f"{function}({', '.join(signature.parameters)})"
        raise InputError("program", f"{name}: {mine}", f"{function}({', '.join(arguments)}): {DEFINES}") from None


@contextmanager
def calling(program: Program) -> Iterator[None]:
    """Turns whatever the program raises into one line with its place."""
    with _located(program.name, program.path):
        yield


@contextmanager
def _located(name: str, path: Path) -> Iterator[None]:
    try:
        yield
    except ChipwiseError:
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, ImportError) and (error.name or "").partition(".")[0] in FRAMEWORKS:
            needs(str(error.name).partition(".")[0])
        lines = [
            frame.lineno
            for frame in traceback.extract_tb(error.__traceback__)
            if Path(frame.filename).resolve() == path.resolve()
        ]
        if isinstance(error, SyntaxError):
            lines = [error.lineno]
        message = (str(error).strip() or "no message").splitlines()[0]
        # frameworks raise where none of the program's lines is on the stack, such as in a backward pass
        where, more = (f"{name}:{lines[-1]}", "") if lines else (name, f"; {DEFINES}")
        raise InputError("program", where, f"code that runs ({type(error).__name__}: {message}){more}") from error
