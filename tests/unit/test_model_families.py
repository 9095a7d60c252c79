"""Every family is predicted, trained and served, within what no chip can beat; or refused with a reason."""

from __future__ import annotations

import pytest

import chipwise as cw
from chipwise.errors import InputError
from chipwise.workload.flops import pass_flops
from chipwise.workload.preset_view import HEADINGS, example, list_models
from chipwise.workload.presets import preset, preset_names

# (model, flags of its training, chips): one of each kind of operations
TRAINED = [
    ("t5-v1.1-large", {"batch": 256, "sequence": 512, "steps": 10}, "h100:8"),
    ("whisper-large-v3", {"batch": 64, "sequence": 448, "steps": 10}, "v5e:16"),
    ("nemotron-nano-9b-v2", {"batch": 64, "sequence": 4096, "steps": 10}, "h100:16"),
    ("nemotron-3-nano-30b-a3b", {"batch": 64, "sequence": 4096, "steps": 10}, "h200:32"),
    ("jamba-v0.1", {"batch": 64, "sequence": 4096, "steps": 10}, "h200:64"),
    ("mamba2-2.7b", {"batch": 64, "sequence": 2048, "steps": 10}, "h100:8"),
    ("qwen3.5-27b", {"batch": 64, "sequence": 4096, "steps": 10}, "h200:32"),
    ("deepseek-v3.2", {"batch": 512, "sequence": 4096, "steps": 10}, "h200:512"),
    ("flux.1-dev", {"batch": 64, "steps": 10}, "h100:64"),
    ("sd3.5-medium", {"batch": 64, "steps": 10}, "h100:8"),
    ("wan2.1-t2v-1.3b", {"batch": 16, "steps": 10}, "h200:16"),
    ("sdxl", {"batch": 64, "steps": 10}, "h100:8"),
    ("bge-m3", {"batch": 64, "sequence": 512, "steps": 10}, "l4:1"),
]
SERVED = [
    ("sdxl", {"rate": 0.2, "denoise_steps": 20}, "h100:1"),
    ("flux.1-dev", {"rate": 0.05, "denoise_steps": 28}, "h100:1"),
    ("wan2.2-t2v-a14b", {"rate": 0.0002, "denoise_steps": 40}, "h200:1"),
    ("nemotron-nano-9b-v2", {"rate": 1, "input_len": 1000, "output_len": 100}, "h100:1"),
    ("mamba2-2.7b", {"rate": 1, "input_len": 1000, "output_len": 100}, "h100:1"),
    ("bge-m3", {"rate": 20, "input_len": 500}, "l4:1"),
    ("t5-v1.1-xxl", {"rate": 1, "input_len": 400, "output_len": 60}, "h100:1"),
    ("whisper-large-v3", {"rate": 2, "output_len": 100}, "l4:1"),
    ("jamba-v0.1", {"rate": 0.5, "input_len": 1000, "output_len": 100}, "h200:1"),
]


@pytest.mark.parametrize(("name", "flags", "place"), TRAINED)
def test_training_is_predicted_within_physics(name, flags, place):
    run = cw.predict(cw.load(name, **flags), on=place)
    assert run.step.low <= run.step.value <= run.step.high
    assert 0.02 < run.mfu < 1


@pytest.mark.parametrize(("name", "flags", "place"), SERVED)
def test_serving_is_predicted_within_physics(name, flags, place):
    served = cw.serve(cw.load(name, **flags), on=place, tp=1, requests=200).served
    model, chip = preset(name), served.service.target.chip
    assert served.e2e.mean.value > 0
    if model.denoises:  # no image takes less than its products at the chip's peak
        floor = flags["denoise_steps"] * pass_flops(model, model.image_tokens) / chip.peak["bf16"]
        assert floor < served.e2e.mean.value < 10 * floor


def _whisper(name="whisper-large-v3", **flags):
    given = {"rate": 0.5, "output_len": 100, **flags}
    return cw.serve(cw.load(name, **given), on="h100:1", tp=1, requests=200).served


def test_an_encoder_decoder_reads_with_its_encoder_and_writes_with_its_decoder():
    served = _whisper()
    replica = served.service.replica
    times, chip, model = replica.step_times(), replica.chip, replica.model
    # encoder: 32 layers of 12 d^2 weights, their scores, and keys and values for 32 layers of the decoder
    d, frames = 1280, 1500
    flops = 2 * frames * (32 * (12 * d * d + 2 * frames * d) + 32 * 2 * d * d + 2 * 3 * 128 * d + 3 * d * d)
    assert pass_flops(model, frames) == flops
    encoder_s = times.prompt_s[frames] + times.pair_s * frames * frames / 2
    assert flops / chip.peak["bf16"] < encoder_s < 20 * flops / chip.peak["bf16"]
    # decoder: 32 layers of 14 d^2 weights that a token meets and the vocabulary, two bytes each
    step_bytes = 2 * (32 * 14 * d * d + 51866 * d)
    assert step_bytes / chip.bandwidth < times.tokens_s[1] < 10 * step_bytes / chip.bandwidth
    # both caches: keys and values of 32 layers, of frames read and of tokens written alike
    assert replica.kv_cache.sequence(frames + 100) == 1600 * 32 * 2 * d * 2
    assert served.ttft.mean.value > encoder_s
    assert served.tpot.mean.value > times.tokens_s[1] + times.context_s * frames


def test_fewer_layers_of_the_decoder_make_tokens_faster_and_the_encoder_no_slower():
    large, turbo = _whisper(), _whisper("whisper-large-v3-turbo")
    assert turbo.tpot.mean.value < large.tpot.mean.value / 2
    frames = [x.service.replica.step_times().prompt_s[1500] for x in (turbo, large)]
    assert 0.7 < frames[0] / frames[1] < 1


@pytest.mark.parametrize(("name", "flags", "reason"), [
    ("whisper-large-v3", {"input_len": 100, "output_len": 10}, "reads 30 s of audio at a time, 1,500 frames"),
    ("whisper-large-v3", {"output_len": 449}, "at most the 448 tokens"),
    ("t5-base", {"input_len": 513, "output_len": 10}, "at most the 512 tokens"),
    ("t5-base", {"input_len": 100, "output_len": 10, "prefix_hit": 0.5}, "reads a prompt as a whole"),
])  # fmt: skip
def test_requests_that_an_encoder_decoder_does_not_take_are_refused(name, flags, reason):
    with pytest.raises(InputError, match=reason):
        cw.load(name, rate=1, **flags)


def test_an_encoder_decoder_takes_prompt_and_answer_of_its_whole_length_each():
    assert cw.load("t5-base", rate=1, input_len=512, output_len=512).serve.input.most == 512


def test_more_denoisers_take_memory_and_no_time():
    one, two = (
        cw.serve(cw.load(name, rate=0.0002, denoise_steps=4), on="h200:1", tp=1, requests=50).served
        for name in ("wan2.1-t2v-14b", "wan2.2-t2v-a14b")
    )
    assert two.service.replica.kv_cache.weights > 1.9 * one.service.replica.kv_cache.weights
    assert abs(two.e2e.mean.value / one.e2e.mean.value - 1) < 0.01


def test_models_are_listed_by_family_with_a_command_that_works():
    text = str(list_models())
    headings = [heading for heading in HEADINGS.values() if f"{heading}: " in text]
    assert headings == list(HEADINGS.values())
    assert list_models("Qwen3-32B-AWQ").names == ("qwen3-32b",)
    for name in preset_names():
        words = example(preset(name)).split()
        flags = {words[i][2:].replace("-", "_"): words[i + 1] for i in range(3, len(words), 2)}
        del flags["on"]
        assert cw.load(name, **flags).model.name == name


@pytest.mark.parametrize("tp", [1, 4])
def test_a_decode_step_reads_and_writes_the_states_of_recurrent_layers(tp):
    work = cw.load("qwen3-next-80b-a3b", rate=0.1, input_len=1000, output_len=100, kv_precision="fp8", precision="fp8")
    replica = cw.serve(work, on="h200:4", tp=tp, replicas=1, requests=50).served.service.replica
    model, budget = replica.model, replica.kv_cache
    # 36 layers with 32 heads of 128 x 128, and 3 inputs of the convolution, in fp32 whatever the cache has
    state = 36 * 4 * (32 * 128 * 128 + 3 * (32 * 128 + 2 * 16 * 128)) / tp
    each = 2 * max(2 / tp, 1) * 256 * 1 * 12  # keys and values of the layers that attend, in one byte
    assert budget.sequence(1000) == pytest.approx(state + 1000 * each, rel=1e-9)
    assert replica.parts.window_s == pytest.approx(2 * state / replica.chip.bandwidth, rel=0.4)
    assert replica.parts.window_s > 2 * state / replica.chip.bandwidth
    assert model.kind == "ssm-hybrid"
