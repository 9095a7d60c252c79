"""Every verb, as another process."""

import ast
import csv
import io
import json
import os
import re
import stat
import subprocess
import sys

import pytest
from command import EXAMPLE, ROOT, chipwise, good

from chipwise import __version__
from chipwise.catalog import load
from chipwise.cli.main import START, command
from chipwise.cli.verbs import PANELS, VERBS
from chipwise.workload import preset_names
from patience import PATIENCE_S

FEW = ("--on", "h100,v5p:128")


def test_compare_ranks_decides_and_assumes():
    said = good("compare", EXAMPLE, *FEW)
    for words in (
        "h100:64",
        "v5p:4x4x8",
        "tokens/s/chip",
        "MFU",
        "Decision",
        "Pick ",
        "What would change this: ",
        "Assumptions",
        "evidence",
    ):
        assert words in said


def test_compare_takes_the_whole_catalog_unless_said():
    found = json.loads(good("compare", EXAMPLE, "-o", "json"))
    assert len(found["rows"]) + len(found["refused"]) == len(load().chips)
    assert found["pick"] in {row["accelerators"]["name"] for row in found["rows"]}
    assert [row["rank"] for row in found["rows"]] == list(range(1, len(found["rows"]) + 1))


@pytest.mark.parametrize("terms", [("--chips", "32"), ("--deadline", "200d"), ("--budget", "3M"), ("--by", "energy")])
def test_compare_on_terms(terms):
    found = json.loads(good("compare", EXAMPLE, "--on", "h100,h200", *terms, "-o", "json"))
    assert found["pick"] and len(found["words"]) == 4


def test_compare_as_csv_has_a_row_for_every_chip():
    rows = list(csv.DictReader(io.StringIO(good("compare", EXAMPLE, "--on", "h100,v100,v7x", "-o", "csv"))))
    assert {r["accelerators_chip"] for r in rows} == {"h100", "v100", "v7x"} and sum(
        r["pick"] == "True" for r in rows
    ) == 1
    assert next(r for r in rows if r["accelerators_chip"] == "v100")["refused"]


def test_predict_explains_in_order():
    said = good("predict", EXAMPLE, "--on", "v5p:128", "--layout", "fsdp=128", "--explain")
    order = [
        "T_math",
        "T_comms",
        "lower bound",
        "estimate",
        "evidence",
        "Breakdown",
        "Collectives",
        "hidden",
        "Memory",
        "can be allocated",
        "Assumptions",
    ]
    places = [said.index(words) for words in order]
    assert places == sorted(places) and "fsdp=128" in said


def test_predict_without_a_layout_takes_the_best():
    best = json.loads(good("layouts", EXAMPLE, "--on", "h100:64", "-o", "json"))["best"]["layout"]
    assert json.loads(good("predict", EXAMPLE, "--on", "h100:64", "-o", "json"))["layout"] == best


def test_predict_parts_add_up_to_the_step():
    found = json.loads(good("predict", EXAMPLE, "--on", "h100:64", "--layout", "tp=2,pp=2", "-o", "json"))
    step = found["step_seconds"]
    assert sum(found["parts_seconds"].values()) == pytest.approx(step["value"], rel=1e-6)
    assert step["low"] <= step["value"] <= step["high"]
    hidden = sum(c["hidden"] for c in found["collectives_seconds"].values())
    assert hidden == pytest.approx(found["hidden_seconds"], rel=1e-3, abs=1e-6)
    memory = found["memory_bytes"]
    assert sum(v for k, v in memory.items() if k != "total") == pytest.approx(memory["total"])


def test_layouts_counts_what_was_evaluated_and_refused():
    said = good("layouts", EXAMPLE, "--on", "h100:512", "--top", "3")
    for words in ("the best of", "Pareto front", "headroom", "layouts of", "evaluated", "splits)"):
        assert words in said
    rows = list(csv.DictReader(io.StringIO(good("layouts", EXAMPLE, "--on", "h100:64", "-o", "csv"))))
    assert {r["set"] for r in rows} == {"top", "front"}


def test_chips_lists_and_shows_sources():
    listed = good("chips")
    assert all(f"{chip} " in listed for chip in load().chips)
    said = good("chips", "v5e")
    for words in ("source", "2026", "Prices", "frameworks", "programming models", "Known limits", "Slices"):
        assert words in said
    one = json.loads(good("chips", "NVIDIA H100 80GB HBM3", "-o", "json"))["chips"][0]
    assert one["id"] == "h100" and all(f["source"] and f["date"] for f in one["figures"].values())
    assert len(list(csv.DictReader(io.StringIO(good("chips", "-o", "csv"))))) == len(load().chips)


def test_models_lists_and_filters():
    listed = good("models")
    assert all(f"{name} " in listed for name in preset_names())
    rows = list(csv.DictReader(io.StringIO(good("models", "Llama 3.1", "-o", "csv"))))
    assert {r["name"] for r in rows} >= {"llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b"}
    assert all("llama-3.1" in r["name"] for r in rows)
    (one,) = json.loads(good("models", "mixtral-8x7b", "-o", "json"))["models"]
    assert one["active_parameters"] < one["parameters"] and one["source"] and one["date"]


def test_adapters_and_samples_are_flags():
    flags = ("--batch", "8", "--sequence", "1024", "--on", "h100:8", "-o", "json")
    lora = json.loads(good("predict", "llama-3.1-8b", "--samples", "80", "--lora", "16", *flags))
    every = json.loads(good("predict", "llama-3.1-8b", "--steps", "10", *flags))
    assert lora["workload"]["lora_rank"] == 16 and lora["workload"]["steps"] == 10 == every["workload"]["steps"]
    assert lora["memory_bytes"]["optimizer"] < every["memory_bytes"]["optimizer"] / 10


def test_help_shows_every_verb_in_its_panel_by_its_own_words():
    shown = good("--help")
    _, *sections = re.split(rf"^(?=(?:{'|'.join(PANELS)}):$)", shown, flags=re.MULTILINE)
    assert [section.partition(":")[0] for section in sections] == list(PANELS)
    for section, verbs in zip(sections, PANELS.values(), strict=True):
        assert re.findall(r"^  ([a-z]+) ", section, re.MULTILINE)[: len(verbs)] == list(verbs)
    assert "..." not in shown.partition("Decide:")[2]
    for verb, words in VERBS.items():
        assert command().commands[verb].help.partition("\n")[0] == words, verb


def test_help_loads_no_verb_but_the_one_asked_for():
    code = (
        "import sys; from chipwise.cli.main import run; run(['--help']); run(['models', '--help']);"
        "print([name for name in sys.modules if name.startswith('chipwise.cli.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = set(ast.literal_eval(done.stdout.splitlines()[-1]))
    assert loaded == {
        f"chipwise.cli.{name}"
        for name in ("main", "verbs", "flags", "models", "numbers", "options", "declare", "completion", "width")
    }


def test_the_example_that_help_ends_with_works_in_any_folder(tmp_path):
    assert good("--help").endswith(f"{START}\n")
    assert "Pick " in good(*START.split()[1:], cwd=tmp_path)


def test_schema_is_the_committed_one():
    assert json.loads(good("schema"))["title"] == "chipwise workload"
    assert good("schema") == (ROOT / "src/chipwise/workload/data/workload.schema.json").read_text(encoding="utf-8")


def test_validate_scores_the_rows_given():
    found = json.loads(good("validate", "--rows", ROOT / "validation" / "rows" / "training.csv", "-o", "json"))
    for key in ("summary", "by_family", "by_chip", "by_source", "leave_one_source_out", "rows"):
        assert key in found


def test_a_config_json_and_a_preset_are_workloads(tmp_path):
    config = {
        "model_type": "llama",
        "hidden_size": 1024,
        "num_attention_heads": 8,
        "num_hidden_layers": 4,
        "num_key_value_heads": 8,
        "intermediate_size": 2816,
        "vocab_size": 32000,
    }
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    flags = ("--steps", "10", "--batch", "64", "--sequence", "2048", "--on", "h100:8")
    assert "h100:8" in good("predict", tmp_path / "config.json", *flags)
    assert "h100:8" in good("predict", tmp_path, *flags)
    assert "gpt2 on h100:8" in good(
        "predict", "gpt2", "--steps", "10", "--batch", "64", "--sequence", "1024", "--on", "h100:8"
    )


def test_flags_change_the_workload():
    found = json.loads(
        good(
            "predict",
            EXAMPLE,
            "--on",
            "h100:64",
            "--model",
            "llama-3.2-1b",
            "--batch",
            "512",
            "--sequence",
            "4096",
            "--precision",
            "fp8",
            "--steps",
            "7",
            "--optimizer",
            "sgd",
            "--recompute",
            "full",
            "--stack",
            "fsdp",
            "-o",
            "json",
        )
    )
    work = found["workload"]
    assert (work["model"], work["global_batch"], work["sequence"], work["steps"]) == ("llama-3.2-1b", 512, 4096, 7)
    assert (work["precision"], work["optimizer"], work["recompute"]) == ("fp8", "sgd", "full")
    assert found["stack"] == "fsdp" and "recompute=full" in found["layout"]


@pytest.mark.parametrize(
    "verb",
    [
        ("compare", EXAMPLE, "--on", "h100"),
        ("predict", EXAMPLE, "--on", "h100:64"),
        ("layouts", EXAMPLE, "--on", "h100:8"),
        ("chips",),
        ("schema",),
    ],
)
def test_out_writes_what_would_be_printed(verb, tmp_path):
    target = tmp_path / "answer"
    target.write_text("old", encoding="utf-8")
    assert good(*verb, "--out", target) == ""
    assert target.read_text(encoding="utf-8") == good(*verb) and list(tmp_path.iterdir()) == [target]


def test_output_is_plain_ascii_when_nobody_watches():
    for arguments in (("compare", EXAMPLE, *FEW), ("predict", EXAMPLE, "--on", "h100:8", "--explain"), ("chips",)):
        assert good(*arguments).isascii()


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_examples(verb):
    said = good(verb, "--help")
    assert "Usage: chipwise" in said and "Examples:" in said and f"chipwise {verb}" in said


def test_version_and_help():
    assert good("--version") == f"chipwise {__version__}\n"
    assert all(f"  {verb}" in good("--help") for verb in VERBS)
    assert "Usage" in good()


def test_names_complete_in_the_shell():
    env = {**os.environ, "_CHIPWISE_COMPLETE": "complete_bash", "COMP_WORDS": "chipwise chips v5", "COMP_CWORD": "2"}
    assert set(chipwise(env=env).stdout.split()) == {"v5e", "v5p"}
    env |= {"COMP_WORDS": "chipwise compare mixtral", "COMP_CWORD": "2"}
    assert "mixtral-8x7b" in chipwise(env=env).stdout
    env |= {"COMP_WORDS": "chipwise compare x --on h100,b2", "COMP_CWORD": "4"}
    assert "h100,b200" in chipwise(env=env).stdout


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("--by t", {"time"}),
        ("--precision fp", {"fp32", "fp16", "fp8", "fp4"}),
        ("-o c", {"csv"}),
        ("--output j", {"json"}),
        ("--recompute s", {"selective"}),
        ("--optimizer l", {"lamb", "lars", "lion"}),
        ("--stack maxt", {"maxtext"}),
    ],
)
def test_fixed_lists_complete_in_the_shell(typed, offered):
    env = {
        **os.environ,
        "_CHIPWISE_COMPLETE": "complete_bash",
        "COMP_WORDS": f"chipwise compare x {typed}",
        "COMP_CWORD": "4",
    }
    assert set(chipwise(env=env).stdout.split()) == offered


def test_a_format_that_is_not_known_leaves_completion_alone():
    words = {"COMP_WORDS": "chipwise compare x -o xml --by t", "COMP_CWORD": "6"}
    assert chipwise(env={**os.environ, "_CHIPWISE_COMPLETE": "complete_bash", **words}).stdout.split() == ["time"]


def test_out_follows_a_link_and_leaves_devices_alone(tmp_path):
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    target.write_text("old", encoding="utf-8")
    link.symlink_to(target)
    good("chips", "v5e", "--out", str(link))
    assert link.is_symlink() and target.read_text(encoding="utf-8") != "old"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE, text=True) as reader:
        good("chips", "v5e", "--out", str(pipe))
        assert "v5e" in reader.communicate(timeout=PATIENCE_S)[0]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
