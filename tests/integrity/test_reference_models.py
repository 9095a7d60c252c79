"""Parameters and FLOPs of presets against counts that are not ours: other libraries' classes, and published figures.

`reference_models.csv` holds what classes of transformers and diffusers have that were built with the presets'
dimensions on the meta device (scripts/reference_models.py).
"""

from __future__ import annotations

import csv
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from chipwise.ops.table import build
from chipwise.workload.families import seq2seq
from chipwise.workload.flops import pass_flops
from chipwise.workload.params import count
from chipwise.workload.presets import preset, preset_names

HERE = Path(__file__).parent
FILE = HERE / "reference_models.csv"


def read(file: Path) -> dict[str, dict[str, str]]:
    return {row["name"]: row for row in csv.DictReader(file.read_text(encoding="utf-8").splitlines())}


ROWS = read(FILE)
PASSES = [name for name, row in ROWS.items() if row["pass_flops"]]
# presets whose architecture has no class: PaLM, ResNeXt, MPT as its authors trained it (biases, learned positions), and
# nomic-embed, whose code comes with its weights
WITHOUT = ("palm-", "resnext-", "mpt-", "nomic-embed-")
BERT_TOKENS = 512  # the forward pass of the BERT classes has so many
NEEDED = {"transformers": (5, 22), "diffusers": (0, 42)}


def test_every_preset_with_a_class_was_counted():
    assert set(ROWS) == {name for name in preset_names() if not name.startswith(WITHOUT)}


@pytest.mark.parametrize("name", sorted(ROWS))
def test_parameters_agree_with_the_class_of_another_library(name):
    model = preset(name)
    ours = count(model).main / (model.video.denoisers if model.video else 1)
    assert abs(ours / int(ROWS[name]["parameters"]) - 1) <= 0.001


@pytest.mark.parametrize("name", PASSES)
def test_flops_of_a_pass_agree_with_the_class_of_another_library(name):
    model = preset(name)
    # one token is written after 30 s of audio; images have the size of the preset
    length = 1 if model.encoder else BERT_TOKENS
    assert build(model, length).flops_forward == pytest.approx(int(ROWS[name]["pass_flops"]), rel=0.002)


# (model, sequence, multiply-adds of one pass as published, where); two FLOPs each
PUBLISHED = [
    # https://github.com/pytorch/vision, torchvision/models/{vision_transformer,resnet}.py, `_ops` (2023-10)
    ("vit-b-16", 1, 17.564e9),
    ("vit-l-16", 1, 61.555e9),
    ("vit-h-14", 1, 167.295e9),
    ("resnet-18", 1, 1.814e9),
    ("resnet-50", 1, 4.089e9),
    ("resnet-101", 1, 7.801e9),
    ("resnet-152", 1, 11.514e9),
    ("resnext-101-32x8d", 1, 16.414e9),
    # https://arxiv.org/abs/2212.09748, table 4 (2022-12)
    ("dit-xl-2", 1, 118.64e9),
]


@pytest.mark.parametrize(("name", "sequence", "macs"), PUBLISHED)
def test_flops_of_a_pass_agree_with_the_published_ones(name, sequence, macs):
    assert build(preset(name), sequence).flops_forward == pytest.approx(2 * macs, rel=0.01)


def test_bert_base_has_the_published_flops_without_its_heads():
    # 22.5 billion for 128 tokens: MobileBERT (https://arxiv.org/abs/2004.02984, table 4, 2020-04), TinyBERT likewise
    assert build(preset("bge-base"), 128).flops_forward == pytest.approx(22.5e9, rel=0.02)


def test_sdxl_and_stable_diffusion_have_the_published_flops():
    # DistriFusion (https://arxiv.org/abs/2402.19481, table 1, 2024-02) prints 338 T multiply-adds for 50 steps of SDXL at
    # 1024 x 1024, each of two passes (guidance). Slides of NVIDIA on Stable Diffusion 1.x count 1.68 TFLOPs for the two
    # passes of a step at 512 x 512, norms and softmax included.
    assert 100 * build(preset("sdxl"), 1).flops_forward == pytest.approx(2 * 338e12, rel=0.01)
    assert 2 * build(preset("sd1.5"), 1).flops_forward == pytest.approx(1.67952e12, rel=0.05)


def test_the_encoder_of_whisper_is_most_of_its_class():
    # of the class: the encoder, the keys and values of the decoder's attention to it, and one token written
    for name in ("whisper-tiny", "whisper-medium", "whisper-large-v3"):
        model = preset(name)
        one = 2 * seq2seq.written_params(model)
        assert pass_flops(model, 1500) + one == pytest.approx(int(ROWS[name]["pass_flops"]), rel=0.01)


def test_the_scan_of_mamba_2_has_the_multiply_adds_of_its_kernels():
    # https://arxiv.org/abs/2405.21060, section 6 (2024-05), as state-spaces/mamba has it: of each chunk of Q tokens the
    # scores of a group (QN a token, half of them masked), of each head their product with the inputs (QP, half masked),
    # and the state of N x P written and read
    for name in ("mamba2-2.7b", "nemotron-nano-9b-v2", "bamba-9b"):
        model = preset(name)
        s = model.ssm
        assert s is not None
        tokens, chunk = 4096, 256
        scan = chunk / 2 * (s.groups * s.state + s.heads * s.head_dim) + s.heads * 2 * s.state * s.head_dim
        scores = model.attention_layers * model.heads * model.head_dim * tokens  # both products, half masked
        p = count(model)
        weights = p.active - p.norms - (0 if model.tied else p.embedding)
        assert build(model, tokens).flops_forward == pytest.approx(
            2 * tokens * (weights + s.layers * scan + scores), rel=0.005
        )


def test_the_scan_of_a_gated_delta_net_has_the_multiply_adds_of_its_kernels():
    # https://arxiv.org/abs/2412.06464, section 3.3 (2024-12), chunks of 64 as in fla-org/flash-linear-attention
    model = preset("qwen3-next-80b-a3b")
    s = model.ssm
    assert s is not None
    tokens, n, p = 4096, s.state, s.head_dim
    scan = s.heads * (64 / 2 * (3 * n + 2 * p) + 3 * n * p)
    recurrent = [a for a in build(model, tokens).attention if a.heads == s.heads]
    flops = sum(2 * a.queries * a.visible * a.heads * (a.qk_dim + a.v_dim) * a.count for a in recurrent)
    assert flops == pytest.approx(2 * tokens * s.layers * scan)


def _too_old() -> str:
    for library, least in NEEDED.items():
        try:
            found = tuple(int(part) for part in version(library).split(".")[:2])
        except PackageNotFoundError:
            return f"{library} is not installed"
        if found < least:
            return f"{library} {version(library)} is older than {'.'.join(map(str, least))}"
    return ""


@pytest.mark.slow
def test_the_classes_still_have_these_parameters(tmp_path):
    if reason := _too_old():
        pytest.skip(reason)
    script = HERE.parents[1] / "scripts" / "reference_models.py"
    subprocess.run([sys.executable, script, tmp_path / "now.csv"], check=True, capture_output=True)
    now = read(tmp_path / "now.csv")
    keys = ("parameters", "pass_flops")
    assert {n: [r[k] for k in keys] for n, r in now.items()} == {n: [r[k] for k in keys] for n, r in ROWS.items()}
