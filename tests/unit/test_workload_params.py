"""Parameter counts: independent formulas, and properties any count must have."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.errors import InputError
from chipwise.workload.build import build_model
from chipwise.workload.cnn import resnet_convs
from chipwise.workload.model import Experts
from chipwise.workload.params import count, lora_params
from chipwise.workload.presets import preset


@st.composite
def decoders(draw):
    kv_heads = draw(st.sampled_from([1, 2, 4]))
    heads = kv_heads * draw(st.integers(1, 4))
    fields = {
        "family": "decoder",
        "layers": draw(st.integers(1, 64)),
        "d_model": heads * 8 * draw(st.integers(1, 16)),
        "heads": heads,
        "kv_heads": kv_heads,
        "d_ff": draw(st.integers(1, 4096)),
        "vocab": draw(st.integers(1, 100_000)),
        "gated": draw(st.booleans()),
        "tied": draw(st.booleans()),
        "bias": draw(st.booleans()),
        "qk_norm": draw(st.booleans()),
        "norm_params": draw(st.sampled_from([1, 2])),
    }
    if draw(st.booleans()):
        n = draw(st.integers(1, 32))
        fields["experts"] = {"count": n, "per_token": draw(st.integers(1, n)), "d_ff": 256}
    return build_model(fields)


@settings(max_examples=60, deadline=None)
@given(decoders())
def test_count_grows_with_layers_width_and_vocabulary(model):
    base = count(model).total
    assert count(replace(model, layers=model.layers + 1)).total > base
    assert count(replace(model, vocab=model.vocab + 1)).total > base
    assert count(replace(model, heads=model.heads + model.kv_heads)).total > base
    if model.dense_layers:
        assert count(replace(model, d_ff=model.d_ff + 1)).total > base


@settings(max_examples=60, deadline=None)
@given(decoders())
def test_every_layer_adds_the_same(model):
    totals = [count(replace(model, layers=n)).total for n in (2, 3, 4)]
    assert totals[1] - totals[0] == totals[2] - totals[1]
    assert count(model).per_layer == totals[1] - totals[0]


@settings(max_examples=60, deadline=None)
@given(decoders())
def test_active_is_total_without_the_idle_experts(model):
    p = count(model)
    assert p.active <= p.total
    assert (p.active == p.total) == (model.experts is None or model.experts.per_token == model.experts.count)


@settings(max_examples=60, deadline=None)
@given(decoders(), st.integers(1, 256))
def test_adapters_grow_with_rank_and_targets(model, rank):
    attention = lora_params(model, rank)
    assert attention * 2 == lora_params(model, 2 * rank)
    assert lora_params(model, rank, "all") > attention


def test_tying_saves_exactly_the_output_layer():
    model = preset("llama-3.1-8b")
    saved = count(model).total - count(replace(model, tied=True)).total
    assert saved == model.vocab * model.d_model == count(model).head


def test_latent_attention_by_hand():
    # DeepSeek-V2-Lite: q 2048 -> 16 x 192; kv 2048 -> 512 + 64, 512 -> 16 x 256; out 16 x 128 -> 2048.
    by_hand = 2048 * 16 * 192 + 2048 * 576 + 512 * 16 * 256 + 16 * 128 * 2048
    assert count(preset("deepseek-v2-lite")).attention == 27 * by_hand


def test_moe_layers_follow_first_dense_and_every():
    model = preset("llama-4-maverick")
    assert (model.moe_layers, model.dense_layers) == (24, 24)
    model = replace(model, experts=Experts(count=8, per_token=1, d_ff=64, first_dense=3, every=1))
    assert (model.moe_layers, model.dense_layers) == (45, 3)


def test_windowed_layers_follow_the_pattern():
    assert preset("mistral-7b").windowed_layers == 32
    assert preset("gemma-2-9b").windowed_layers == 21
    assert preset("gemma-3-27b").windowed_layers == 52
    assert preset("llama-3.1-8b").windowed_layers == 0


def test_multi_token_prediction_is_counted_apart():
    p = count(replace(preset("deepseek-v3"), mtp_layers=1))
    # The card says 14B with the embedding and head it shares: 2 x 129280 x 7168 of them.
    assert 13.2e9 < p.mtp + 2 * p.embedding < 14e9
    assert p.main == 671_026_419_200 == count(preset("deepseek-v3")).total


def test_adaln_of_dit_is_six_widths_per_block():
    m = preset("dit-xl-2")
    p = count(m)
    assert p.conditioning - p.conditioning_outside == m.layers * 6 * m.d_model * (m.d_model + 1)


def test_resnet_50_multiply_adds():
    convs = resnet_convs([3, 4, 6, 3], bottleneck=True)
    macs = sum(c.count * (c.c_in // c.groups) * c.c_out * c.kernel**2 * c.out**2 for c in convs)
    assert round((macs + 2048 * 1000) / 1e9, 2) == 4.09  # torchvision prints 4.09 GFLOPS for ResNet50_Weights


def test_image_tokens():
    assert preset("vit-b-16").image_tokens == 197
    assert preset("dit-xl-2").image_tokens == 256
    assert preset("resnet-50").image_tokens == 1
    assert preset("gpt2").image_tokens == 0


def test_image_tokens_of_diffusion_models_count_text_and_frames():
    assert preset("flux.1-dev").image_tokens == 64 * 64 + 512
    assert preset("wan2.1-t2v-14b").image_tokens == 21 * 45 * 80
    assert preset("sdxl").image_tokens == 1


def test_a_mamba_2_layer_by_hand():
    # mamba2-2.7b: 2560 -> 2 x 5120 + 2 x 128 + 80, a convolution of 4 over 5376, then A, D, dt, a norm, 5120 -> 2560.
    by_hand = 2560 * (2 * 5120 + 256 + 80) + 5376 * 5 + 3 * 80 + 5120 + 5120 * 2560
    p = count(preset("mamba2-2.7b"))
    assert p.state_space == 64 * by_hand
    assert p.attention == p.mlp == 0


def test_two_denoisers_are_held_and_one_works():
    one, two = count(preset("wan2.1-t2v-14b")), count(preset("wan2.2-t2v-a14b"))
    assert two.total == 2 * one.total
    assert two.active == one.active == one.total


def test_layers_without_an_mlp_are_not_counted_as_dense():
    model = preset("nemotron-h-8b")
    assert (model.layers, model.attention_layers, model.windowed_layers, model.dense_layers) == (28, 4, 24, 24)
    assert preset("nemotron-3-nano-30b-a3b").moe_layers == 23
    assert preset("mamba2-2.7b").dense_layers == 0


@pytest.mark.parametrize(("change", "field"), [
    ({"ssm": {"layers": 3, "heads": 4, "head_dim": 16, "state": 16}}, "model.ssm.layers"),
    ({"encoder": {"layers": 1}}, "model.encoder"),
    ({"joint": {"double": 1}}, "model.joint"),
])  # fmt: skip
def test_parts_of_other_families_and_too_many_layers_are_refused(change, field):
    plain = {"family": "decoder", "layers": 2, "d_model": 64, "heads": 4, "vocab": 100}
    with pytest.raises(InputError) as caught:
        build_model({**plain, **change})
    assert caught.value.field == field


def test_a_unet_has_a_side_that_halves():
    net = {"channels": [320, 640, 1280], "depth": [0, 2, 10]}
    assert build_model({"family": "unet", "image": 64, "unet": net}).convs[0].out == 64
    for table in ({"image": 66, "unet": net}, {"image": 64, "unet": {**net, "depth": [0]}}):
        with pytest.raises(InputError):
            build_model({"family": "unet", **table})
