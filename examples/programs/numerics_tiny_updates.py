"""A JAX program that bf16 weights can't follow: they are large, and each update is small.

Gains near 300 must move by 16. Neighbours in bf16 are 2 apart there, so an update of less than 1 leaves a weight as it
was. With fp32 master weights it trains.

    chipwise numerics examples/programs/numerics_tiny_updates.py
"""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

CHANNELS, BATCH = 64, 64
optimizer = {"name": "sgd", "learning_rate": 1.5}
steps = 100


def init(seed: int) -> dict[str, np.ndarray]:
    """Gains as another calibration left them."""
    return {"gain": np.random.default_rng(seed).uniform(260.0, 500.0, CHANNELS)}


def loss(params: dict[str, jax.Array], batch: tuple[jax.Array, jax.Array]) -> jax.Array:
    """Mean squared error of the calibrated signal."""
    signal, wanted = batch
    error = params["gain"] * signal - wanted
    return jnp.mean(jnp.square(error))


def batches(seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Signals, and what they should read: gains 16 above the first ones."""
    gain = init(seed)["gain"] + 16.0
    chance = np.random.default_rng(seed + 1000)
    while True:
        signal = chance.normal(size=(BATCH, CHANNELS)).astype(np.float32)
        yield signal, (gain * signal).astype(np.float32)
