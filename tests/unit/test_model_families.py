"""Every family is predicted, trained and served, within what no chip can beat; or refused with a reason."""

from __future__ import annotations

import pytest

import chipwise as cw
from chipwise.errors import Refusal
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
        from chipwise.workload.flops import pass_flops

        floor = flags["denoise_steps"] * pass_flops(model, model.image_tokens) / chip.peak["bf16"]
        assert floor < served.e2e.mean.value < 10 * floor


@pytest.mark.parametrize("name", ["t5-base", "whisper-large-v3-turbo"])
def test_serving_an_encoder_decoder_is_refused(name):
    with pytest.raises(Refusal, match="its training can be"):
        cw.load(name, rate=1, input_len=100, output_len=10)


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
