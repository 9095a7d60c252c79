"""Runs the reference programs on eight CPU devices: ``reference_numbers.py RESULTS.json``.

Each check gives numbers that `test_reference.py` holds to limits. Arithmetic is float32, so that two ways of computing
the same thing agree to rounding; gradients are read from the momentum of a first step (a tenth of them).
"""

import json
import os
import sys
import time
import traceback
from functools import cache, partial
from math import ceil, prod
from pathlib import Path

os.environ["XLA_FLAGS"] = (
    "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0"  # compiles sooner
)
os.environ["JAX_PLATFORMS"] = "cpu"
sys.path.insert(0, str(Path(__file__).parents[1]))

import jax
import jax.numpy as jnp
import numpy as np
import reference_models as models
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as kernels
from jax.sharding import Mesh, PartitionSpec

from chipwise.compiled.loaders.workload import load_workload
from chipwise.compiled.reference import has_program
from chipwise.ops.table import build as op_table
from chipwise.programs.jax import context, layers, linear, quantized, resnet, transformer
from chipwise.programs.jax import low_precision as low_products
from chipwise.programs.jax.attention import attention
from chipwise.programs.jax.collectives import AXES, Grid
from chipwise.programs.jax.serve import Serving, serving_step
from chipwise.programs.jax.weights import segments
from chipwise.programs.program import RECOMPUTE, Execution
from chipwise.workload.build import build_model
from chipwise.workload.model import Train
from chipwise.workload.params import count, lora_params
from chipwise.workload.presets import preset, preset_names

SAMPLES, TOKENS = 8, 16
ALONE = (1, 1, 1, 1)
TOP = {"masked": TOKENS, "types": 2, "next": 2, "classes": 10}  # whole numbers of a batch lie below these


def mesh(sizes):
    """The first devices as data, fsdp, expert and tensor axes, and a context axis before the last if there are five."""
    names = AXES if len(sizes) == len(AXES) else (*AXES[:-1], context.AXIS, AXES[-1])
    return Mesh(np.array(jax.devices()[: prod(sizes)]).reshape(sizes), names)


def values(shapes, seed, whole=None):
    """Random arrays, the same for every mesh; where a mesh pads a weight, the padding is all ones."""

    def one(path, shape, unpadded):
        rng = np.random.default_rng([seed, *jax.tree_util.keystr(path).encode()])
        if shape.dtype == jnp.int32:
            made = rng.integers(0, TOP.get(path[-1].key if path else "", 60), shape.shape)
        else:
            made = rng.normal(size=unpadded.shape) * 0.1
            made = np.pad(made, [(0, n - m) for n, m in zip(shape.shape, made.shape, strict=True)], constant_values=1)
        return jax.device_put(jnp.asarray(made, shape.dtype), shape.sharding)

    return jax.tree_util.tree_map_with_path(one, shapes, whole or shapes)


def zeros(shapes):
    """Arrays of zeros, placed."""
    return jax.tree.map(lambda s: jax.device_put(jnp.zeros(s.shape, s.dtype), s.sharding), shapes)


def program(fields, sizes=ALONE, recompute="none", accumulate=1, trained=None, **more):
    """The training step of a tiny model: always the same global batch."""
    model = build_model(fields)
    train = Train(SAMPLES, TOKENS, **{"precision": "fp32", "optimizer": "sgd"} | (trained or {}))
    micro = SAMPLES // (prod(sizes[:3]) * accumulate)
    execution = Execution(micro, RECOMPUTE[recompute], accumulate, "cpu")
    if model.family == "cnn":
        return resnet.training_step(model, train, mesh(sizes), execution, **more)
    return transformer.training_step(model, train, mesh(sizes), execution)


def stepped(made, fields, steps=1):
    """Losses of some steps on one batch, and the momentum after them as plain arrays."""
    unsharded = program(fields).args[0]["weights"]
    shapes, batch = made.args
    state = {name: zeros(part) for name, part in shapes.items()} | {"weights": values(shapes["weights"], 1, unsharded)}
    batch, step, losses = ordered(values(batch, 2), made.mesh), jax.jit(made.fn), []
    for _ in range(steps):
        state, loss = step(state, batch)
        losses.append(float(loss))
    cut = jax.tree.map(lambda x, s: np.asarray(x)[tuple(map(slice, s.shape))], state["moments"][0], unsharded)
    return losses, cut


def ordered(batch, mesh):
    """The batch with the tokens of each sequence as the devices of a context axis have them."""
    parts = mesh.shape.get(context.AXIS, 1)
    if parts == 1:
        return batch
    return jax.tree.map(lambda x: jax.device_put(x[:, context.order(TOKENS, parts)], x.sharding), batch)


@cache
def alone(name):
    """What one device computes, which the others are compared with."""
    fields = getattr(models, name)
    more = {"joined": True} if name == "RESNET" else {}
    return stepped(program(fields, **more), fields)


def difference(name, made):
    """How far a program is from the one on one device: its loss, and the worst of its gradients."""
    (want, grads), (got, others) = alone(name), stepped(made, getattr(models, name))
    largest = max(float(np.abs(g).max()) for g in jax.tree.leaves(grads))

    def off(a, b):
        return float(np.abs(a - b).max() / max(np.abs(a).max(), 1e-3 * largest))  # some are zero but for rounding

    paths = jax.tree_util.tree_flatten_with_path(jax.tree.map(off, grads, others))[0]
    worst = max(paths, key=lambda each: each[1])
    return {"loss": abs(got[0] - want[0]) / want[0], "gradient": worst[1], "where": jax.tree_util.keystr(worst[0])}


def sharded(name, sizes, **more):
    """The same step on a mesh."""
    return difference(name, program(getattr(models, name), sizes, **more))


def low_precision(precision):
    """Products in 8 bits against those in bf16: the loss, and how far off all gradients together are; dense and expert
    layers, split and not, kept and computed again. In bf16 beside them: what rounding alone does."""
    out = {}
    for name, sizes, recompute in (
        ("LLAMA", ALONE, "none"),
        ("LLAMA", (1, 2, 1, 2), "selective"),
        ("DEEPSEEK", (1, 1, 2, 2), "full"),
    ):
        fields = getattr(models, name)
        plain, low = (
            stepped(program(fields, sizes, recompute, trained={"precision": p}), fields) for p in ("bf16", precision)
        )
        want, got = (np.concatenate([np.ravel(g) for g in jax.tree.leaves(grads)]) for _, grads in (plain, low))
        out[f"{name} {recompute}"] = {
            "loss": abs(low[0][0] / plain[0][0] - 1),
            "gradient": float(np.linalg.norm(got - want) / np.linalg.norm(want)),
        }
    losses = stepped(
        program(models.MIXTRAL, (1, 1, 2, 2), trained={"optimizer": "adamw", "precision": precision}), models.MIXTRAL, 5
    )[0]
    return out | {"losses": losses}


def adapters(name, sizes, targets, recompute="none"):
    """A step of adapters against one of all weights, with the adapters' products added to them, on one device.

    The gradient of A is that of the sum times B, that of B is A times it. All of what isn't trained comes back as it was.
    """
    fields = getattr(models, name)
    lora = {"lora_rank": 2, "lora_targets": targets}
    made, single, plain = (
        program(fields, sizes, recompute, trained=lora),
        program(fields, trained=lora),
        program(fields),
    )
    (shapes, batch), (alone, _) = made.args, single.args
    state = {name: zeros(part) for name, part in shapes.items()}
    state |= {n: values(shapes[n], seed, alone[n]) for n, seed in (("weights", 7), ("frozen", 1))}
    after, loss = jax.jit(made.fn)(state, values(batch, 2))
    small, base = values(alone["weights"], 7), values(alone["frozen"], 1)
    wide = {"weights": transformer_sum(base, small), "moments": [zeros(part) for part in plain.args[0]["moments"]]}
    summed, want = jax.jit(plain.fn)(wide, values(plain.args[1], 2))
    worst, count = 0.0, 0
    rows = (after["moments"][0]["layers"], small["layers"], summed["moments"][0]["layers"])
    for got, own, slope in (parts for row in zip(*rows, strict=True) for parts in zip(*row, strict=True)):
        for weight, into, letters, back in adapted(own):
            a, b, g = own[weight + "_a"], own[weight + "_b"], slope[weight]
            for end, right in (
                ("_a", jnp.einsum(f"n{letters},n{back}->n{into}", g, b)),
                ("_b", jnp.einsum(f"n{into},n{letters}->n{back}", a, g)),
            ):
                off = np.abs(np.asarray(got[weight + end]) - np.asarray(right)).max() / np.abs(np.asarray(right)).max()
                worst, count = max(worst, float(off)), count + right.size
    same = all(
        bool((np.asarray(x) == np.asarray(y)).all())
        for x, y in zip(jax.tree.leaves(after["frozen"]), jax.tree.leaves(state["frozen"]), strict=True)
    )
    counted = lora_params(build_model(fields), 2, targets)
    off = abs(float(loss) / float(want) - 1)
    return {"loss": off, "gradient": worst, "frozen": same, "trained": count / counted}


def adapted(layer):
    """The layers of `layer` with adapters, and the letters of A, W and B."""
    for weight, (spec, _) in linear.SPECS.items():
        if weight + "_a" in layer:
            into, back = (low_products.letters_of(part)[1] for part in linear.adapter_specs(spec))
            yield weight, into, low_products.letters_of(spec)[1], back


def transformer_sum(base, small):
    """The base with every adapter's product added."""
    layers = [
        [
            mine
            | {
                weight: mine[weight] + jnp.einsum(f"n{a},n{b}->n{w}", own[weight + "_a"], own[weight + "_b"])
                for weight, a, w, b in adapted(own)
            }
            for mine, own in zip(*row, strict=True)
        ]
        for row in zip(base["layers"], small["layers"], strict=True)
    ]
    return base | {"layers": layers}


def products():
    """How far single products in 8 bits are off, forward and both ways back, and one of a matrix of zeros."""
    rng, out = np.random.default_rng(6), {}
    for low in low_products.FORMATS:
        grid, plain = (Grid(1, 1, 1, 1, "float32", low=name) for name in (low, ""))
        for spec, left, right in (
            ("bsd,dhk->bshk", (2, 8, 32), (32, 4, 8)),
            ("bshk,hkd->bsd", (2, 8, 4, 8), (4, 8, 32)),
            ("ecd,edf->ecf", (3, 16, 32), (3, 32, 8)),
        ):
            x, w = (jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in (left, right))
            (got, back), (want, wanted) = (
                jax.vjp(lambda x, w, g=g, spec=spec: low_products.product(spec, x, w, g), x, w) for g in (grid, plain)
            )
            pairs = zip((got, *back(want)), (want, *wanted(want)), strict=True)
            out[f"{low} {spec}"] = max(float(jnp.linalg.norm(a - b) / jnp.linalg.norm(b)) for a, b in pairs)
        zeros = low_products.product("bsd,df->bsf", jnp.zeros((1, 2, 4)), jnp.zeros((4, 3)), grid)
        out[f"{low} zeros"] = float(jnp.abs(zeros).max())
    return out


def splash():
    """Splash attention of queries spread over two devices, and its gradients, against the plain one of all."""
    make, kernels.make_splash_mha = kernels.make_splash_mha, partial(kernels.make_splash_mha, interpret=True)
    rng, length, out = np.random.default_rng(8), 256, {}
    q, k, v = (jnp.asarray(rng.normal(size=(1, 2, length, 64)), jnp.float32) for _ in range(3))
    shared, where = PartitionSpec(None, None, context.AXIS), context.order(length, 2)
    for name, window in (("causal", 0), ("windowed", 100)):
        part, whole = (
            attention("tpu", length, 2, 64, True, window, 128, 2),
            attention("cpu", length, 2, 64, True, window),
        )
        spread = jax.shard_map(
            lambda q, k, v, part=part: part(q, k, v, None),
            mesh=Mesh(np.array(jax.devices()[:2]), (context.AXIS,)),
            in_specs=(shared, PartitionSpec(), PartitionSpec()),
            out_specs=shared,
            check_vma=False,
        )
        (got, back), (want, wanted) = (
            jax.vjp(run, q, k, v)
            for run in (
                lambda q, k, v, spread=spread: spread(q[:, :, where], k, v),
                lambda q, k, v, whole=whole: whole(q, k, v, None)[:, :, where],
            )
        )
        pairs = zip((got, *back(want)), (want, *wanted(want)), strict=True)
        out[name] = max(float(jnp.abs(a - b).max() / jnp.abs(b).max()) for a, b in pairs)
    kernels.make_splash_mha = make
    return out


def _bytes(program):
    """Bytes of all arguments before sharding."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(program.args))


def serving(name, sizes):
    """Decoding three tokens after a prompt of ten against the prompt of thirteen, and one device against the mesh."""
    model = build_model(getattr(models, name))
    served, single = (Serving(model, mesh(s), 2, 24, "fp32", "cpu") for s in (sizes, ALONE))
    short, long, decode = (
        serving_step(served, "prefill", 10),
        serving_step(served, "prefill", 13),
        serving_step(served, "decode"),
    )
    one = serving_step(single, "prefill", 13)
    weights = values(short.args[0], 1, one.args[0])
    tokens = np.random.default_rng(3).integers(0, 60, (2, 13)).astype(np.int32)
    logits, held = jax.jit(short.fn)(weights, tokens[:, :10])
    step = jax.jit(decode.fn, donate_argnums=(1,))
    for i in range(10, 13):
        logits, held = step(weights, held, tokens[:, i], np.int32(i))
    want, kept = jax.jit(long.fn)(weights, tokens)
    plain, _ = jax.jit(one.fn)(values(one.args[0], 1), tokens)
    want, logits, plain = (np.asarray(x)[:, : model.vocab] for x in (want, logits, plain))
    return {
        "decode": float(np.abs(logits - want).max() / np.abs(want).max()),
        "mesh": float(np.abs(plain - want).max() / np.abs(plain).max()),
        "cache": max(float(jnp.abs(a - b).max()) for a, b in zip(*map(jax.tree.leaves, (held, kept)), strict=True)),
        "slots": sorted({leaf.shape[-2] for leaf in jax.tree.leaves(decode.args[1])}),
    }


def int8_weights():
    """Weights kept as int8 give what the same weights give in bf16."""
    model = build_model(models.LLAMA)
    small, plain = (Serving(model, mesh(ALONE), 2, 12, precision, "cpu") for precision in ("int8", "bf16"))
    rng = np.random.default_rng(4)
    made, other = serving_step(small, "prefill"), serving_step(plain, "prefill")

    def fill(s):
        return jnp.asarray(
            rng.integers(-127, 128, s.shape) if s.dtype == jnp.int8 else rng.normal(size=s.shape) * 2e-3, s.dtype
        )

    packed = jax.tree.map(fill, made.args[0])
    loose = packed | {"layers": [[quantized.restored(w, "bfloat16") for w in row] for row in packed["layers"]]}
    tokens = rng.integers(0, 60, (2, 12)).astype(np.int32)
    got, want = jax.jit(made.fn)(packed, tokens)[0], jax.jit(other.fn)(loose, tokens)[0]
    return {
        "logits": float(jnp.abs(got - want).max() / jnp.abs(want).max()),
        "share": _bytes(made) / _bytes(other),
    }


def naive_experts(rows, w, model, capacity):
    """Every expert on every row, then only what the router asked for; rows beyond the capacity count nothing."""
    shares, picks = (np.asarray(t) for t in layers.routing(rows, w, model))
    x = np.asarray(rows)
    up, gate = (np.einsum("td,edf->tef", x, np.asarray(w[n])) for n in ("e_up", "e_gate"))
    each = np.einsum("tef,efd->ted", np.asarray(jax.nn.silu(gate)) * up, np.asarray(w["e_down"]))
    out, loads = np.zeros_like(x), [0] * model.experts.count
    for row, (share, pick) in enumerate(zip(shares, picks, strict=True)):
        for part, expert in zip(share, pick, strict=True):
            loads[expert] += 1
            if loads[expert] <= capacity:
                out[row] += part * each[row, expert]
    return out, loads


def experts(even):
    """Expert MLPs, on one device and split over two, against the naive ones.

    The first four numbers of a row are what the router sees. Rows that turn through the experts load all evenly, on
    each device too, so that nothing is dropped; random rows overload some, and each device drops its own overflow.
    """
    model = build_model(models.MIXTRAL)
    rng = np.random.default_rng(5)
    shapes = transformer.weights_tree(model, segments(model), TOKENS, Grid(1, 1, 1, 1))["layers"][0][0]
    w = {n: jnp.asarray(rng.normal(size=s.shape[1:]) * 0.3, jnp.float32) for n, s in shapes.items()}
    w["router"] = jnp.eye(model.d_model, model.experts.count) * 5
    h = rng.normal(size=(4, TOKENS, model.d_model)).astype(np.float32)
    if even:
        turns = np.arange(4 * TOKENS).reshape(4, TOKENS)
        h[..., :4] = np.eye(4)[turns % 4] + 0.5 * np.eye(4)[(turns + 1) % 4]
    out = {}
    for devices in (1, 2):
        grid = Grid(1, 1, devices, 1, "float32")
        spec = {n: PartitionSpec("expert") if n.startswith("e_") else PartitionSpec() for n in w}
        run = jax.shard_map(
            lambda h, w, grid=grid: layers.expert_mlp(h, w, model, grid),
            mesh=mesh((1, 1, devices, 1)),
            in_specs=(PartitionSpec("expert"), spec),
            out_specs=PartitionSpec("expert"),
            check_vma=False,
        )
        got = np.asarray(jax.jit(run)(h, w)).reshape(devices, -1, model.d_model)
        capacity = ceil(h[..., 0].size * model.experts.per_token / model.experts.count / devices)
        parts = [naive_experts(part, w, model, capacity) for part in h.reshape(devices, -1, model.d_model)]
        want = np.stack([part for part, _ in parts])
        out[f"on {devices}"] = float(np.abs(got - want).max() / np.abs(want).max())
        out[f"dropped on {devices}"] = sum(max(load - capacity, 0) for _, loads in parts for load in loads)
    few = layers.few_experts(h[:2, :1], w, model, Grid(1, 1, 1, 1, "float32"))
    want, _ = naive_experts(h[:2, 0], w, model, TOKENS)
    return out | {"few": float(np.abs(np.asarray(few)[:, 0] - want).max() / np.abs(want).max())}


def resnet_flops():
    """FLOPs of the lowered step of ResNet-50 against three forward passes; the stem needs no gradient of its input."""
    model, images = preset("resnet-50"), 2
    made = resnet.training_step(model, Train(images, 1, optimizer="sgd"), mesh(ALONE), Execution(images))
    table = op_table(model, 1)
    stem = sum(2 * m.rows * m.n * m.k * m.count for m in table.matmuls if m.place == "stem")
    state, loss = jax.eval_shape(made.fn, *made.args)
    same = jax.tree.map(lambda a, b: (a.shape, a.dtype) == (b.shape, b.dtype), state, made.args[0])
    return {
        "ratio": made.lower().cost_analysis()["flops"] / (images * (3 * table.flops_forward - stem)),
        "loss": list(loss.shape),
        "same state": all(jax.tree.leaves(same)),
    }


def held(args):
    """Bytes one device holds of arguments."""
    leaves = jax.tree.leaves(args)
    return sum(prod(s.sharding.shard_shape(s.shape)) * s.dtype.itemsize for s in leaves)


def state_bytes():
    """Weights and two moments of each known model on one device, over what the parameter count says; None without a
    reference program, which is refused before anything is built."""
    out = {}
    for name in preset_names():
        model = preset(name)
        if not has_program(model):
            out[name] = None
            continue
        step = resnet.training_step if model.family == "cnn" else transformer.training_step
        train = Train(8, min(model.learned_positions or 512, 512))
        state = step(model, train, mesh(ALONE), Execution(8)).args[0]
        out[name] = held((state["weights"], state["moments"])) / (12 * count(model).main)
    return out


def split_state_bytes():
    """The same of a device of eight, over an eighth of it."""
    out = {}
    for name, sizes in (("llama-3.1-8b", (1, 4, 1, 2)), ("mixtral-8x7b", (1, 2, 2, 2)), ("deepseek-v3", (1, 2, 4, 1))):
        made = transformer.training_step(preset(name), Train(8, 512), mesh(sizes), Execution(1, RECOMPUTE["full"]))
        out[name] = held(made.args[0]) / (12 * count(preset(name)).main / 8)
    return out


def argument_bytes():
    """Bytes of one device's arguments of the programs that are compiled."""
    return {
        name: held(load_workload(job.spec.data, jax.devices()[: prod(job.mesh.values())], job.mesh).args)
        for name, job in models.jobs().items()
    }


CHECKS = {
    "decoder on data, fsdp and tensor axes": lambda: sharded("GEMMA", (2, 2, 1, 2)),
    "decoder with more tensor devices than key heads": lambda: sharded("GEMMA", (1, 1, 1, 4)),
    "learned positions and parallel blocks": lambda: sharded("GPT", (1, 2, 1, 2)),
    "latent attention and experts on expert and tensor axes": lambda: sharded("DEEPSEEK", (1, 1, 2, 2)),
    "latent attention and experts on fsdp and expert axes": lambda: sharded("DEEPSEEK", (2, 2, 2, 1)),
    "decoder on fsdp, context and tensor axes": lambda: sharded("LLAMA", (1, 2, 1, 2, 2), recompute="full"),
    "windows and more tensor devices than key heads on a context axis": lambda: sharded("GEMMA", (1, 1, 1, 2, 4)),
    "latent attention and experts on a context axis": lambda: sharded("DEEPSEEK", (1, 1, 2, 4, 1)),
    "encoder on fsdp and tensor axes": lambda: sharded("BERT", (1, 2, 1, 2)),
    "ViT on data and tensor axes": lambda: sharded("VIT", (2, 1, 1, 2)),
    "ResNet with joined statistics": lambda: sharded("RESNET", (2, 2, 1, 1), joined=True),
    "accumulated": lambda: sharded("LLAMA", (1, 2, 1, 1), accumulate=2),
    "recompute selective": lambda: sharded("LLAMA", ALONE, recompute="selective"),
    "recompute full": lambda: sharded("LLAMA", ALONE, recompute="full"),
    "decoder learns": lambda: {
        "losses": stepped(program(models.MIXTRAL, (1, 1, 2, 2), trained={"optimizer": "adamw"}), models.MIXTRAL, 5)[0]
    },
    "ResNet learns": lambda: {"losses": stepped(program(models.RESNET, (2, 1, 1, 1)), models.RESNET, 5)[0]},
    "windowed decoder served": lambda: serving("GEMMA", (2, 1, 1, 2)),
    "learned positions served": lambda: serving("GPT", (1, 1, 1, 4)),
    "latent attention and experts served": lambda: serving("DEEPSEEK", (2, 1, 1, 2)),
    "int8": int8_weights,
    "splash on a context axis": splash,
    "products in 8 bits": products,
    "adapters of a decoder": lambda: adapters("LLAMA", (2, 2, 1, 2), "attention", "full"),
    "adapters with more tensor devices than key heads": lambda: adapters("LLAMA", (1, 1, 1, 4), "all"),
    "adapters of latent attention and experts": lambda: adapters("DEEPSEEK", (1, 1, 2, 2), "all"),
    "adapters of an encoder": lambda: adapters("BERT", (1, 2, 1, 2), "all", "selective"),
    "int8 products": lambda: low_precision("int8"),
    "fp8 products": lambda: low_precision("fp8"),
    "experts evenly loaded": lambda: experts(True),
    "experts overloaded": lambda: experts(False),
    "ResNet FLOPs": resnet_flops,
    "state": state_bytes,
    "split state": split_state_bytes,
    "arguments": argument_bytes,
}


def main(path, wanted):
    """Run the checks (all, or those named) and write what they give."""
    results = {}
    for name in wanted or CHECKS:
        start = time.process_time()
        try:
            results[name] = CHECKS[name]()
        except Exception:
            results[name] = {"error": traceback.format_exc()[-3000:]}
        print(f"{name} ({time.process_time() - start:.0f} CPU seconds): {results[name]}", flush=True)
    Path(path).write_text(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
