"""The WORKLOAD argument and the flags that change it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipwise.errors import InputError

if TYPE_CHECKING:
    from chipwise.workload import Workload

FILES = (".yaml", ".yml", ".json")
FLAGS = {  # flag -> key of the workload file
    "batch": "train.global_batch",
    "sequence": "train.sequence",
    "precision": "train.precision",
    "tokens": "train.tokens",
    "steps": "train.steps",
    "optimizer": "train.optimizer",
    "recompute": "train.recompute",
    "stack": "train.stack",
}


def read_workload(text: str, flags: Mapping[str, str | None]) -> Workload:
    """The workload that an argument and flags describe; every failure is one line."""
    from chipwise.compare.rows import named_stack
    from chipwise.workload import load_workload
    from chipwise.workload.build import NOTHING

    if flags.get("tokens") and flags.get("steps"):
        raise InputError("--steps", flags["steps"], "either --tokens or --steps, not both")
    overrides: dict[str, Any] = {key: flags.get(flag) for flag, key in FLAGS.items()}
    source, model = _source(text)
    if flags.get("model"):
        model = _model(str(flags["model"]))
    if model is not None:
        overrides["model"] = model
    try:
        workload = load_workload(source, overrides)
    except InputError as error:
        if source is None and error.value is NOTHING:
            raise InputError(error.field, NOTHING, f"{error.accepted} ({_hint(error.field)})") from None
        raise
    named_stack(workload)
    return workload


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

    return preset(name).name


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


def _hint(field: str) -> str:
    flag = next((f"--{flag}" for flag, key in FLAGS.items() if key == field), "--tokens or --steps")
    return f"say {flag}, or write a workload file"
