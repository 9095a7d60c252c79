"""The WORKLOAD argument and the flags that change it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipwise.errors import ChipwiseError, InputError, UnknownName

if TYPE_CHECKING:
    from chipwise.workload import Workload

FILES = (".yaml", ".yml", ".json")
FLAGS = {  # flag -> key of the workload file
    "batch": "train.global_batch",
    "sequence": "train.sequence",
    "precision": "train.precision",
    "tokens": "train.tokens",
    "steps": "train.steps",
    "samples": "train.samples",
    "optimizer": "train.optimizer",
    "recompute": "train.recompute",
    "lora": "train.lora.rank",
    "stack": "train.stack",
}
LENGTHS = ("tokens", "steps", "samples")


def read_workload(text: str, flags: Mapping[str, str | None]) -> Workload:
    """The workload that an argument and flags describe; every failure is one line."""
    from chipwise.predict.setup import named_stack
    from chipwise.workload import load_workload

    lengths = [flag for flag in LENGTHS if flags.get(flag)]
    if len(lengths) > 1:
        first, second = lengths[:2]
        raise InputError(f"--{second}", flags[second], f"either --{first} or --{second}, not both")
    overrides: dict[str, Any] = {key: flags.get(flag) for flag, key in FLAGS.items()}
    source, model = _source(text)
    if flags.get("model"):
        model = _model(str(flags["model"]))
    if model is not None:
        overrides["model"] = model
    if source is None:
        _complete(model, flags)
    workload = load_workload(source, overrides)
    named_stack(workload)
    return workload


def _complete(model: Any, flags: Mapping[str, str | None]) -> None:
    """Without a workload file flags say how a model is trained: all that are missing, in one line."""
    from chipwise.workload import from_hf_config, preset

    images = (from_hf_config(model["hf"]) if isinstance(model, dict) else preset(model)).image_tokens
    missing = [] if flags.get("batch") else ["--batch"]
    if not images and not flags.get("sequence"):
        missing.append("--sequence")
    if not any(flags.get(flag) for flag in LENGTHS):
        missing.append("--samples or --steps" if images else "--tokens or --steps")
    if missing:
        raise ChipwiseError(f"missing: {', '.join(missing)}")


def _source(text: str) -> tuple[Path | None, Any]:
    """The workload file, or the model where the argument names one."""
    if not text.strip():
        raise InputError("WORKLOAD", text, "a workload file, a known model's name or a config.json")
    path = Path(text)
    if path.suffix == ".json" or _is_dir(path):
        return None, _config(path)
    if path.suffix in FILES or _exists(path) or text.startswith((".", "/", "~")):
        return path, None
    return None, _known(text)


def _model(text: str) -> Any:
    path = Path(text)
    return _config(path) if path.suffix == ".json" or _exists(path) else _known(text)


def _known(name: str) -> str:
    """The name of a known model: a wrong one is worth saying before anything else is missing."""
    from chipwise.workload import preset

    try:
        return preset(name).name
    except UnknownName as error:
        raise InputError(error.field, name, f"{error.accepted}; see `chipwise models`") from None


def _config(path: Path) -> dict[str, str]:
    """A config.json, read once here so that what is wrong with it is said first."""
    from chipwise.workload import from_hf_config

    file = path / "config.json" if _is_dir(path) else path
    from_hf_config(file)
    return {"hf": str(file.resolve())}


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _is_dir(path: Path) -> bool:
    return _exists(path) and path.is_dir()
