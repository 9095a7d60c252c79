"""The serve section: what it gives, and how flags become one."""

import random
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from chipwise.cli.options import (
    ANY_FLAGS,
    NO_FLAGS,
    SERVING_FLAGS,
    WORKLOAD_FLAGS,
    Flags,
    WorkloadArg,
    with_any_flags,
    with_serving_flags,
)
from chipwise.workload import kv_bytes, load_any, load_serving, metrics_that_matter, preset, preset_names
from chipwise.workload.load import kind_of
from chipwise.workload.model import KV_PRECISIONS, SERVE_PRECISIONS, STORED_BYTES, Workload
from chipwise.workload.read import FLAGS, SERVING, read_any, read_serving, read_workload
from chipwise.workload.serve import METRICS, Bound, Lengths, ServingWorkload
from chipwise.workload.serve_spec import ServeSpec, SloSpec

ROOT = Path(__file__).parents[2]
EXAMPLES = [path for path in sorted((ROOT / "examples").glob("*.yaml")) if kind_of(path) == "serve"]
CHAT = "model: llama-3.1-8b\nserve: {input: 1000, output: 300, arrival: {rate: 20}}\n"


def serve(text="", model="llama-3.1-8b", **overrides):
    keys = {key.replace("__", "."): value for key, value in overrides.items()}
    base = f"model: {model}\nserve: {{{text or 'input: 1000, output: 300, arrival: {rate: 20}'}}}\n"
    return load_serving(base, keys).serve


# ------------------------------------------------------------------ examples


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_examples_load_and_point_to_the_schema(path):
    work = load_serving(path)
    assert work.name == path.stem and metrics_that_matter(work)
    relative = path.read_text().splitlines()[0].split("$schema=")[1]
    assert (path.parent / relative).resolve().name == "workload.schema.json"
    assert load_any(path).name == work.name


def test_there_are_examples_of_every_kind():
    served = [load_serving(p).serve for p in EXAMPLES]
    assert {s.unit for s in served} == {"tokens", "sequences", "images"}
    assert {s.arrival.kind for s in served} == {"poisson", "closed", "trace", "offline"}


def test_the_chat_example():
    s = load_serving(ROOT / "examples" / "llama-3.1-70b-serve.yaml").serve
    assert s.slo == (Bound("ttft", 99.0, 2.0), Bound("tpot", 99.0, 0.05))
    assert s.input.percentiles == ((0.5, 900.0), (0.9, 3000.0), (0.99, 8000.0))
    assert (s.arrival.kind, s.arrival.rate, s.precision, s.kv_precision) == ("poisson", 20.0, "bf16", "bf16")


def test_the_offline_example():
    s = load_serving(ROOT / "examples" / "llama-3.1-8b-offline.yaml").serve
    assert (s.requests, s.deadline_s, s.arrival.kind, s.slo) == (10**6, 21600.0, "offline", ())


def test_the_made_trace_is_what_its_comment_says():
    r, at, lines = random.Random(7), 0.0, ["arrival_s,input,output"]
    for _ in range(200):
        at += r.expovariate(2)
        tokens = min(8000, max(16, round(r.lognormvariate(6.5, 1))))
        lines.append(f"{at:.3f},{tokens},{min(2000, max(4, round(r.lognormvariate(5, 0.8))))}")
    assert (ROOT / "examples" / "traces" / "made-200.csv").read_text().splitlines() == lines


# ------------------------------------------------------------------ what it gives


def test_defaults_are_the_documented_ones():
    s = serve()
    assert (s.precision, s.kv_precision, s.prefix_hit, s.slo, s.passes, s.unit, s.stack, s.trace, s.requests) == (
        "bf16",
        "bf16",
        0.0,
        (),
        1,
        "tokens",
        "",
        None,
        0,
    )


@pytest.mark.parametrize("precision", SERVE_PRECISIONS)
def test_keys_and_values_are_kept_as_activations_are(precision):
    expected = precision if precision in ("fp16", "fp32") else "bf16"
    assert serve(precision=precision).kv_precision == expected
    assert serve(precision=precision, kv_precision="fp8").kv_precision == "fp8"


@pytest.mark.parametrize(
    ("arrival", "kind"),
    [
        ("{users: 64}", "closed"),
        ("{rate: 20}", "poisson"),
        ("{rate: 20, burstiness: 4}", "bursty"),
        ("{rate: 20, burstiness: 1}", "poisson"),
        ("{rate: 0.5, burstiness: 0.5}", "bursty"),
    ],
)
def test_each_way_to_arrive_is_one_kind(arrival, kind):
    assert serve(f"input: 10, output: 10, arrival: {arrival}").arrival.kind == kind


def test_a_bare_duration_bounds_the_99th_percentile():
    slo = serve(slo__ttft="500ms", slo__itl=2, slo__tpot={"p99": "60ms", "p90": "40ms"}).slo
    assert slo == (Bound("ttft", 99, 0.5), Bound("tpot", 90, 0.04), Bound("tpot", 99, 0.06), Bound("itl", 99, 2.0))
    assert str(slo[1]) == "tpot p90 <= 40 ms"


def test_what_is_counted_follows_the_model():
    bert = serve("input: 128, arrival: {rate: 5}", "bert-base")
    assert (bert.unit, bert.input.most, bert.output.most) == ("sequences", 128, 0)
    vit = serve("arrival: {rate: 5}", "vit-b-16")
    assert (vit.unit, vit.input.most, vit.output.most, vit.passes) == ("images", 197, 0, 1)
    dit = serve("arrival: {rate: 5}, denoise_steps: 50", "dit-xl-2")
    assert (dit.unit, dit.input.most, dit.passes) == ("images", 256, 50)


def test_a_stack_gets_its_name_in_the_catalog():
    assert serve(stack="trtllm").stack == "tensorrt-llm"
    assert serve(stack="vLLM").stack == "vllm"


def test_lengths_may_fill_the_context_and_no_more_is_known_of_some_models():
    assert serve("input: 131000, output: 72, arrival: {rate: 1}").input.most == 131000
    assert serve("input: 5M, output: 72, arrival: {rate: 1}", "llama-4-scout").input.most == 5_000_000
    text = "model: {preset: gpt2, learned_positions: 4096}\nserve: {input: 4000, output: 96, arrival: {rate: 1}}\n"
    assert load_serving(text).model.context == 4096
    text = "model: {preset: llama-2-7b, context: 16384}\nserve: {input: 16000, output: 96, arrival: {rate: 1}}\n"
    assert load_serving(text).serve.input.most == 16000


def trace(tmp_path, text, name="t.csv"):
    (tmp_path / name).write_text(text)
    return tmp_path / "w.yaml"


def test_a_trace_is_read_beside_its_workload_file(tmp_path):
    path = trace(tmp_path, "output,arrival_s,input\n5,10,100\n7,10,200\n\n6,12,300\n")
    path.write_text("model: llama-3.1-8b\nserve: {trace: t.csv}\n")
    s = load_serving(path).serve
    assert s.trace.arrival_s.tolist() == [0, 0, 2] and s.trace.input.tolist() == [100, 200, 300]
    assert s.trace.output.tolist() == [5, 7, 6] and s.trace.name == "t.csv"
    assert (s.arrival.kind, s.arrival.rate, s.input.most, s.output.most) == ("trace", 1.0, 300, 7)
    scaled = load_serving(path, {"arrival.rate": 4}).serve
    assert scaled.trace.arrival_s.tolist() == [0, 0, 0.5] and scaled.arrival.rate == 4


def test_a_trace_has_the_columns_its_model_needs(tmp_path):
    path = trace(tmp_path, "arrival_s,input\n0,10\n1,20\n")
    path.write_text("model: bert-base\nserve: {trace: t.csv}\n")
    assert load_serving(path).serve.trace.output.tolist() == [0, 0]
    path = trace(tmp_path, "arrival_s\n0\n1\n")
    path.write_text("model: vit-b-16\nserve: {trace: t.csv}\n")
    assert load_serving(path).serve.trace.input.tolist() == [197, 197]


def test_an_override_replaces_what_it_contradicts(tmp_path):
    assert serve("input: 1, output: 1, arrival: {users: 3}", arrival__rate="2.5").arrival.rate == 2.5
    assert serve("input: 1, output: 1, arrival: {rate: 3, burstiness: 2}", arrival__rate="5").arrival.burstiness == 2
    assert serve("input: 1, output: 1, arrival: {rate: 3, burstiness: 2}", arrival__users="5").arrival.kind == "closed"
    assert serve("input: 1, output: 1, offline: {requests: 9}", arrival__users="5").requests == 0
    assert serve("input: 1, output: 1, arrival: {rate: 3}", offline__requests="1k").requests == 1000
    trace(tmp_path, "arrival_s,input,output\n0,10,5\n1,20,6\n")
    s = serve("input: 1, output: 1, arrival: {users: 3}", trace=str(tmp_path / "t.csv"), arrival__rate="10")
    assert (s.arrival.kind, s.arrival.rate) == ("trace", 10.0)
    assert serve(serve__precision="fp8", model__layers="2").precision == "fp8"


def test_either_kind_is_told_apart():
    assert isinstance(load_any(CHAT), ServingWorkload)
    assert isinstance(load_any("model: gpt2\ntrain: {steps: 1, global_batch: 1, sequence: 8}\n"), Workload)
    assert isinstance(
        load_any(None, {"model": "gpt2", "serve.input": 5, "serve.output": 5, "serve.arrival.users": 2}),
        ServingWorkload,
    )
    assert isinstance(load_any(None, {"model": "gpt2", "steps": 1, "global_batch": 1, "sequence": 8}), Workload)


def test_lists_of_choices_agree_between_file_and_dataclass():
    weights = get_args(ServeSpec.model_fields["precision"].annotation)[0]
    assert get_args(get_args(weights)[0]) == SERVE_PRECISIONS
    kv = get_args(ServeSpec.model_fields["kv_precision"].annotation)[0]
    assert get_args(kv) == KV_PRECISIONS
    assert tuple(SloSpec.model_fields) == METRICS
    assert set(STORED_BYTES) == {*SERVE_PRECISIONS, *KV_PRECISIONS}


# ------------------------------------------------------------------ lengths


@st.composite
def lengths(draw):
    shares = draw(st.lists(st.integers(0, 1000), min_size=1, max_size=6, unique=True).map(sorted))
    tokens = draw(st.lists(st.integers(1, 200_000), min_size=len(shares), max_size=len(shares)).map(sorted))
    return Lengths(tuple((share / 1000, float(n)) for share, n in zip(shares, tokens, strict=True)))


@settings(max_examples=100, deadline=None)
@given(lengths())
def test_lengths_rise_within_their_bounds_and_meet_their_percentiles(sizes):
    at = sizes.at(np.linspace(0, 1, 201))
    assert (np.diff(at) >= 0).all()
    assert sizes.percentiles[0][1] <= at[0] and at[-1] <= sizes.most
    assert sizes.percentiles[0][1] <= sizes.mean <= sizes.most
    for share, tokens in sizes.percentiles:
        assert sizes.at(np.array([share]))[0] == tokens


@settings(max_examples=60, deadline=None)
@given(st.integers(20, 100_000), st.floats(0.01, 3))
def test_a_lognormal_keeps_its_mean(mean, cv):
    sizes = Lengths.lognormal(mean, cv)
    assert abs(sizes.mean / mean - 1) < 0.02
    assert all(a[1] <= b[1] for a, b in zip(sizes.percentiles, sizes.percentiles[1:], strict=False))
    assert sizes.percentiles[0][1] >= 1


def test_a_lognormal_has_the_spread_asked_for():
    at = Lengths.lognormal(1000, 0.5).at((np.arange(20_000) + 0.5) / 20_000)
    assert abs(at.std() / at.mean() - 0.5) < 0.02


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 100_000), min_size=1, max_size=300))
def test_lengths_of_what_was_seen_stay_within_it(seen):
    sizes = Lengths.of(np.array(seen, dtype=float))
    assert (sizes.percentiles[0][1], sizes.most) == (min(seen), max(seen))
    assert min(seen) <= sizes.mean <= max(seen)


# ------------------------------------------------------------------ the cache


def test_the_cache_of_known_models_is_exact():
    assert kv_bytes(preset("llama-3.1-70b"), 1000, 2) == 1000 * 2 * 80 * 8 * 128 * 2
    assert kv_bytes(preset("deepseek-v3"), 1000, 1) == 1000 * 61 * (512 + 64)
    assert kv_bytes(preset("mistral-7b"), 10_000, 2) == 4096 * 2 * 32 * 8 * 128 * 2  # every layer has a window
    gemma = preset("gemma-3-12b")  # 8 of 48 layers attend in full
    assert kv_bytes(gemma, 10_000, 2) == (8 * 10_000 + 40 * 1024) * 2 * 8 * 256 * 2
    assert kv_bytes(preset("bert-base"), 512, 2) == kv_bytes(preset("resnet-50"), 1, 2) == 0


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(preset_names()), st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_cache_never_shrinks_and_never_grows_faster_than_the_sequence(name, tokens, more):
    model = preset(name)
    before, after = kv_bytes(model, tokens, 2), kv_bytes(model, tokens + more, 2)
    assert before <= after <= before + kv_bytes(model, 1, 2) * more


# ------------------------------------------------------------------ words


def words(text, model="llama-3.1-70b"):
    return metrics_that_matter(load_serving(f"model: {model}\nserve: {{{text}}}\n"))


def test_words_follow_the_workload():
    chat = words("input: 1000, output: 300, arrival: {rate: 20}, slo: {ttft: 2s}")
    assert chat[0].startswith("memory bandwidth") and "ttft p99 <= 2000 ms" in " ".join(chat)
    assert "406 MiB at 1,300 tokens" in " ".join(chat)
    assert "interconnect latency" in " ".join(chat) and "160 all-reduces" in " ".join(chat)
    assert words("input: 30k, output: 300, arrival: {rate: 20}")[0].startswith("achievable bf16 matmul throughput")
    assert words("input: 30k, output: 300, prefix_hit: 0.9, arrival: {rate: 20}")[0].startswith("memory bandwidth")
    assert "all-to-all" in " ".join(words("input: 100, output: 100, arrival: {rate: 20}", "mixtral-8x7b"))
    assert "all-to-all" not in " ".join(chat) and "host overhead" not in " ".join(chat)
    assert "host overhead" in " ".join(words("input: 100, output: 100, arrival: {rate: 20}", "gpt2"))
    assert "16 bits" in " ".join(words("input: 100, output: 100, precision: int4, arrival: {rate: 20}"))
    assert "hardware support for fp8" in " ".join(words("input: 100, output: 100, precision: fp8, arrival: {rate: 20}"))
    assert "bursts" in " ".join(words("input: 100, output: 100, arrival: {rate: 20, burstiness: 4}"))
    assert "within 6.00 h" in " ".join(words("input: 100, output: 100, offline: {requests: 1M, deadline: 6h}"))
    assert "memory bandwidth" in words("arrival: {rate: 20}", "resnet-50")[0]
    assert "50 passes" in words("arrival: {rate: 20}, denoise_steps: 50", "dit-xl-2")[0]
    assert "sequences of 128 tokens" in words("input: 128, arrival: {rate: 20}", "bert-base")[0]


# ------------------------------------------------------------------ flags


def test_a_model_and_flags_are_a_workload():
    flags = {
        "input_len": "p50:900,p99:8000",
        "output_len": "300",
        "rate": "20",
        "ttft": "500ms",
        "tpot": "p90:40ms,p99:60ms",
        "precision": "fp8",
        "kv_precision": "fp8",
        "prefix_hit": "0.3",
        "stack": "vllm",
        "users": None,
    }
    s = read_serving("llama-3.1-70b", flags).serve
    assert s.input.percentiles == ((0.5, 900.0), (0.99, 8000.0)) and s.output.most == 300
    assert (s.arrival.rate, s.precision, s.kv_precision, s.prefix_hit, s.stack) == (20, "fp8", "fp8", 0.3, "vllm")
    assert s.slo == (Bound("ttft", 99, 0.5), Bound("tpot", 90, 0.04), Bound("tpot", 99, 0.06))
    s = read_serving("gpt2", {"input_len": "mean:100,cv:0.5", "output_len": "30", "users": "8"}).serve
    assert abs(s.input.mean - 100) < 2 and s.arrival.users == 8
    assert read_serving("dit-xl-2", {"denoise_steps": "20", "rate": "2"}).serve.passes == 20


def test_a_trace_as_a_flag_is_relative_to_here(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("arrival_s,input,output\n0,10,5\n1,20,6\n")
    monkeypatch.chdir(tmp_path)
    assert read_serving("gpt2", {"trace": "t.csv"}).serve.arrival.rate == 1
    path = str(ROOT / "examples" / "llama-3.1-70b-serve.yaml")
    assert read_serving(path, {"trace": "t.csv", "rate": "5"}).serve.arrival.rate == 5


def test_flags_change_a_file():
    path = str(ROOT / "examples" / "llama-3.1-70b-serve.yaml")
    work = read_serving(path, {"users": "64", "model": "llama-3.1-8b", "ttft": "1s"})
    assert (work.model.name, work.serve.arrival.kind) == ("llama-3.1-8b", "closed")
    assert work.serve.slo == (Bound("ttft", 99, 1.0), Bound("tpot", 99, 0.05))


def test_either_kind_is_read():
    trained = {"batch": "8", "sequence": "1024", "steps": "5"}
    assert isinstance(read_any("gpt2", trained), Workload)
    assert isinstance(read_any("gpt2", {"input_len": "5", "output_len": "5", "rate": "2"}), ServingWorkload)
    assert isinstance(read_any(str(EXAMPLES[0]), {"precision": "fp16"}), ServingWorkload)
    example = str(ROOT / "examples" / "llama-3.1-8b-pretrain.yaml")
    assert read_any(example, {"precision": "fp8"}) == read_workload(example, {"precision": "fp8"})


def test_every_flag_has_a_key_and_shared_flags_are_shared():
    assert set(SERVING_FLAGS) - {"model"} == set(SERVING)
    assert set(WORKLOAD_FLAGS) - {"model"} == set(FLAGS)
    assert set(ANY_FLAGS) == set(SERVING_FLAGS) | set(WORKLOAD_FLAGS)
    assert set(SERVING) & set(FLAGS) == {"precision", "stack"}


@pytest.mark.parametrize("decorate", [with_serving_flags, with_any_flags])
def test_a_verb_gets_the_flags(decorate):
    seen = {}

    @decorate
    def verb(workload: WorkloadArg, flags: Flags = NO_FLAGS) -> None:
        seen["work"] = read_any(workload, flags)

    app = typer.Typer()
    app.command()(verb)
    done = CliRunner().invoke(
        app,
        [
            "llama-3.1-70b",
            "--input-len",
            "1000",
            "--output-len",
            "300",
            "--rate",
            "20",
            "--ttft",
            "500ms",
            "--precision",
            "int4",
            "--stack",
            "sglang",
        ],
    )
    assert done.exit_code == 0, done.output
    s = seen["work"].serve
    assert (s.input.most, s.output.most, s.arrival.rate, s.precision, s.stack) == (1000, 300, 20, "int4", "sglang")
    assert s.slo == (Bound("ttft", 99, 0.5),)


@pytest.mark.parametrize("word", ["mxfp4", "nvfp4"])
def test_formats_of_four_bits_are_served_as_fp4(word):
    assert serve(f"input: 10, output: 10, arrival: {{rate: 5}}, precision: {word}", "gpt-oss-20b").precision == "fp4"


def test_the_work_of_an_image_counts_what_conditions_it_once():
    said = words("arrival: {rate: 20}, denoise_steps: 50", "dit-xl-2")[0]
    assert "images of 256 tokens take about 1.19e13 FLOPs each in 50 passes" in said
    assert "videos of 75,600 tokens" in words("arrival: {rate: 0.01}, denoise_steps: 40", "wan2.1-t2v-14b")[0]
    assert (
        "images take about 1.35e14 FLOPs each in 20 passes" in words("arrival: {rate: 5}, denoise_steps: 20", "sdxl")[0]
    )


def test_what_a_variant_was_taken_as_is_said():
    said = words("input: 10, output: 10, arrival: {rate: 5}", "Qwen/Qwen3-32B-FP8")
    assert "the model: Qwen/Qwen3-32B-FP8 is taken as qwen3-32b, published in fp8" in said


def test_encoder_decoders_are_served_in_tokens():
    t5 = load_serving("model: t5-base\nserve: {input: 100, output: 10, arrival: {rate: 1}}")
    whisper = load_serving("model: whisper-large-v3\nserve: {output: 10, arrival: {rate: 1}}")
    assert (t5.unit, t5.serve.input.most, t5.serve.output.most) == ("tokens", 100, 10)
    assert (whisper.unit, whisper.serve.input.most) == ("tokens", 1500)
    assert "the encoder takes 2.6e12 FLOPs for the 1,500 new tokens" in "\n".join(metrics_that_matter(whisper))
