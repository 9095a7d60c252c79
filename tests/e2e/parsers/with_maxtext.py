"""MaxText's config: base, model and overrides, and what its schema refuses; on as many devices as JAX is told it has."""

import tempfile
from pathlib import Path

import maxtext.configs
from cases import answer
from maxtext.configs import pyconfig

BASE = Path(maxtext.configs.__file__).parent / "base.yml"


def read(case: dict) -> None:
    """A config file, or "", the words behind it, and what the machine itself would say: its slices."""
    config, words = case["config"], case["words"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "maxtext.yml"
        file.write_text(config, encoding="utf-8")
        here = [f"num_slices={case['slices']}", "skip_jax_distributed_system=true"]
        pyconfig.initialize_pydantic(["train", str(file if config else BASE), *words, *here])


answer(read)
