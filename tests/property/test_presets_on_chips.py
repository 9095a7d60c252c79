"""Every preset on chips of four makers, trained and served: an answer that makes sense, or one line that says why not."""

from __future__ import annotations

import math

import pytest

import chipwise as cw
from chipwise.catalog import load as load_catalog
from chipwise.errors import ChipwiseError
from chipwise.workload.flops import pass_flops
from chipwise.workload.model import STORED_BYTES, Model
from chipwise.workload.params import count
from chipwise.workload.presets import preset, preset_names
from chipwise.workload.serve import ServingWorkload

CHIPS = ("h100", "mi300x", "v5e", "trainium2")
NAMES = preset_names()
# one of each kind of operations, the largest mixture and the smallest encoder among them
SAMPLE = ("all-minilm-l6-v2", "deepseek-v3.2", "dit-xl-2", "flux.1-dev", "gpt-oss-120b", "jamba-v0.1",
          "kimi-k2-thinking", "llama-3.1-8b", "mamba-2.8b", "mamba2-2.7b", "qwen3-next-80b-a3b", "resnet-50", "sd1.5",
          "sdxl", "ul2-20b", "vit-l-16", "wan2.2-ti2v-5b", "whisper-large-v3")  # fmt: skip
TRAINED_BYTES = 18  # of a parameter that is trained by Adam in bf16: weights, gradients, and states in fp32


def chips_for(model: Model, chip: str, bytes_each: float, least: int = 1) -> int:
    """The power of two that holds so many bytes of each parameter, with as much again for activations or caches."""
    memory = load_catalog().chips[chip].memory_bytes
    needed = 1.5 * bytes_each * count(model).total / memory
    return max(least, 2 ** math.ceil(math.log2(max(needed, 1))))


def training(model: Model) -> dict[str, object]:
    if model.image:
        return {"batch": 256, "steps": 10}
    return {"batch": 256, "sequence": min(model.context or model.learned_positions or 512, 512), "steps": 10}


def requests(model: Model) -> dict[str, object]:
    """Light load: whether the answer of one request makes sense."""
    if model.denoises:
        return {"rate": 1e-4, "denoise_steps": 20}
    if model.image:
        return {"rate": 1.0}
    if model.fixed_input:
        return {"rate": 0.01, "output_len": 50}
    return {"rate": 0.01, "input_len": 200, **({"output_len": 50} if model.writes else {})}


def said_why(error: ChipwiseError) -> None:
    """A refusal is one line that names a reason."""
    text = str(error)
    assert "\n" not in text and len(text) > 20, text
    assert "Traceback" not in text and "defect" not in text, text


def check_training(name: str, chip: str) -> bool:
    model = preset(name)
    place = f"{chip}:{chips_for(model, chip, TRAINED_BYTES, 8)}"
    try:
        run = cw.predict(cw.load(name, **training(model)), on=place)
    except ChipwiseError as error:
        said_why(error)
        return False
    step = run.step
    assert all(math.isfinite(x) and x > 0 for x in (step.low, step.value, step.high)), (name, place)
    assert step.low <= step.value <= step.high, (name, place)
    assert run.prediction.bound_s <= step.value * (1 + 1e-9), (name, place)
    assert 0 < run.mfu <= 1, (name, place)
    return True


def check_serving(name: str, chip: str) -> bool:
    model = preset(name)
    tp = min(8, chips_for(model, chip, STORED_BYTES[model.serve_precision]))
    tp = 4 if tp == 2 else tp  # a TPU v5e has no slice of two
    try:
        workload = cw.load(name, **requests(model))
        assert isinstance(workload, ServingWorkload)
        served = cw.serve(workload, on=f"{chip}:{tp}", tp=tp, requests=40)
    except ChipwiseError as error:
        said_why(error)
        return False
    spread = served.e2e
    assert 0 < spread.p50.value <= spread.p99.value < math.inf, (name, chip, tp)
    # no request takes less than its prompt's products at the peak of its chips
    peak = max(served.served.service.target.chip.peak.values()) * tp
    passes = 20 if model.denoises else 1
    tokens = model.fixed_input or 200
    assert spread.p50.value >= passes * pass_flops(model, tokens) / peak, (name, chip, tp)
    return True


@pytest.mark.parametrize("name", SAMPLE)
def test_a_preset_makes_sense_on_a_chip_of_each_maker(name):
    answered = [check_training(name, chip) + check_serving(name, chip) for chip in CHIPS]
    assert sum(answered) > 0


@pytest.mark.slow
@pytest.mark.parametrize("chip", CHIPS)
def test_every_preset_makes_sense(chip):
    trained = sum(check_training(name, chip) for name in NAMES)
    served = sum(check_serving(name, chip) for name in NAMES)
    assert min(trained, served) >= 0.7 * len(NAMES)
