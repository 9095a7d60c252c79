"""Programs that behave badly as processes, and one that counts how often it is imported."""

import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp


def plain():
    return (lambda x: jnp.tanh(x @ x).sum()), (jax.ShapeDtypeStruct((256, 256), jnp.float32),)


def summed():
    shape = jax.ShapeDtypeStruct((256, 256), jnp.float32)
    return {"step": lambda x: x.sum(), "args": (shape,), "shardings": (("data",),)}


def counted():
    with Path(os.environ["CHIPWISE_TEST_COUNT"]).open("a") as file:
        file.write(f"{os.getpid()}\n")
    time.sleep(float(os.environ.get("CHIPWISE_TEST_SLEEP", "0")))
    return plain()


def hangs():
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(os.environ["CHIPWISE_TEST_COUNT"]).write_text(f"{os.getpid()}\n{child.pid}\n")
    time.sleep(600)


def grows():
    kept = []
    while True:
        kept.append(bytearray(b"x") * 2**26)
        time.sleep(0.02)


def segfaults():
    ctypes.string_at(0)


def aborts():
    print("F1115 12:00:00.000000  4711 compiler.cc:12] Check failed: shape.rank() == 2", file=sys.stderr, flush=True)
    os.abort()


def noisy():
    print("a library talks on stdout")
    return plain()
