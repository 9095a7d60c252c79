"""Programs a compiler or a tracer refuses, each for one reason. The line to blame ends in `# here`."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

Shape = jax.ShapeDtypeStruct
VECTOR, MATRIX, NUMBER = Shape((8,), jnp.float32), Shape((256, 256), jnp.float32), Shape((), jnp.int32)


def _program(step, *args):
    return lambda: (step, args)


def _branch(x):
    if x.sum() > 0:  # here
        return x
    return -x


def _mask(x):
    return x[x > 0]  # here


def _range(n):
    return sum(i for i in range(n))  # here


def _zeros(n):
    return jnp.zeros((n,))  # here


def _nonzero(x):
    return jnp.nonzero(x)  # here


def _arange(n):
    return jnp.arange(n)  # here


def _numpy(x):
    return np.tanh(x)  # here


def _shapes(x):
    return x @ jnp.ones((3, 3))  # here


def _eig(x):
    return jnp.linalg.eig(x)  # here


def _cuda_kernel(x):
    return jax.ffi.ffi_call("my_cuda_kernel", Shape(x.shape, x.dtype))(x)  # here


def _psum(x):
    return jax.lax.psum(x, "model")  # here


def _double(source, result):  # here
    result[...] = source[...] * 2


def _sorted(source, result):
    result[...] = jnp.sort(source[...], axis=0)


def _large_block(x):
    block = pl.BlockSpec((1024, 2048), lambda i: (i, 0))
    call = pl.pallas_call(_double, out_shape=Shape(x.shape, x.dtype), grid=(8,), in_specs=[block], out_specs=block)
    return call(x)  # here


def _kept(source, result, kept):
    kept[0:8, 0:128] = source[...]
    result[...] = kept[0:8, 0:128]


def _large_scratch(x):
    scratch = [pltpu.VMEM((2**17, 1024), jnp.float32)]
    return pl.pallas_call(_kept, out_shape=Shape(x.shape, x.dtype), scratch_shapes=scratch)(x)  # here


def _odd_block(x):
    block = pl.BlockSpec((7, 5), lambda i: (i, 0))
    return pl.pallas_call(_double, out_shape=Shape(x.shape, x.dtype), grid=(3,), in_specs=[block], out_specs=block)(x)


def _sort_kernel(x):
    return pl.pallas_call(_sorted, out_shape=Shape(x.shape, x.dtype))(x)


branch, mask, numpy_call = _program(_branch, VECTOR), _program(_mask, VECTOR), _program(_numpy, VECTOR)
nonzero, arange = _program(_nonzero, VECTOR), _program(_arange, NUMBER)
python_range, zeros, shapes = _program(_range, NUMBER), _program(_zeros, NUMBER), _program(_shapes, MATRIX)
eig, cuda_kernel, psum = _program(_eig, MATRIX), _program(_cuda_kernel, MATRIX), _program(_psum, VECTOR)
large_block = _program(_large_block, Shape((8192, 2048), jnp.float32))
large_scratch = _program(_large_scratch, Shape((8, 128), jnp.float32))
odd_block, sort_kernel = _program(_odd_block, MATRIX), _program(_sort_kernel, MATRIX)


def one_percent_too_large():
    """8 GiB in, 8 GiB out, and 15.75 GiB usable on a v5e."""
    size = int(15.75 * 2**30 * 1.01 / 2 / 4)
    return (lambda x: jnp.sin(x)), (Shape((size // 2**15, 2**15), jnp.float32),)


def fits_by_one_percent():
    size = int(15.75 * 2**30 * 0.99 / 2 / 4)
    return (lambda x: jnp.sin(x)), (Shape((size // 2**15, 2**15), jnp.float32),)


def activations():
    def loss(weights, x):
        last, _ = jax.lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, weights)
        return (last.astype(jnp.float32) ** 2).sum()

    return jax.grad(loss), (Shape((24, 2048, 2048), jnp.bfloat16), Shape((2**18, 2048), jnp.bfloat16))


def fft_complex128():
    jax.config.update("jax_enable_x64", True)
    return (lambda x: jnp.fft.fft(x).real.sum()), (Shape((256, 256), jnp.complex128),)  # here


def float64():
    jax.config.update("jax_enable_x64", True)
    return (lambda x: jnp.sin(x @ x).sum()), (Shape((256, 256), jnp.float64),)


def narrowed():
    jax.config.update("jax_enable_x64", False)
    return (lambda x: x.astype(jnp.float64).sum()), (MATRIX,)  # here


def indivisible(devices):
    mesh = Mesh(np.array(devices).reshape(len(devices)), ("data",))
    return (lambda x: x + 1), (Shape((6, 6), jnp.float32, sharding=NamedSharding(mesh, P("data"))),)


def twice(devices):
    mesh = Mesh(np.array(devices).reshape(len(devices)), ("data",))
    return (lambda x: x + 1), (Shape((8, 8), jnp.float32, sharding=NamedSharding(mesh, P("data", "data"))),)  # here


def wrong_axis(devices):
    mesh = Mesh(np.array(devices).reshape(len(devices)), ("data",))
    return (lambda x: x + 1), (Shape((8, 8), jnp.float32, sharding=NamedSharding(mesh, P("model"))),)  # here


def two_meshes(devices):
    def on(few):
        return NamedSharding(Mesh(np.array(few), ("data",)), P())

    args = (Shape((8,), jnp.float32, sharding=on(devices)), Shape((8,), jnp.float32, sharding=on(devices[:1])))
    return (lambda x, y: x + y), args


def plain():
    return (lambda x: jnp.tanh(x @ x).sum()), (MATRIX,)


def without_shapes(x):
    return x + 1


not_callable = 3


def raises():
    raise RuntimeError("the data folder is not mounted")  # here
