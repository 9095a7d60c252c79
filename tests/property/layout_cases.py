"""Random models, places and layouts for the property tests of layouts."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from chipwise.catalog.calibration import Calibration, load_calibration
from chipwise.workload.model import Experts, Latent, Model, Train, Workload

UNCALIBRATED = Calibration()
CALIBRATIONS = st.sampled_from((UNCALIBRATED, load_calibration(bench=False)))
SWITCH, MESH, TORUS = ("h100", "a100-80gb", "gb200", "l40s"), ("mi300x", "mi355x"), ("v5e", "v5p", "v6e")
STACKS = {"gpu": ("", "megatron", "torchtitan", "maxtext"), "tpu": ("", "maxtext", "jax")}
PRECISIONS = {
    "h100": ("bf16", "fp8"),
    "l40s": ("bf16", "fp8"),
    "mi300x": ("bf16", "fp8"),
    "mi355x": ("bf16", "fp8"),
    "gb200": ("bf16", "fp4"),
    "v5e": ("bf16", "int8"),
    "v5p": ("bf16", "fp8"),
    "v6e": ("bf16", "int8"),
    "a100-80gb": ("bf16", "tf32"),
}


@st.composite
def models(draw) -> Model:
    kind = draw(st.sampled_from(("dense", "moe", "latent", "encoder", "windowed")))
    heads = draw(st.sampled_from((8, 12, 16, 24, 56)))
    kv = draw(st.sampled_from([k for k in (1, 2, 4, 8, heads) if heads % k == 0]))
    head_dim = draw(st.sampled_from((64, 96, 128)))
    model = Model(
        kind,
        "decoder",
        layers=draw(st.sampled_from((4, 6, 14, 24, 30, 61))),
        d_model=heads * head_dim,
        heads=heads,
        kv_heads=kv,
        head_dim=head_dim,
        d_ff=draw(st.sampled_from((1024, 4096, 5632, 11264))),
        vocab=draw(st.sampled_from((32000, 50257, 128256))),
        gated=draw(st.booleans()),
        parallel_block=draw(st.booleans()),
    )
    if kind == "encoder":
        return replace(model, family="encoder", causal=False, kv_heads=heads)
    if kind == "windowed":
        return replace(model, window=1024, global_every=draw(st.sampled_from((0, 2, 6))))
    if kind in ("moe", "latent"):
        experts = Experts(
            draw(st.sampled_from((8, 12, 64))),
            draw(st.integers(1, 6)),
            1024,
            shared_d_ff=draw(st.sampled_from((0, 1024))),
            first_dense=draw(st.integers(0, 2)),
        )
        model = replace(model, experts=experts)
    if kind == "latent":
        latent = Latent(draw(st.sampled_from((0, 768))), 512, 128, 64, 128)
        model = replace(model, latent=latent, kv_heads=heads, mtp_layers=draw(st.integers(0, 1)))
    return model


@st.composite
def cases(draw, places=SWITCH + MESH + TORUS, chips=(1, 4, 8, 16, 64, 128, 256, 512)):
    """A workload and the chips it runs on."""
    chip = draw(st.sampled_from(places))
    count = draw(st.sampled_from(chips))
    train = Train(
        count * draw(st.sampled_from((1, 2, 3, 8))),
        draw(st.sampled_from((512, 2048, 4096, 8192))),
        precision=draw(st.sampled_from(PRECISIONS[chip])),
        optimizer=draw(st.sampled_from(("adamw", "sgd"))),
        state_precision=draw(st.sampled_from(("fp32", "bf16"))),
        lora_rank=draw(st.sampled_from((0, 0, 16))),
        stack=draw(st.sampled_from(STACKS["tpu" if chip in TORUS else "gpu"])),
    )
    return Workload("case", draw(models()), train), f"{chip}:{count}"
