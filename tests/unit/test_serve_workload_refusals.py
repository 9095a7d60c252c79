"""The serve section and its trace: every bad input is one line that names the field."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.errors import BrokenFile, ChipwiseError, InputError, UnknownName
from chipwise.workload import load_any, load_serving, load_workload
from chipwise.workload.read import read_any, read_serving
from chipwise.workload.serve_spec import ArrivalSpec, OfflineSpec, ServeSpec, SloSpec

GOOD = {"input": 1000, "output": 300, "arrival": {"rate": 20}}


def refused(call, *arguments) -> ChipwiseError:
    with pytest.raises(ChipwiseError) as e:
        call(*arguments)
    assert "\n" not in str(e.value) and len(str(e.value)) < 600
    return e.value


def without(serve, model="llama-3.1-8b", **overrides):
    text = json.dumps({"model": model, "serve": serve}) + "\n"
    return refused(load_serving, text, {key.replace("__", "."): value for key, value in overrides.items()})


def changed(**keys):
    return without({**GOOD, **keys})


# ------------------------------------------------------------------ sections


def test_one_section_and_only_one():
    train = "train: {steps: 1, global_batch: 1, sequence: 8}\n"
    serve = "serve: {input: 10, output: 10, arrival: {rate: 1}}\n"
    for call in (load_workload, load_serving, load_any):
        assert "either a train section or a serve section" in str(refused(call, "model: gpt2\n" + train + serve))
    assert "either a train section or a serve section" in str(refused(load_any, "model: gpt2\n"))
    assert refused(load_serving, "model: gpt2\n").field == "serve"
    assert refused(load_workload, "model: gpt2\n").field == "train"
    assert "`chipwise serving`" in str(refused(load_workload, "model: gpt2\n" + serve))
    assert "`predict`" in str(refused(load_serving, "model: gpt2\n" + train))
    assert "either a train" in str(refused(load_workload, "model: gpt2\n" + train, {"serve.precision": "fp8"}))


def test_unknown_keys_get_the_nearest():
    for serve, path, near in (
        ({**GOOD, "ouput": 3}, "serve.ouput", "output"),
        ({**GOOD, "arrival": {"rat": 3}}, "serve.arrival.rat", "rate"),
        ({**GOOD, "slo": {"ttfft": 3}}, "serve.slo.ttfft", "ttft"),
        ({"input": 1, "output": 1, "offline": {"request": 3}}, "serve.offline.request", "requests"),
    ):
        error = without(serve)
        assert isinstance(error, UnknownName) and str(error).startswith(path + ":") and near in str(error)


def test_unknown_names_get_the_nearest():
    assert "bf16" in str(changed(precision="bf-16"))
    assert "fp8" in str(changed(kv_precision="fp9"))
    assert "vllm" in str(changed(stack="vlm"))
    error = changed(stack="megatron")  # it trains
    assert error.field == "serve.stack" and "sglang" in str(error)
    assert error.__class__ is UnknownName


# ------------------------------------------------------------------ lengths


@pytest.mark.parametrize("key", ["input", "output"])
@pytest.mark.parametrize(
    "bad",
    [
        0,
        -1,
        1.5,
        True,
        "many",
        "",
        [],
        [1, 2],
        {},
        {"p50": 0},
        {"p50": "many"},
        {"p101": 5},
        {"50": 5},
        {"median": 5},
        {"p50": {"a": 1}},
        {"p50": None},
        {"mean": 5},
        {"cv": 0.5},
        {"mean": 5, "cv": 0},
        {"mean": 5, "cv": 11},
        {"mean": 5, "cv": "x"},
        {"mean": 0, "cv": 1},
        {"mean": 5, "cv": 1, "p50": 3},
        {"p90": 100, "p50": 300},
        {"p50": 1, "p50.0": 2},
        10**10,
        {"p50": 1e30},
    ],
    ids=str,
)
def test_bad_lengths_name_their_field(key, bad):
    assert changed(**{key: bad}).field == f"serve.{key}"


def test_falling_percentiles_are_named():
    assert "p90 (100) is below p50 (300)" in str(changed(output={"p90": 100, "p50": 300}))


def test_missing_lengths():
    assert without({"output": 3, "arrival": {"rate": 1}}).field == "serve.input"
    assert without({"input": 3, "arrival": {"rate": 1}}).field == "serve.output"


def test_lengths_past_the_context():
    error = without({"input": 100_000, "output": {"p50": 5, "p99": 40_000}, "arrival": {"rate": 1}})
    assert error.field == "serve.input + serve.output" and "131,072" in str(error) and "140,000" in str(error)
    assert without({"input": 513, "arrival": {"rate": 1}}, "bert-base").field == "serve.input"
    assert "1,024 tokens gpt2 takes" in str(without({"input": 1000, "output": 25, "arrival": {"rate": 1}}, "gpt2"))


# ------------------------------------------------------------------ arrivals, SLOs, the rest


def test_exactly_one_way_to_arrive():
    assert without({"input": 1, "output": 1}).field == "serve.arrival"
    assert "either users" in str(changed(arrival={"users": 3, "rate": 4}))
    assert "either users" in str(changed(arrival={}))
    assert "either users" in str(changed(arrival={"burstiness": 4}))
    assert changed(arrival={"users": 3, "burstiness": 4}).field == "serve.arrival.burstiness"
    assert "arrival and offline" in str(changed(offline={"requests": 5}))
    assert changed(arrival=20).field == "serve.arrival"
    assert "users and rate" in str(without(GOOD, arrival__rate=3, arrival__users=4))


@pytest.mark.parametrize(
    ("key", "bad"),
    [
        *(("rate", bad) for bad in (0, -20, "fast", "", True, [], {}, float("nan"), float("inf"), 1e12, "1e400")),
        *(("users", bad) for bad in (0, -3, 2.5, "many", True, 10**7, [])),
    ],
)
def test_bad_arrivals_name_their_field(key, bad):
    assert changed(arrival={key: bad}).field == f"serve.arrival.{key}"


@pytest.mark.parametrize("bad", [0, -1, "x", 1e5, float("nan"), True])
def test_bad_burstiness(bad):
    assert changed(arrival={"rate": 1, "burstiness": bad}).field == "serve.arrival.burstiness"


@pytest.mark.parametrize("bad", [-0.1, 1.1, 30, "a lot", "130%", float("nan"), True, []])
def test_bad_share_of_the_prefix_cache(bad):
    assert changed(prefix_hit=bad).field == "serve.prefix_hit"


@pytest.mark.parametrize("metric", ["ttft", "tpot", "itl", "e2e"])
@pytest.mark.parametrize(
    "bad",
    [
        0,
        -1,
        "fast",
        "",
        "5 parsecs",
        True,
        [],
        {},
        {"p99": 0},
        {"p99": "soon"},
        {"p100": 1},
        {"p0": 1},
        {"99": 1},
        {"p90": "60ms", "p99": "40ms"},
        1e30,
        float("nan"),
        float("inf"),
        {"p99": "1s", "p99.0": "1s"},
    ],
    ids=str,
)
def test_bad_slos_name_their_field(metric, bad):
    assert changed(slo={metric: bad}).field == f"serve.slo.{metric}"


def test_slos_that_mean_nothing():
    assert "one has no gap" in str(without({**GOOD, "output": 1, "slo": {"tpot": 1}}))
    assert "offline.deadline" in str(without({"input": 1, "output": 9, "offline": {"requests": 5}, "slo": {"ttft": 1}}))
    assert "one pass" in str(without({"arrival": {"rate": 1}, "slo": {"ttft": 1}}, "vit-b-16"))
    assert changed(slo="500ms").field == "serve.slo"


@pytest.mark.parametrize(
    ("key", "bad"),
    [
        ("requests", 0),
        ("requests", "many"),
        ("requests", None),
        ("deadline", 0),
        ("deadline", "soon"),
        ("deadline", -5),
        ("deadline", "1000000w"),
    ],
)
def test_bad_offline_jobs_name_their_field(key, bad):
    serve = {"input": 1, "output": 1, "offline": {"requests": 5, key: bad}}
    assert without(serve).field == f"serve.offline.{key}"
    assert without({"input": 1, "output": 1, "offline": {"deadline": "6h"}}).field == "serve.offline.requests"


@pytest.mark.parametrize(
    ("model", "key", "value"),
    [
        ("vit-b-16", "input", 5),
        ("resnet-50", "input", 5),
        ("dit-xl-2", "input", 5),
        ("bert-base", "output", 5),
        ("vit-b-16", "output", 5),
        ("bert-base", "kv_precision", "fp8"),
        ("resnet-50", "prefix_hit", 0.5),
        ("bert-base", "denoise_steps", 5),
        ("llama-3.1-8b", "denoise_steps", 5),
        ("dit-xl-2", "denoise_steps", None),
        ("dit-xl-2", "denoise_steps", 0),
    ],
)
def test_keys_of_another_kind_of_model(model, key, value):
    lengths = {"input": 5} if model == "bert-base" else {"input": 5, "output": 5} if model == "llama-3.1-8b" else {}
    assert without({"arrival": {"rate": 1}, **lengths, key: value}, model).field == f"serve.{key}"


# ------------------------------------------------------------------ traces


HEAD = "arrival_s,input,output\n"


def broken_trace(tmp_path, text, model="llama-3.1-8b", **more):
    path = tmp_path / "t.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    (tmp_path / "w.yaml").write_text(json.dumps({"model": model, "serve": {"trace": "t.csv", **more}}))
    return refused(load_serving, tmp_path / "w.yaml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "isn't empty"),
        (" \n\n", "isn't empty"),
        (HEAD, "it has none"),
        (HEAD + "0,10,5\n", "different times"),
        (HEAD + "3,10,5\n3,10,5\n", "different times"),
        (HEAD + "0,10,5\n2,10,5\n1,10,5\n", "line 4 arrival_s: '1'"),
        (HEAD + "-1,10,5\n2,10,5\n", "line 2 arrival_s: '-1'"),
        (HEAD + "0,10,5\nnan,10,5\n", "line 3 arrival_s: 'nan'"),
        (HEAD + "0,10,5\ninf,10,5\n", "line 3 arrival_s: 'inf'"),
        (HEAD + "0,10,5\n1758000000000,10,5\n", "line 3 arrival_s"),
        (HEAD + "0,10,5\nsoon,10,5\n", "line 3 arrival_s: 'soon'"),
        (HEAD + "0,10,5\n1,-10,5\n", "line 3 input: '-10'"),
        (HEAD + "0,10,5\n1,1.5,5\n", "line 3 input: '1.5'"),
        (HEAD + "0,10,5\n1,10,0\n", "line 3 output: '0'"),
        (HEAD + "0,10,5\n1,10,\n", "line 3 output: ''"),
        (HEAD + "0,10,5\n\n1,10,many\n", "line 4 output: 'many'"),
        (HEAD + "0,10,5\n1,10\n", "line 3: '1,10'"),
        (HEAD + "0,10,5\n1,10,5,6\n", "line 3: '1,10,5,6'"),
        (HEAD + "0,10,5\n1,100000,40000\n", "line 3: '140000 tokens'"),
        (HEAD + '0,10,5\n1,"10,5\n', "plain CSV"),
        ("0,10,5\n1,10,5\n", "the header arrival_s,input,output"),
        ("arrival_s,input\n0,10\n1,10\n", "the header arrival_s,input,output"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n0,1,1\n", "the header arrival_s,input,output"),
        (bytes(range(256)), "UTF-8"),
        (b"arrival_s,input,output\n0,\x00,5\n", "NUL"),
    ],
)
def test_broken_traces_name_their_line(tmp_path, text, said):
    error = broken_trace(tmp_path, text)
    assert isinstance(error, BrokenFile) and said in str(error), str(error)


def test_traces_that_are_no_file(tmp_path):
    assert "no such file" in str(without({"trace": "nowhere.csv"}))
    assert "not a folder" in str(without({"trace": str(tmp_path)}))
    assert without({"trace": 5}).field == without({"trace": ""}).field == "serve.trace"


def test_a_large_trace_is_refused_without_being_read(tmp_path):
    with (tmp_path / "t.csv").open("wb") as f:
        f.truncate(2**40)
    assert "at most 10 MB" in str(without({"trace": str(tmp_path / "t.csv")}))


def test_a_trace_beside_what_it_replaces(tmp_path):
    text = HEAD + "0,10,5\n1,10,5\n"
    assert broken_trace(tmp_path, text, input=5).field == "serve.input"
    assert broken_trace(tmp_path, text, output=5).field == "serve.output"
    assert "only the rate" in str(broken_trace(tmp_path, text, arrival={"users": 5}))
    assert "only the rate" in str(broken_trace(tmp_path, text, arrival={"rate": 5, "burstiness": 2}))
    assert "only the rate" in str(broken_trace(tmp_path, text, arrival={}))
    assert "can't combine serve.offline with trace" in str(broken_trace(tmp_path, text, offline={"requests": 5}))
    assert "the header arrival_s,input" in str(broken_trace(tmp_path, text, "bert-base"))


# ------------------------------------------------------------------ flags


@pytest.mark.parametrize(
    ("argument", "flags", "said"),
    [
        ("llama-3.1-8b", {}, "missing: input_len, output_len, rate or users"),
        ("bert-base", {"rate": "3"}, "missing: input_len"),
        ("resnet-50", {}, "missing: rate or users"),
        ("dit-xl-2", {"rate": "3"}, "missing: denoise_steps"),
        (
            "llama-3.1-8b",
            {"input_len": "5", "output_len": "5", "rate": "3", "users": "3"},
            "can't combine users with rate",
        ),
        ("llama-3.1-8b", {"input_len": "p50:", "output_len": "5", "rate": "3"}, "input_len: 'p50:'"),
        ("llama-3.1-8b", {"input_len": "p50:1,p50:2", "output_len": "5", "rate": "3"}, "each key once"),
        ("llama-3.1-8b", {"input_len": "5", "output_len": "5", "rate": "3", "tpot": "p90:40ms,60ms"}, "tpot"),
        ("llama-3.1-8b", {"input_len": "5", "output_len": "5", "rate": "3", "ttft": "fast"}, "serve.slo.ttft: 'fast'"),
        ("llama-3.1-8b", {"input_len": "5", "output_len": "5", "rate": "fast"}, "serve.arrival.rate: 'fast'"),
        ("llama-3.1-8b", {"trace": "nowhere.csv"}, "nowhere.csv"),
        ("llma-3.1-8b", {}, "did you mean llama-3.1-8b"),
        ("examples/llama-3.1-8b-pretrain.yaml", {}, "expected a serve section"),
        ("", {}, "workload"),
    ],
)
def test_bad_flags_are_one_line(argument, flags, said, monkeypatch, request):
    monkeypatch.chdir(request.config.rootpath)
    assert said in str(refused(read_serving, argument, flags))


@pytest.mark.parametrize(
    ("argument", "flags", "said"),
    [
        ("gpt2", {"batch": "8", "rate": "20"}, "batch: '8'"),
        ("examples/llama-3.1-70b-serve.yaml", {"batch": "8"}, "batch: '8'"),
        ("examples/llama-3.1-8b-pretrain.yaml", {"kv_precision": "fp8"}, "kv_precision: 'fp8'"),
        ("gpt2", {}, "missing: batch or batch_tokens, sequence, tokens or steps"),
        ("nowhere.yaml", {}, "no such file"),
    ],
)
def test_flags_of_the_other_kind_are_refused(argument, flags, said, monkeypatch, request):
    monkeypatch.chdir(request.config.rootpath)
    assert said in str(refused(read_any, argument, flags))


# ------------------------------------------------------------------ anything at all


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["1s", "p50", "1k"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["p50", "p99", "mean", "cv"]) | st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
keys = [
    *ServeSpec.model_fields,
    *(
        f"{section}.{key}"
        for section, spec in (("arrival", ArrivalSpec), ("slo", SloSpec), ("offline", OfflineSpec))
        for key in spec.model_fields
    ),
]


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(keys), values)
def test_any_value_of_any_key_gives_a_workload_or_one_clear_line(key, value):
    serve = {**GOOD}
    if "." in key:
        section, inside = key.split(".")
        serve[section] = {inside: value}
    else:
        serve[key] = value
    try:
        load_serving(yaml.safe_dump({"model": "gpt2", "serve": serve}))
    except InputError as e:
        assert "\n" not in str(e)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet='0123456789.,-e\n"xn ', max_size=60))
def test_any_trace_gives_requests_or_one_clear_line(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_text(HEAD + text)
    try:
        load_serving(None, {"model": "gpt2", "trace": str(path)})
    except InputError as e:
        assert "\n" not in str(e)
