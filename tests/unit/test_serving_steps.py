"""Steps, memory and coefficients of a serving replica."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.catalog import load
from chipwise.catalog.calibration import ServingCalibration, load_calibration
from chipwise.errors import DoesNotFit, NoLayout, PrecisionMissing
from chipwise.serving.coefficients import Coefficients, coefficients, labels
from chipwise.serving.formats import formats, in_words, only_experts
from chipwise.serving.loads import Load, outcome
from chipwise.serving.memory import cache_bytes, kv_cache_budget, weight_bytes
from chipwise.serving.setup import GRID, check_split, engine_config, old_kernels, set_up, terms
from chipwise.serving.spec import ReplicaSpec
from chipwise.serving.split import Split
from chipwise.serving.steps import experts_hit, most_loaded, parts
from chipwise.workload import preset
from chipwise.workload.params import count, kv_bytes

CHIPS, STACKS = load().chips, load().stacks
FOUR = Split(tp=4)
LLAMA, MIXTRAL, DEEPSEEK = (preset(name) for name in ("llama-3.1-70b", "mixtral-8x7b", "deepseek-v3"))


def replica(model=LLAMA, chip="h200", split=FOUR, precision="fp8", kv="fp8", stack="vllm", known=None):
    spec = ReplicaSpec(model, CHIPS[chip], split, precision, kv, STACKS[stack])
    return set_up(spec, known or load_calibration(bench=False))


def test_the_cache_of_a_token_is_counted_exactly():
    fmt = formats(CHIPS["h200"], LLAMA, "bf16", "bf16")
    per_token, per_window = cache_bytes(LLAMA, fmt, Split(tp=1))
    assert per_token == 2 * 80 * 8 * 128 * 2 == kv_bytes(LLAMA, 1, 2)
    assert per_window == 0
    assert cache_bytes(LLAMA, fmt, Split(tp=8))[0] == per_token / 8
    assert cache_bytes(LLAMA, fmt, Split(tp=16))[0] == per_token / 8  # a head is not split further


def test_latent_attention_keeps_the_same_cache_on_every_tensor_parallel_chip():
    fmt = formats(CHIPS["h200"], DEEPSEEK, "fp8", "fp8")
    assert cache_bytes(DEEPSEEK, fmt, Split(tp=8))[0] == cache_bytes(DEEPSEEK, fmt, Split(tp=1))[0] == 61 * (512 + 64)


def test_windows_are_held_once_for_each_sequence():
    model = preset("gpt-oss-120b")
    fmt = formats(CHIPS["h200"], model, "bf16", "bf16")
    per_token, per_window = cache_bytes(model, fmt, Split())
    assert per_window == per_token and model.windowed_layers == model.layers / 2
    held = kv_cache_budget(model, CHIPS["h200"], Split(), "fp4", "bf16")
    assert held.sequence(100) == 200 * per_token and held.sequence(1000) == (1000 + 128) * per_token


def test_a_model_whose_layers_all_have_a_window_still_fills_its_cache():
    held = kv_cache_budget(preset("mistral-7b"), CHIPS["l4"], Split(), "fp8", "bf16")
    assert held.per_token == 0 and held.caches
    assert held.sequences(8192) == held.sequences(4096) < 100


def test_short_contexts_do_not_fill_a_window():
    mistral = preset("mistral-7b")
    spec = ReplicaSpec(mistral, CHIPS["h100"], Split(), "bf16", "bf16", STACKS["vllm"])
    short, long = (
        parts(replace(spec, typical=t), load_calibration(bench=False), np.array([8.0])) for t in (256.0, 1e5)
    )
    assert short.window_s == pytest.approx(long.window_s * 256 / 4096)


def test_keys_shared_by_chips_are_kept_by_each():
    fmt = formats(CHIPS["h200"], LLAMA, "bf16", "bf16")
    eight, sixteen = (weight_bytes(LLAMA, fmt, Split(tp=n)) for n in (8, 16))
    keys = 2 * 2 * 80 * 8192 * 8 * 128  # bytes of all key and value projections
    assert sixteen == pytest.approx(eight / 2 + keys / 16)


def test_all_weights_are_on_the_chips_together():
    fmt = formats(CHIPS["h200"], LLAMA, "bf16", "bf16")
    assert weight_bytes(LLAMA, fmt, Split(tp=4)) * 4 == pytest.approx(2 * count(LLAMA).total)
    moe = formats(CHIPS["h200"], MIXTRAL, "bf16", "bf16")
    for split in (Split(tp=4), Split(tp=4, ep=4), Split(tp=2, pp=2)):
        held = weight_bytes(MIXTRAL, moe, split) * split.chips
        outside = 2 * (count(MIXTRAL).total - count(MIXTRAL).inside_layers)
        assert held == pytest.approx(2 * count(MIXTRAL).total, abs=outside * split.pp)


def test_sequences_that_fit_fill_what_the_weights_leave():
    chip = CHIPS["h200"]
    held = kv_cache_budget(LLAMA, chip, Split(tp=4), "fp8", "fp8")
    used = held.weights + held.activations + held.tokens(1000) * held.per_token
    assert used == pytest.approx(0.9 * chip.usable_bytes)
    assert held.sequences(1000) == pytest.approx(held.tokens(1000) / 1000)


def test_weights_that_do_not_fit_are_refused_with_the_numbers():
    with pytest.raises(DoesNotFit, match=r"llama-3.1-70b in bf16 needs .* on each of 1 l4"):
        replica(chip="l4", split=Split(), precision="bf16", kv="bf16")


@pytest.mark.parametrize(
    ("split", "says"),
    [
        (Split(tp=3), "tp(3) does not divide heads(64)"),
        (Split(tp=2, ep=2), "ep(2): llama-3.1-70b has no experts"),
        (Split(pp=100), "pp(100) is more than layers(80)"),
    ],
)
def test_splits_the_model_does_not_allow_are_refused(split, says):
    with pytest.raises(NoLayout) as refused:
        check_split(LLAMA, split)
    assert says in str(refused.value)


def test_a_chip_without_the_arithmetic_keeps_weights_alone_in_the_precision():
    fmt = formats(CHIPS["a100-80gb"], LLAMA, "fp8", "bf16")
    assert fmt.fallback and fmt.dense.arithmetic == "bf16" and fmt.dense.weight_bytes == 1
    assert not formats(CHIPS["h100"], LLAMA, "fp8", "bf16").fallback
    with pytest.raises(PrecisionMissing):
        formats(replace(CHIPS["h100"], peak={"fp64": 1e12}), LLAMA, "bf16", "bf16")


def test_a_precision_that_is_not_what_it_says_is_told():
    assert in_words(CHIPS["a100-80gb"], LLAMA, "fp8") == (
        "a100-80gb has no fp8 arithmetic: weights are stored in fp8, products run in bf16"
    )
    assert "experts" in in_words(CHIPS["b200"], MIXTRAL, "fp4") and in_words(CHIPS["h100"], LLAMA, "fp8") == ""


def test_four_bit_mixtures_quantize_their_experts_alone():
    assert only_experts(MIXTRAL, "fp4") and not only_experts(LLAMA, "fp4") and not only_experts(MIXTRAL, "fp8")
    fmt = formats(CHIPS["b200"], MIXTRAL, "fp4", "fp8")
    assert fmt.dense.weight_bytes == 2 and fmt.experts.weight_bytes < 1


@given(st.floats(1, 1e5), st.floats(1.01, 4), st.integers(1, 512), st.floats(0, 1.5))
def test_more_picks_hit_more_experts(picks, times, experts, skew):
    few, many = (float(experts_hit(np.array([p]), experts, skew)[0]) for p in (picks, picks * times))
    assert 1 <= few <= many <= max(experts, 1)


@given(st.floats(1, 1e6), st.integers(1, 64))
def test_the_busiest_rank_has_at_least_the_mean(picks, ranks):
    assert most_loaded(np.array([picks]), ranks)[0] >= picks


@pytest.mark.parametrize("model", [LLAMA, MIXTRAL, DEEPSEEK], ids=lambda m: m.name)
def test_larger_batches_take_longer_and_cost_less_a_token(model):
    r = replica(model, split=Split(tp=8))
    times = r.step_times().tokens_s
    at = np.unique(np.rint(2.0 ** np.arange(0, 14)).astype(int))
    assert np.all(np.diff(times[at]) > -1e-6)
    assert times[4096] / 4096 < times[1]


def test_smaller_precisions_decode_faster_and_more_chips_too():
    bare = load_calibration(bench=False).with_serving(ServingCalibration())

    def step(precision, split):
        return float(replica(precision=precision, kv="bf16", split=split, known=bare).step_times().tokens_s[8])

    assert step("fp8", Split(tp=8)) < step("bf16", Split(tp=8)) < step("bf16", Split(tp=4))


def test_a_pipeline_holds_several_batches():
    wide, deep = (replica(split=s) for s in (Split(tp=4), Split(tp=2, pp=2)))
    assert (
        deep.step_times().tokens_s[4] > wide.step_times().tokens_s[4]
    )  # a single batch passes one stage after the other
    assert deep.kv_cache.tokens(1000) == pytest.approx(wide.kv_cache.tokens(1000), rel=0.2)


def test_terms_add_up_to_the_pace():
    r = replica()
    c = r.coefficients
    total = sum(getattr(c, name) * value for name, value in terms(r.parts, r.spec).items()) * r.factor
    assert r.step_times().tokens_s[GRID.astype(int)] == pytest.approx(total)


def test_effects_of_labels_multiply():
    names = labels(CHIPS["h100"], STACKS["vllm"], LLAMA, "fp8")
    doubled = coefficients({"host_s": {"stack:vllm": np.log(2.0)}, "context": {"base@online": np.log(3.0)}}, names)
    assert doubled.host_s == pytest.approx(2 * Coefficients().host_s)
    assert doubled.context == pytest.approx(3 * Coefficients().context)
    offline = labels(CHIPS["h100"], STACKS["vllm"], LLAMA, "fp8", load="offline")
    assert coefficients({"context": {"base@online": 1.0}}, offline) == Coefficients()


def test_old_kernels_read_the_cache_for_every_query_head():
    trt = STACKS["tensorrt-llm"]
    mistral = preset("mistral-7b")
    assert old_kernels(mistral, trt, 2024.2) and not old_kernels(LLAMA, trt, 2024.2) and old_kernels(LLAMA, trt, 2023.8)
    assert not old_kernels(mistral, trt, 2025.0) and not old_kernels(mistral, STACKS["vllm"], 2024.2)
    args = (
        ReplicaSpec(mistral, CHIPS["h100"], Split(), "fp8", "fp8", trt),
        load_calibration(bench=False),
        np.array([8.0]),
    )
    assert parts(*args, True).context_s == pytest.approx(4 * parts(*args).context_s)


def test_replicas_of_one_shape_read_a_whole_slot():
    stack = STACKS["jetstream"]
    spec = ReplicaSpec(preset("llama-3.1-8b"), CHIPS["v5e"], Split(tp=8), "bf16", "bf16", stack, longest=2048.0)
    one = set_up(spec, load_calibration(bench=False))
    assert one.slot == 2048 and one.step_times().context_s == 0
    assert one.step_times().sequence_s > 2000 * one.coefficients.context * one.parts.context_s
    assert not engine_config(STACKS["jetstream"]).mixed


@pytest.mark.parametrize("kind", ["batch", "closed", "offline"])
def test_every_kind_of_load_has_an_outcome(kind):
    found = outcome(replica(), Load(kind, 16, 512, 64), load_calibration(bench=False))
    assert 0 < found.ttft < 60 and 0 < found.tpot < 1 and found.throughput > 1


def test_a_batch_twice_as_large_takes_less_than_twice_as_long():
    r = replica()
    one, two = (outcome(r, Load("batch", n, 512, 64), load_calibration(bench=False)) for n in (8, 16))
    assert one.throughput < two.throughput < 2 * one.throughput
