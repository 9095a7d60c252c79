"""Programs and mistakes of the kinds people hand in, each tiny."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

X = jax.ShapeDtypeStruct((16, 128), jnp.float32)
TABLE = jnp.arange(128.0)


def double(x, scale=2.0):
    return x * scale


def attached(x):
    return double(x)


attached.example_args = (X,)


def three_parts():
    return double, (X, 3.0), None


def real_arrays():
    return double, (np.ones((16, 128), np.float32), 3)


def captured_constant():
    return lambda x: x + TABLE, (X,)


def nested():
    tree = {"layers": [X, (X, X)], "scale": X}
    specs = {"layers": P("data"), "scale": ("data", "model")}
    return {
        "step": lambda tree, x: jax.tree.map(lambda leaf: leaf + x, tree),
        "args": (tree, X),
        "axes": {"data": 2, "model": -1},
        "shardings": (specs, None),
    }


def own_mesh(devices):
    mesh = Mesh(np.array(devices), ("all",))
    return double, (jax.ShapeDtypeStruct(X.shape, X.dtype, sharding=NamedSharding(mesh, P("all"))),)


def already_jitted():
    return jax.jit(double, donate_argnums=0), (X,)


def varying(width: int = 128):
    return {
        "step": double,
        "args": (jax.ShapeDtypeStruct((16, width), jnp.float32),),
        "varies": {"rows": [16, 32]},
        "choices": {"width": [128, 256]},
    }


def needs_arguments(x, y):
    return x + y


def returns_nothing():
    return None


def string_argument():
    return double, (X, "relu")


def bad_axes():
    return {"step": double, "args": (X,), "axes": {"data": 3}}


def two_open_axes():
    return {"step": double, "args": (X,), "axes": {"data": -1, "model": -1}}


def unknown_axis():
    return {"step": double, "args": (X,), "axes": {"data": -1}, "shardings": (P("batch"),)}


def no_mesh():
    return {"step": double, "args": (X,), "shardings": (P("data"),)}


def uneven():
    odd = jax.ShapeDtypeStruct((15, 128), jnp.float32)
    return {"step": double, "args": (odd,), "axes": {"data": -1}, "shardings": (P("data"),)}


def too_few_shardings():
    return {"step": double, "args": (X, X), "axes": {"data": -1}, "shardings": (P("data"),)}


def misspelt_key():
    return {"step": double, "args": (X,), "sharding": ()}


def bad_donation():
    return {"step": double, "args": (X,), "donate": (3,)}


def no_arguments():
    return functools.partial(jnp.ones, 3), ()
