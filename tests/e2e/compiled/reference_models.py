"""Tiny models with everything the reference programs know, and their jobs on four chips; no JAX is needed here."""

from chipwise.catalog.names import parse
from chipwise.compiled.reference import serving_job, training_job
from chipwise.predict.model.layouts import Layout
from chipwise.workload.build import build_model
from chipwise.workload.model import Train, Workload

LLAMA = {"family": "decoder", "layers": 2, "d_model": 32, "heads": 4, "kv_heads": 2, "d_ff": 64, "vocab": 64}
GEMMA = LLAMA | {
    "layers": 3, "vocab": 61, "tied": True, "head_bias": True, "qk_norm": True, "norms_per_layer": 4, "window": 4,
    "global_every": 2, "sinks": True, "qkv_bias": True, "out_bias": True,
}  # fmt: skip
GPT = LLAMA | {
    "gated": False, "bias": True, "learned_positions": 24, "norm_params": 2, "tied": True, "embedding_norm": True,
    "parallel_block": True,
}  # fmt: skip
DEEPSEEK = LLAMA | {
    "kv_heads": 4, "layers": 3, "bias": True,
    "latent": {"q_rank": 16, "kv_rank": 8, "nope_dim": 8, "rope_dim": 4, "v_dim": 8},
    "experts": {"count": 4, "per_token": 4, "d_ff": 32, "shared_d_ff": 16, "first_dense": 1, "router_bias": True},
}  # fmt: skip
MIXTRAL = LLAMA | {"experts": {"count": 4, "per_token": 2, "d_ff": 32}}
BERT = {
    "family": "encoder", "layers": 2, "d_model": 32, "heads": 4, "d_ff": 64, "vocab": 64, "learned_positions": 16,
    "token_types": 2, "pooler": True,
}  # fmt: skip
VIT = {"family": "vit", "layers": 2, "d_model": 32, "heads": 4, "d_ff": 64, "image": 16, "patch": 4, "classes": 10}
RESNET = {"family": "cnn", "blocks": [2, 1], "image": 32, "classes": 10}

CHIPS = "v5e:2x2"
SEQUENCE = 256
_SIZES = {"d_model": 256, "d_ff": 512, "vocab": 512, "layers": 2}
_WIDE = _SIZES | {"head_dim": 128}
_LATENT = {"q_rank": 128, "kv_rank": 128, "nope_dim": 128, "rope_dim": 64, "v_dim": 128}
EXPERTS = {"count": 4, "per_token": 2, "d_ff": 256, "shared_d_ff": 128, "first_dense": 1}
_FSDP_TENSOR = Layout(2, 2, zero=3, shard=2, recompute="full", micro_batch=2)

TRAINED = {
    "dense": (LLAMA | _WIDE, _FSDP_TENSOR),
    "windowed": (GEMMA | _WIDE | {"window": 128}, _FSDP_TENSOR),
    "latent": (DEEPSEEK | _WIDE | {"latent": _LATENT, "experts": None, "bias": False}, _FSDP_TENSOR),
    "experts": (LLAMA | _WIDE | {"experts": EXPERTS}, Layout(4, ep=2, zero=3, shard=4, recompute="selective")),
    "encoder": (BERT | _SIZES | {"learned_positions": SEQUENCE}, _FSDP_TENSOR),
    "vit": (VIT | {"d_model": 256, "d_ff": 512}, Layout(2, 2, zero=3, shard=2)),
    "resnet": (RESNET | {"blocks": [1, 1]}, Layout(4)),
    "offloaded": (LLAMA | _WIDE, Layout(4, zero=3, shard=4, recompute="offload")),
    "int8": (LLAMA | _WIDE, _FSDP_TENSOR),
    "int8 experts": (LLAMA | _WIDE | {"experts": EXPERTS}, Layout(4, ep=2, zero=3, shard=4, recompute="selective")),
    "fp8": (LLAMA | _WIDE, _FSDP_TENSOR),
    "adapters": (LLAMA | _WIDE, _FSDP_TENSOR),
    "context": (LLAMA | _WIDE, Layout(2, cp=2, zero=3, shard=2, recompute="full", micro_batch=2)),
    "int8 adapters": (LLAMA | _WIDE | {"experts": EXPERTS}, Layout(4, ep=2, zero=3, shard=4, recompute="full")),
}
# What isn't trained in bf16 on `CHIPS`
PLACES = {"fp8": "v7x:2x2x1"}
VARIANTS = {
    "int8": {"precision": "int8"}, "int8 experts": {"precision": "int8"}, "fp8": {"precision": "fp8"},
    "adapters": {"lora_rank": 16}, "int8 adapters": {"lora_rank": 16, "lora_targets": "all", "precision": "int8"},
}  # fmt: skip
SERVED = {
    "prefill": (LLAMA | _WIDE, "prefill", 2, "bf16"),
    "decode": (LLAMA | _WIDE, "decode", 2, "bf16"),
    "decode in int8": (LLAMA | _WIDE, "decode", 2, "int8"),
    "windowed decode": (GEMMA | _WIDE | {"window": 128}, "decode", 4, "bf16"),
    "windowed prefill": (GEMMA | _WIDE | {"window": 128}, "prefill", 4, "bf16"),
    "latent decode": (TRAINED["latent"][0], "decode", 2, "bf16"),
    "latent prefill": (TRAINED["latent"][0], "prefill", 2, "bf16"),
    "experts decode": (TRAINED["experts"][0], "decode", 2, "bf16"),
    "experts prefill": (TRAINED["experts"][0], "prefill", 2, "bf16"),
}
# What compiles in every run of the tests; the rest is slow.
QUICK = ("dense", "decode", "decode in int8", "int8", "adapters", "context")


def jobs():
    """Every family's program at sizes that compile in seconds."""
    acc, out = parse(CHIPS), {}
    for name, (fields, layout) in TRAINED.items():
        model = build_model(fields)
        optimizer = "sgd" if model.family == "cnn" else "adamw"
        train = Train(8, model.image_tokens or SEQUENCE, optimizer=optimizer, **VARIANTS.get(name, {}))
        out[name] = training_job(Workload(name, model, train), parse(PLACES.get(name, CHIPS)), layout)
    for name, (fields, mode, tensor, precision) in SERVED.items():
        out[name] = serving_job(build_model(fields), acc, tensor, 4, SEQUENCE, mode, precision)
    return out
