"""Compile the sample modules again: `python make_samples.py [NAME...]`; needs jax and libtpu, but no TPU or GPU.

The samples for GPUs need jax's CUDA plugin beside it, which wants an environment of its own: name them there.

Each sample is one compile in its own process, because libtpu is process-global. Beside the text, `expected.json`
records what the source of each program and the compiler's own memory analysis say, for the tests to hold the parser to.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

SAMPLES = Path(__file__).parent / "samples"
EXPECTED = SAMPLES / "expected.json"
BUILDERS: dict[str, Callable[[], tuple[Any, dict[str, Any]]]] = {}


def sample(builder: Callable[[], tuple[Any, dict[str, Any]]]) -> Callable[[], tuple[Any, dict[str, Any]]]:
    BUILDERS[builder.__name__] = builder
    return builder


def mesh_of(topology: str, sizes: tuple[int, ...], names: tuple[str, ...]) -> Any:
    import numpy as np
    from jax.experimental import topologies
    from jax.sharding import Mesh

    devices = topologies.get_topology_desc(topology_name=topology, platform="tpu").devices
    return Mesh(np.array(devices).reshape(sizes), names)


def arg(mesh: Any, shape: tuple[int, ...], dtype: str, *spec: Any) -> Any:
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, PartitionSpec(*spec)))


@sample
def fsdp_scan_v5e() -> tuple[Any, dict[str, Any]]:
    """A training step of 6 MLP layers under scan, weights sharded over 16 devices."""
    import jax
    import jax.numpy as jnp

    mesh = mesh_of("v5e:4x4", (16,), ("data",))
    layers, d, f = 6, 2048, 8192

    def loss(w: Any, x: Any) -> Any:
        def layer(h: Any, p: Any) -> Any:
            h = h + jax.nn.gelu(h @ p["up"].astype("bfloat16")) @ p["down"].astype("bfloat16")
            return jax.lax.with_sharding_constraint(h, jax.NamedSharding(mesh, jax.P("data", None))), None

        return jnp.mean(jax.lax.scan(jax.checkpoint(layer), x, w)[0].astype("float32") ** 2)

    def step(w: Any, x: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(w, x)
        return jax.tree.map(lambda a, g: a - 0.1 * g, w, grads), value

    w = {
        "up": arg(mesh, (layers, d, f), "float32", None, "data", None),
        "down": arg(mesh, (layers, f, d), "float32", None, None, "data"),
    }
    x = arg(mesh, (16 * 1024, d), "bfloat16", "data", None)
    # Five products became loops over the 16 shards: half of them each way round the ring, two a round.
    return jax.jit(step, donate_argnums=0).lower(w, x), {"loops": [4] * 5 + [layers, layers], "devices": 16}


@sample
def fsdp_gathers_v5e() -> tuple[Any, dict[str, Any]]:
    """The same step with whole gathers: the compiler hides them in the products beside them."""
    lowered, known = fsdp_scan_v5e()
    return lowered, known | {"loops": [6, 6], "options": {"xla_jf_spmd_threshold_for_windowed_einsum_mib": "100000"}}


@sample
def tensor_parallel_v5p() -> tuple[Any, dict[str, Any]]:
    """Forward of 5 Megatron-style MLP layers with a sequence-parallel residual over 4 devices."""
    import jax

    mesh = mesh_of("v5p:2x2x1", (2, 2), ("data", "model"))
    layers, d, f = 5, 1024, 4096

    def forward(w: Any, x: Any) -> Any:
        def layer(h: Any, p: Any) -> Any:
            up = jax.lax.with_sharding_constraint(h @ p[0], jax.NamedSharding(mesh, jax.P("data", "model")))
            out = jax.nn.relu(up) @ p[1]
            return h + jax.lax.with_sharding_constraint(out, jax.NamedSharding(mesh, jax.P("data", None))), None

        return jax.lax.scan(layer, x, w)[0]

    w = (
        arg(mesh, (layers, d, f), "bfloat16", None, None, "model"),
        arg(mesh, (layers, f, d), "bfloat16", None, "model", None),
    )
    x = arg(mesh, (4096, d), "bfloat16", "data", None)
    return jax.jit(forward).lower(w, x), {"loops": [layers], "devices": 4}


@sample
def splash_v6e() -> tuple[Any, dict[str, Any]]:
    """Forward and backward of the Pallas splash-attention kernel."""
    import jax
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as kernels
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

    mesh = mesh_of("v6e:2x2", (4,), ("data",))
    heads, length, width = 4, 2048, 128
    mask = masks.MultiHeadMask([masks.CausalMask((length, length)) for _ in range(heads)])
    kernel = kernels.make_splash_mha(mask=mask, head_shards=1, q_seq_shards=1)
    spec = jax.P("data")

    @partial(jax.shard_map, mesh=mesh, in_specs=(spec, spec, spec), out_specs=spec, check_vma=False)
    def attention(q: Any, k: Any, v: Any) -> Any:
        return jax.vmap(kernel)(q, k, v)

    def loss(q: Any, k: Any, v: Any) -> Any:
        return attention(q, k, v).astype("float32").sum()

    x = arg(mesh, (8, heads, length, width), "bfloat16", "data")
    return jax.jit(jax.grad(loss, argnums=(0, 1, 2))).lower(x, x, x), {"loops": [], "devices": 4}


@sample
def matmul_tpu7x() -> tuple[Any, dict[str, Any]]:
    """One matrix product on the 8 devices of four tpu7x chips, and one in fp8."""
    import jax

    mesh = mesh_of("tpu7x:2x2x1", (8,), ("data",))

    def product(a: Any, b: Any, c: Any) -> Any:
        return a @ b, jax.lax.dot(c, c, preferred_element_type="float32")

    args = (
        arg(mesh, (8192, 4096), "bfloat16", "data"),
        arg(mesh, (4096, 4096), "bfloat16"),
        arg(mesh, (2048, 2048), "float8_e4m3fn"),
    )
    return jax.jit(product).lower(*args), {"loops": [], "devices": 8}


@sample
def sparsecore_tpu7x() -> tuple[Any, dict[str, Any]]:
    """Sharded weights gathered for two products, and their gradients: v7x leaves the collectives to its SparseCores."""
    import jax

    mesh = mesh_of("tpu7x:2x2x1", (8,), ("data",))

    def loss(w: Any, x: Any) -> Any:
        return (jax.nn.relu(x @ w[0]) @ w[1]).astype("float32").sum()

    w = (arg(mesh, (2048, 8192), "bfloat16", "data", None), arg(mesh, (8192, 2048), "bfloat16", "data", None))
    return jax.jit(jax.grad(loss)).lower(w, arg(mesh, (8 * 512, 2048), "bfloat16", "data", None)), {
        "loops": [],
        "devices": 8,
    }


@sample
def convnet_v4() -> tuple[Any, dict[str, Any]]:
    """Gradient of three convolutions, batch-normalised, data parallel over 8 devices."""
    import jax
    import jax.numpy as jnp

    mesh = mesh_of("v4:2x2x1", (8,), ("data",))

    def loss(w: Any, x: Any) -> Any:
        for i, p in enumerate(w):
            x = jax.lax.conv_general_dilated(x, p, (1 + i % 2,) * 2, "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            mean, var = jnp.mean(x, (0, 1, 2)), jnp.var(x, (0, 1, 2))
            x = jax.nn.relu((x - mean) * jax.lax.rsqrt(var + 1e-5))
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return jnp.mean(x)

    w = [arg(mesh, s, "float32") for s in ((7, 7, 3, 64), (3, 3, 64, 128), (1, 1, 128, 256))]
    return jax.jit(jax.grad(loss)).lower(w, arg(mesh, (64, 56, 56, 3), "float32", "data")), {
        "loops": [],
        "devices": 8,
    }


@sample
def offload_v6e() -> tuple[Any, dict[str, Any]]:
    """A scan of 4 layers whose activations go to pinned host memory and come back for the backward pass."""
    import jax
    import jax.numpy as jnp
    from jax.ad_checkpoint import checkpoint_name

    mesh = mesh_of("v6e:2x4", (8,), ("data",))
    layers, d = 4, 2048
    policy = jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=["residual", "hidden"],
        offload_src="device",
        offload_dst="pinned_host",
    )

    def loss(w: Any, x: Any) -> Any:
        def layer(h: Any, p: Any) -> Any:
            h = checkpoint_name(h, "residual")
            hidden = checkpoint_name(jnp.sin(h @ p.astype("bfloat16")), "hidden")
            return h + jnp.cos(hidden @ p.T.astype("bfloat16")), None

        body = jax.checkpoint(layer, policy=policy, prevent_cse=False)
        return jnp.mean(jax.lax.scan(body, x, w)[0].astype("float32"))

    w = arg(mesh, (layers, d, d), "float32", None, "data", None)
    # The compiler peels one round off each loop, to start the first transfer before it.
    return jax.jit(jax.grad(loss)).lower(w, arg(mesh, (8 * 4096, d), "bfloat16", "data")), {
        "loops": [layers - 1, layers - 1],
        "devices": 8,
    }


@sample
def nested_scan_v5e() -> tuple[Any, dict[str, Any]]:
    """7 rounds of 3 products, a loop from 2 to 11 in steps of 3, and one counting down from 9 to 0."""
    import jax

    mesh = mesh_of("v5e:2x2", (4,), ("data",))

    def run(w: Any, x: Any) -> Any:
        def inner(h: Any, _: Any) -> Any:
            return jax.numpy.tanh(h @ w), None

        def outer(h: Any, _: Any) -> Any:
            h, _ = jax.lax.scan(inner, h, None, length=3)
            return h * 2, h.sum()

        h, sums = jax.lax.scan(outer, x, None, length=7)
        _, h = jax.lax.while_loop(lambda c: c[0] < 11, lambda c: (c[0] + 3, jax.numpy.sin(c[1] @ w)), (2, h))
        _, h = jax.lax.while_loop(lambda c: c[0] > 0, lambda c: (c[0] - 1, jax.numpy.cos(c[1] @ w)), (9, h))
        return h, sums

    args = (arg(mesh, (512, 512), "float32"), arg(mesh, (1024, 512), "float32", "data"))
    return jax.jit(run).lower(*args), {"loops": [3, 3, 7, 9], "devices": 4}


@sample
def moe_v5p() -> tuple[Any, dict[str, Any]]:
    """8 experts on 8 devices, tokens exchanged by all-to-all, an all-reduce over pairs, a ring permute."""
    import jax
    import jax.numpy as jnp

    mesh = mesh_of("v5p:2x2x2", (2, 4), ("data", "expert"))

    @partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(jax.P(("data", "expert")), jax.P("expert"), jax.P()),
        out_specs=jax.P(("data", "expert")),
        check_vma=False,
    )
    def layer(x: Any, w: Any, router: Any) -> Any:
        tokens, d = x.shape
        order = jnp.argsort(jnp.argmax(x @ router, -1))
        sent = jax.lax.all_to_all(x[order].reshape(4, tokens // 4, d), "expert", 0, 0)
        done = jax.nn.gelu(sent.reshape(-1, d) @ w[0]).reshape(4, tokens // 4, d)
        back = jax.lax.all_to_all(done, "expert", 0, 0).reshape(tokens, d)
        back = back + jax.lax.ppermute(back, "expert", [(i, (i + 1) % 4) for i in range(4)])
        gathered = jax.lax.all_gather(back[:8], "expert", tiled=True)
        scattered = jax.lax.psum_scatter(back, "expert", tiled=True)
        return back * jax.lax.psum(back.sum(), "data") + gathered.sum() + scattered.sum()

    args = (
        arg(mesh, (8192, 1024), "bfloat16", ("data", "expert")),
        arg(mesh, (4, 1024, 1024), "bfloat16", "expert"),
        arg(mesh, (1024, 4), "bfloat16"),
    )
    return jax.jit(layer).lower(*args), {"loops": [], "devices": 8}


@sample
def data_dependent_v5e() -> tuple[Any, dict[str, Any]]:
    """A loop that ends when the data says so, a loop of runtime length, and a conditional."""
    import jax
    import jax.numpy as jnp

    mesh = mesh_of("v5e:2x2", (4,), ("data",))

    def run(x: Any, n: Any) -> Any:
        x = jax.lax.while_loop(lambda h: jnp.max(h) < 100.0, lambda h: h @ h + 1.0, x)
        x = jax.lax.fori_loop(0, n, lambda i, h: jnp.sin(h) @ x, x)
        return jax.lax.cond(n > 3, lambda h: h @ h, lambda h: h, x)

    args = (arg(mesh, (256, 256), "float32"), arg(mesh, (), "int32"))
    return jax.jit(run).lower(*args), {"loops": [None, None], "devices": 4}


H100 = """
gpu_device_info {
  cuda_compute_capability { major: 9 }
  core_count: 132  fpus_per_core: 128  clock_rate_ghz: 1.98
  threads_per_block_limit: 1024  threads_per_warp: 32  threads_per_core_limit: 2048
  thread_dim_limit_x: 1024  thread_dim_limit_y: 1024  thread_dim_limit_z: 64
  block_dim_limit_x: 2147483647  block_dim_limit_y: 65535  block_dim_limit_z: 65535
  shared_memory_per_block: 49152  shared_memory_per_core: 233472  shared_memory_per_block_optin: 232448
  registers_per_core_limit: 65536  registers_per_block_limit: 65536
  memory_bandwidth: 3352320000000  l2_cache_size: 52428800  device_memory_size: 84942979072
  runtime_version: "12.8.0" driver_version: "13.0.0" compile_time_toolkit_version: "12.8.0" dnn_version: "9.10.0"
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 10 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""


@sample
def fsdp_scan_h100() -> tuple[Any, dict[str, Any]]:
    """Six MLP layers under scan with sharded weights, by XLA:GPU for eight H100s."""
    import jax
    import numpy as np
    from jax.experimental import topologies

    devices = topologies.get_topology_desc(
        topology_name="", platform="cuda", target_config=H100, topology="1x1x8"
    ).devices
    mesh = jax.sharding.Mesh(np.array(devices), ("data",))

    def loss(w: Any, x: Any) -> Any:
        def layer(h: Any, p: Any) -> Any:
            h = h + jax.nn.gelu(h @ p["up"].astype("bfloat16")) @ p["down"].astype("bfloat16")
            return jax.lax.with_sharding_constraint(h, jax.NamedSharding(mesh, jax.P("data", None))), None

        return jax.numpy.mean(jax.lax.scan(jax.checkpoint(layer), x, w)[0].astype("float32") ** 2)

    w = {
        "up": arg(mesh, (6, 1024, 4096), "float32", None, "data", None),
        "down": arg(mesh, (6, 4096, 1024), "float32", None, None, "data"),
    }
    x = arg(mesh, (8 * 1024, 1024), "bfloat16", "data", None)
    options = {"xla_gpu_enable_triton_gemm": False}
    return jax.jit(jax.grad(loss)).lower(w, x), {"loops": [6, 6], "devices": 8, "options": options}


def build(name: str) -> None:
    """Compile one sample and write its text and what is known of it."""
    lowered, known = BUILDERS[name]()
    compiled = lowered.compile(compiler_options=known.pop("options", {}))
    text, memory = compiled.as_text(), compiled.memory_analysis()
    text = re.sub(r'"[^"\n]*/(site-packages/)?([^/"\n]+/[^/"\n]+\.py)"', r'"\2"', text)
    # The kernels' serialised bodies are most of the bytes and nothing reads them.
    text = re.sub(r'("body": ?")[^"]{64,}"', r'\1TUzvUg=="', text)
    text = re.sub(r'(\\"body\\": ?\\")[^"\\]{64,}\\"', r'\1TUzvUg==\\"', text)
    with gzip.GzipFile(SAMPLES / f"{name}.hlo.gz", "wb", mtime=0) as file:
        file.write(text.encode())
    expected = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
    expected[name] = known | {"argument_bytes": memory.argument_size_in_bytes}
    EXPECTED.write_text(json.dumps(expected, indent=1, sort_keys=True) + "\n")
    print(name, len(text), (SAMPLES / f"{name}.hlo.gz").stat().st_size)


def main() -> None:
    """Compile the named samples, or all of them."""
    if len(sys.argv) == 3 and sys.argv[1] == "--one":
        build(sys.argv[2])
        return
    SAMPLES.mkdir(exist_ok=True)
    environment = os.environ | {"TPU_SKIP_MDS_QUERY": "1", "JAX_PLATFORMS": "cpu", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}
    for name in sys.argv[1:] or [name for name in BUILDERS if not name.endswith("_h100")]:
        subprocess.run([sys.executable, __file__, "--one", name], check=True, env=environment)


if __name__ == "__main__":
    main()
