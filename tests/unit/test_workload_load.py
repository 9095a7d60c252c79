"""The workload file: what it gives, and how each broken one is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import get_args

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.errors import BrokenFile, ChipwiseError, InputError, UnknownName
from chipwise.workload import load_workload, metrics_that_matter
from chipwise.workload.load import kind_of, load_serving, schema, schema_text
from chipwise.workload.model import OPTIMIZER_STATES, PRECISIONS, RECOMPUTE, STATE_PRECISIONS, Train
from chipwise.workload.spec import Optimizer, TrainSpec

ROOT = Path(__file__).parents[2]
EXAMPLES = [path for path in sorted((ROOT / "examples").glob("*.yaml")) if kind_of(path) == "train"]
GOOD = "model: gpt2\ntrain:\n  steps: 10\n  global_batch: 8\n  sequence: 1024\n"


def refused(source, overrides=None) -> InputError:
    with pytest.raises(InputError) as e:
        load_workload(source, overrides)
    assert "\n" not in str(e.value)
    assert len(str(e.value)) < 600
    return e.value


def with_train(**changes):
    train = {"steps": 10, "global_batch": 8, "sequence": 1024, **changes}
    return json.dumps({"model": "gpt2", "train": {k: v for k, v in train.items() if v != "drop"}}) + "\n"


# ------------------------------------------------------------------ what it gives


def test_the_worked_example():
    w = load_workload(ROOT / "examples" / "llama-3.1-8b-pretrain.yaml")
    assert w.model.name == "llama-3.1-8b"
    assert (w.train.global_batch, w.train.sequence, w.train.precision) == (1024, 8192, "bf16")
    assert w.train.steps == 1_788_140
    assert 0 <= w.train.tokens - 15 * 10**12 < w.train.tokens_per_step


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_examples_load_and_point_to_the_schema(path):
    w = load_workload(path)
    assert w.name == path.stem
    first = path.read_text().splitlines()[0]
    relative = first.split("$schema=")[1]
    assert (path.parent / relative).resolve().name == "workload.schema.json"
    assert (path.parent / relative).exists()
    assert metrics_that_matter(w)


def test_there_are_examples_of_every_kind():
    families = {load_workload(p).model.family for p in EXAMPLES}
    assert families == {"decoder", "encoder", "vit", "dit", "cnn"}
    assert any(load_workload(p).train.lora_rank for p in EXAMPLES)


def test_vision_derives_its_sequence():
    train = load_workload(overrides={"model": "vit-b/16", "images": "1k", "global_batch": 100}).train
    assert (train.sequence, train.steps, train.samples_unit) == (197, 10, "images")


def test_defaults_are_the_documented_ones():
    t = load_workload(GOOD).train
    assert (t.precision, t.optimizer, t.state_precision, t.recompute, t.lora_rank, t.stack) == (
        "bf16", "adamw", "fp32", "auto", 0, "",
    )  # fmt: skip
    assert t.optimizer_states == 2


def test_preset_with_changes_is_rebuilt():
    m = load_workload(GOOD, {"model.layers": "24"}).model
    assert (m.layers, m.d_model, m.published_params) == (24, 768, 0.0)
    assert m.name == "gpt2 (changed)"


def test_hf_path_is_relative_to_the_file(tmp_path):
    (tmp_path / "config.json").write_text(
        json.dumps(
            {
                "model_type": "gpt2",
                "n_layer": 2,
                "n_embd": 64,
                "n_head": 2,
                "vocab_size": 100,
                "n_positions": 64,
            }
        )
    )
    path = tmp_path / "w.yaml"
    path.write_text("model: {hf: config.json}\ntrain: {steps: 1, global_batch: 1, sequence: 64}\n")
    assert load_workload(path).model.layers == 2


def test_overrides_replace_the_length_and_skip_none():
    t = load_workload(GOOD, {"tokens": "1M", "train.precision": "fp8", "optimizer": None, "global_batch": "16"}).train
    assert (t.steps, t.precision, t.optimizer, t.global_batch) == (62, "fp8", "adamw", 16)


def test_lists_of_choices_agree_between_file_and_dataclass():
    def choices(key):
        return set(get_args(TrainSpec.model_fields[key].annotation))

    assert choices("precision") == set(PRECISIONS)
    assert choices("state_precision") == set(STATE_PRECISIONS)
    assert choices("recompute") == set(RECOMPUTE)
    assert set(get_args(Optimizer)) == set(OPTIMIZER_STATES)


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(["tokens", "steps", "samples"]),
    st.integers(1, 10**6),
    st.integers(1, 5000),
    st.integers(1, 1024),
)
def test_tokens_steps_and_samples_agree(key, steps, batch, sequence):
    amount = {"tokens": steps * batch * sequence, "steps": steps, "samples": steps * batch}[key]
    train = load_workload(overrides={"model": "gpt2", key: amount, "global_batch": batch, "sequence": sequence}).train
    assert train.steps == steps
    assert train.tokens == train.steps * train.global_batch * train.sequence
    assert train.samples == train.steps * train.global_batch


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 10**15), st.integers(1, 5000), st.integers(1, 1024))
def test_a_run_covers_the_tokens_asked_for_with_less_than_a_step_to_spare(tokens, batch, sequence):
    overrides = {"model": "gpt2", "tokens": tokens, "global_batch": batch, "sequence": sequence}
    if tokens < batch * sequence:
        assert "at least one step" in str(refused(None, overrides))
        return
    train = load_workload(overrides=overrides).train
    assert 0 <= train.tokens - tokens < train.tokens_per_step


# ------------------------------------------------------------------ how broken ones are refused


def test_missing_path_and_folder(tmp_path):
    assert isinstance(refused(tmp_path / "no.yaml"), BrokenFile)
    assert "not a folder" in str(refused(tmp_path))
    assert "no such file" in str(refused("nowhere/else.yaml"))


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n"])
def test_empty_file(tmp_path, text):
    path = tmp_path / "w.yaml"
    path.write_text(text)
    assert isinstance(refused(path), BrokenFile)


def test_large_file_is_refused_without_being_read(tmp_path):
    path = tmp_path / "w.yaml"
    with path.open("wb") as f:
        f.truncate(2**40)  # sparse: reading it would take the machine
    assert "at most 1 MB" in str(refused(path))


def test_endless_device_is_refused():
    assert isinstance(refused(Path("/dev/zero")), BrokenFile)


@pytest.mark.parametrize("data", [b"\xff\xfe\x00\x01", b"\x7fELF\x00\x00", b"a: \x00", bytes(range(256)), b"a: \x01"])
def test_binary_junk(tmp_path, data):
    path = tmp_path / "w.yaml"
    path.write_bytes(data)
    assert isinstance(refused(path), BrokenFile)


def test_broken_yaml_names_the_line(tmp_path):
    path = tmp_path / "w.yaml"
    path.write_text("model: gpt2\ntrain:\n  steps: 10\n  sequence: [1, 2\n  global_batch: 3\n")
    error = refused(path)
    assert isinstance(error, BrokenFile)
    assert str(error).startswith("w.yaml line 5:")


def test_duplicate_keys_are_refused_with_their_line():
    error = refused(GOOD + "  steps: 20\n")
    assert "line 6" in str(error) and "only once" in str(error)


def test_alias_bomb_is_refused_at_once():
    bomb = "a: &a [x, x]\n" + "".join(f"{c}: &{c} [*{p}, *{p}]\n" for p, c in zip("abcdefgh", "bcdefghi", strict=True))
    assert "aliases" in str(refused(bomb))


@pytest.mark.parametrize(
    "text", ["[" * 5000 + "\n", "a: {" * 3000 + "\n", "\n".join(f"k{i}: 1" for i in range(20_000))]
)
def test_absurd_structure_is_refused(text):
    assert isinstance(refused(text), BrokenFile)


@pytest.mark.parametrize("text", ["- a\n- b\n", "just words\nhere\n", "!!python/object/apply:os.system ['true']\n"])
def test_not_a_mapping(text):
    assert isinstance(refused(text), BrokenFile)


def test_unknown_keys_get_the_nearest():
    for text, path, near in (
        (with_train(global_batc=8), "train.global_batc", "global_batch"),
        (GOOD.replace("train:", "trian:"), "trian", "train"),
        ("model: {family: decoder, layres: 2}\n" + GOOD.split("\n", 1)[1], "model.layres", "layers"),
        (with_train(lora={"rnak": 4}), "train.lora.rnak", "rank"),
    ):
        error = refused(text)
        assert isinstance(error, UnknownName)
        assert str(error).startswith(path + ":") and near in str(error)


def test_unknown_choices_get_the_nearest():
    assert "bf16" in str(refused(with_train(precision="bf-16")))
    assert "adamw" in str(refused(with_train(optimizer="adamW2")))
    assert "llama-3.1-8b" in str(refused(GOOD.replace("gpt2", "llama-3.1-9b")))


@pytest.mark.parametrize("key", ["steps", "global_batch", "sequence"])
@pytest.mark.parametrize(
    "bad",
    [0, -1, 1.5, True, None, "many", "-3", "", [], {}, float("nan"), float("inf"), 10**19, "1e300", "9" * 50],
)  # fmt: skip
def test_bad_counts_name_their_field(key, bad):
    raw = {"model": "gpt2", "train": {"steps": 10, "global_batch": 8, "sequence": 1024, key: bad}}
    error = refused(yaml.safe_dump(raw))
    nothing_said = key == "steps" and bad is None  # as if the key weren't there
    assert error.field == ("train" if nothing_said else f"train.{key}")


@pytest.mark.parametrize("bad", [0, -4, 1.5, "12", True, 10**10, float("nan")])
def test_bad_dimensions_name_their_field(bad):
    model = {"family": "decoder", "layers": bad, "d_model": 64, "heads": 4, "vocab": 100}
    error = refused(yaml.safe_dump({"model": model, "train": {"steps": 1, "global_batch": 1, "sequence": 8}}))
    assert error.field == "model.layers"


def test_exactly_one_length():
    assert "tokens and steps" in str(refused(with_train(tokens="1M")))
    assert "exactly one of" in str(refused(with_train(steps="drop")))
    assert "images" in str(refused(None, {"model": "resnet-50", "tokens": 1000, "global_batch": 1}))
    assert "tokens" in str(refused(None, {"model": "gpt2", "images": 1000, "global_batch": 1, "sequence": 8}))


def test_contradictions_restate_the_equation():
    assert "global_batch(8) x sequence(1024) = 8192" in str(refused(with_train(steps="drop", tokens=1000)))
    assert "10^18" in str(refused(with_train(steps=10**17)))
    assert "1024 positions" in str(refused(with_train(sequence=4096)))
    assert "197 tokens" in str(refused(None, {"model": "vit-b-16", "steps": 1, "global_batch": 1, "sequence": 99}))
    shape = "family: decoder, d_model: 64, layers: 2, vocab: 10"
    tail = "}\n" + GOOD.split("\n", 1)[1]
    assert "d_model(64)" in str(refused("model: {" + shape + ", heads: 5" + tail))
    assert "heads(4)" in str(refused("model: {" + shape + ", heads: 4, kv_heads: 3" + tail))
    moe = ", heads: 4, experts: {count: 2, per_token: 3, d_ff: 8}"
    assert "experts.count(2)" in str(refused("model: {" + shape + moe + tail))
    assert "no such key for a decoder" in str(refused("model: {" + shape + ", heads: 4, patch: 2" + tail))
    assert "cnn" in str(refused(None, {"model": "resnet-50", "steps": 1, "global_batch": 1, "lora.rank": 4}))


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=80))
def test_any_text_gives_one_clear_line(text):
    try:
        load_workload(text + "\n")
    except ChipwiseError as e:
        assert "\n" not in str(e)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(TrainSpec.model_fields)), values)
def test_any_value_of_any_key_gives_a_workload_or_one_clear_line(key, value):
    raw = {"model": "gpt2", "train": {"steps": 10, "global_batch": 8, "sequence": 1024, key: value}}
    try:
        load_workload(yaml.safe_dump(raw))
    except ChipwiseError as e:
        assert "\n" not in str(e)


# ------------------------------------------------------------------ schema, words, weight


def test_committed_schema_is_current():
    committed = resources.files("chipwise.workload").joinpath("data/workload.schema.json").read_text("utf-8")
    assert committed == schema_text(), "run chipwise.workload.write_schema()"


def test_schema_describes_every_key():
    described = schema()
    assert described["$schema"].endswith("2020-12/schema")
    for definition in (described, *described["$defs"].values()):
        for key, value in definition.get("properties", {}).items():
            assert value.get("description"), key


def test_docs_name_every_key():
    text = (ROOT / "docs" / "workload.md").read_text()
    for definition in (schema(), *schema()["$defs"].values()):
        for key in definition.get("properties", {}):
            assert f"`{key}`" in text or f"{key}:" in text, key


def test_words_follow_the_workload():
    def words(model, **train):
        base = {"model": model, "steps": 10, "global_batch": 8, **train}
        return " ".join(metrics_that_matter(load_workload(overrides=base)))

    assert "all-to-all" in words("mixtral-8x7b", sequence=4096)
    assert "all-to-all" not in words("llama-3.1-70b", sequence=4096)
    assert "launch" in words("gpt2", sequence=1024)
    assert "square" in words("llama-3.1-8b", sequence=131072)
    assert "square" not in words("llama-3.1-8b", sequence=4096)
    assert "frozen" in words("llama-2-70b", sequence=4096, **{"lora.rank": 16})
    assert "memory bandwidth" in words("resnet-50")


def test_train_can_be_built_directly():
    assert Train(global_batch=2, sequence=3, steps=5).tokens == 30


def test_importing_the_package_leaves_heavy_modules_alone():
    code = "import sys, chipwise.workload; print([m for m in ('pydantic', 'yaml', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("path", ["../my13b.json", "config.json", "./model", "/models/llama"])
def test_a_path_for_a_name_is_told_how_configs_are_given(path):
    with pytest.raises(InputError) as caught:
        load_workload(f"model: {path}\ntrain: {{steps: 1, global_batch: 1, sequence: 8}}")
    assert f"model: {{hf: {path}}}" in str(caught.value)


@pytest.mark.parametrize("word", ["mxfp4", "nvfp4", "NVFP4", "fp4"])
def test_formats_of_four_bits_are_spellings_of_fp4(word):
    text = f"model: gpt2\ntrain: {{steps: 1, global_batch: 1, sequence: 8, precision: {word}}}"
    assert load_workload(text).train.precision == "fp4"


def test_a_variant_keeps_the_precision_of_its_name():
    from chipwise.workload.read import read_workload

    flags = {"batch": "8", "sequence": "512", "steps": "1", "lora": "8"}
    model = read_workload("Qwen/Qwen3-8B-AWQ", flags).model
    assert (model.name, model.native_precision, model.taken_from) == ("qwen3-8b", "int4", "Qwen/Qwen3-8B-AWQ")


@pytest.mark.parametrize(("name", "flags"), [
    ("t5-base", {"sequence": "512", "steps": "1"}), ("whisper-small", {"sequence": "448", "steps": "1"}),
    ("nemotron-nano-9b-v2", {"sequence": "4096", "steps": "1"}), ("flux.1-dev", {"steps": "1"}),
    ("wan2.1-t2v-1.3b", {"steps": "1"}), ("sdxl", {"steps": "1"}),
])  # fmt: skip
def test_every_family_can_be_trained(name, flags):
    from chipwise.workload.read import read_workload

    workload = read_workload(name, {"batch": "8", **flags})
    assert workload.train.samples_unit == (workload.model.picture_unit or "sequences")
    assert bool(workload.model.picture_unit) == bool(workload.model.image_tokens)


def test_what_cannot_be_trained_so_is_refused():
    train = "train: {steps: 1, global_batch: 1"
    with pytest.raises(InputError, match="trained apart"):
        load_workload(f"model: wan2.2-t2v-a14b\n{train}}}")
    with pytest.raises(InputError, match=r"train\.lora\.targets"):
        load_workload(f"model: sdxl\n{train}, lora: {{rank: 8, targets: all}}}}")
    assert load_workload(f"model: sdxl\n{train}, lora: {{rank: 8}}}}").train.lora_rank == 8
    with pytest.raises(InputError, match="positions"):
        load_workload(f"model: whisper-small\n{train}, sequence: 449}}")


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("8k", 8192), ("32K", 32_768), ("128k", 131_072), ("1M", 2**20), ("10k", 10_000), ("6000", 6000), ("2.5k", 2500)],
)
def test_a_sequence_of_8k_is_of_8192_tokens(text, tokens):
    """A power of two before k or M is binary, as contexts are named; all else is decimal."""
    train = load_workload(overrides={"model": "llama-3.1-8b", "steps": 1, "global_batch": 8, "sequence": text}).train
    assert train.sequence == tokens
    long = {"model.preset": "llama-3.1-8b", "model.context": 2**21}
    served = load_serving(overrides={**long, "input": text, "output": 10, "arrival.rate": 1}).serve
    assert served.input.mean == tokens


def test_a_batch_may_be_said_in_tokens():
    base = {"model": "llama-3.1-8b", "steps": 1, "sequence": 4096}
    assert load_workload(overrides={**base, "batch_tokens": "4M"}).train.global_batch == 1024
    assert load_workload(overrides={**base, "batch_tokens": 10_000}).train.global_batch == 2
    assert load_workload(overrides={**base, "batch_tokens": 10}).train.global_batch == 1
    for wrong, words in (({}, "or batch_tokens"), ({"batch_tokens": "4M", "global_batch": 8}, "expected one of them")):
        with pytest.raises(InputError, match=words):
            load_workload(overrides={**base, **wrong})
    with pytest.raises(InputError, match="in images"):
        load_workload(overrides={"model": "resnet-50", "steps": 1, "batch_tokens": "4M"})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": "llama-3.1-8b", "sequence": 4096, "global_batch": "4M"}, "tokens are batch_tokens: 4M"),
        ({"model": "llama-3.1-8b", "sequence": 8192, "global_batch": 65_536}, "at most 32,768"),
        ({"model": "resnet-50", "global_batch": "4M"}, "images of a step, at most 2,097,152"),
    ],
)
def test_a_batch_that_nobody_trains_with_is_asked_about(changes, words):
    with pytest.raises(InputError, match=words):
        load_workload(overrides={**changes, "steps": 1})
