"""The training step of examples/programs/jax_mlp.py, 256 wide: the same program, which compiles in seconds."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "examples" / "programs"))
import jax_mlp

jax_mlp.WIDTH, jax_mlp.HIDDEN, jax_mlp.BATCH = 256, 512, 256
train, inference = jax_mlp.train, jax_mlp.inference
