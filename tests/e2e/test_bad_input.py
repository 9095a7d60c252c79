"""Bad input: one clear line on stderr, exit 2, nothing on stdout, nothing written."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from command import EXAMPLE, chipwise

from chipwise.cli import main
from patience import PATIENCE_S

SMALL_RUN = ("llama-3.1-8b", "--tokens", "1B", "--batch", "64", "--sequence", "4096")
SMALL_SERVICE = ("llama-3.1-8b", "--rate", "5", "--input-len", "100", "--output-len", "30")
COMPARE = ("compare", EXAMPLE, "--on", "h100")
PREDICT = ("predict", EXAMPLE, "--on", "h100:64")
CONFIG = {
    "model_type": "llama",
    "hidden_size": 512,
    "num_attention_heads": 8,
    "num_hidden_layers": 2,
    "intermediate_size": 1024,
    "vocab_size": 1000,
}

CASES = {
    "no argument": (("compare",), "Missing argument 'WORKLOAD'"),
    "no verb of that name": (("compair",), "No such command 'compair'"),
    "no option of that name": ((*COMPARE, "--chops", "3"), "--chops"),
    "an option without its value": (("predict", EXAMPLE, "--on"), "--on"),
    "no chips": (("predict", EXAMPLE), "--on"),
    "an empty list of chips": (("compare", EXAMPLE, "--on", ","), "--on"),
    "an unknown chip": (("compare", EXAMPLE, "--on", "h10"), "did you mean h100"),
    "an unknown chip to show": (("chips", "zzz"), "chip: unknown name 'zzz'"),
    "an unknown model": (("compare", "llma-3.1-8b"), "did you mean llama-3.1-8b"),
    "where models are listed": (("compare", "llma-3.1-8b"), "see `chipwise models`"),
    "an unknown model as a flag": ((*COMPARE, "--model", "llma-3.1-8b"), "did you mean llama-3.1-8b"),
    "an unknown stack": ((*COMPARE, "--stack", "megatrom"), "did you mean megatron"),
    "an unknown precision": ((*COMPARE, "--precision", "fp12"), "train.precision"),
    "an unknown optimizer": ((*COMPARE, "--optimizer", "adamx"), "did you mean adam"),
    "an unknown recomputation": ((*COMPARE, "--recompute", "some"), "train.recompute"),
    "an unknown format": ((*COMPARE, "-o", "xml"), "one of table, json, csv"),
    "an unknown objective": ((*COMPARE, "--by", "beauty"), "one of cost, time, energy"),
    "a slice that doesn't exist": (("compare", EXAMPLE, "--on", "v5e:3x5"), "the nearest are"),
    "a count without a slice": (("predict", EXAMPLE, "--on", "v5e:7"), "nearest"),
    "no chips at all": (("predict", EXAMPLE, "--on", "h100:0"), "a whole number of chips"),
    "absurdly many chips": (("predict", EXAMPLE, "--on", "h100:99999999"), "a whole number of chips"),
    "heads that tp does not divide": (("predict", EXAMPLE, "--on", "h100:96", "--layout", "tp=3"), "32 heads"),
    "axes that do not multiply": ((*PREDICT, "--layout", "tp=2,dp=2"), "dp(2) * tp(2) != chips(64)"),
    "a layout without meaning": ((*PREDICT, "--layout", "tq=2"), "--layout"),
    "a layout that does not fit": ((*PREDICT, "--layout", "dp=64,mbs=16,recompute=none"), "does not fit"),
    "more stages than layers": (
        ("predict", EXAMPLE, "--on", "h100:40", "--batch", "1000", "--layout", "pp=40"),
        "layers",
    ),
    "a precision the chip lacks": (("predict", EXAMPLE, "--on", "a100-80gb:64", "--precision", "fp8"), "has no fp8"),
    "a batch that no layout divides": (
        ("predict", "resnet-50", "--steps", "9", "--batch", "7", "--on", "h100:64"),
        "nearest global batch",
    ),
    "a batch of nothing": ((*COMPARE, "--batch", "0"), "train.global_batch: 0"),
    "a negative batch": ((*COMPARE, "--batch", "-3"), "train.global_batch: -3"),
    "a batch that is no number": ((*COMPARE, "--batch", "nan"), "'nan'"),
    "an absurd batch": ((*COMPARE, "--batch", "1e30"), "1e30"),
    "a sequence of nothing": ((*COMPARE, "--sequence", "0"), "train.sequence"),
    "infinite tokens": ((*COMPARE, "--tokens", "inf"), "train.tokens"),
    "tokens for less than a step": ((*COMPARE, "--tokens", "10"), "at least one step"),
    "two lengths": ((*COMPARE, "--tokens", "1T", "--steps", "5"), "can't combine"),
    "a count of nothing": ((*COMPARE, "--chips", "0"), "from 1 to 1,000,000"),
    "a negative count": ((*COMPARE, "--chips", "-8"), "--chips"),
    "a count that is no number": ((*COMPARE, "--chips", "nan"), "--chips"),
    "half a chip": ((*COMPARE, "--chips", "2.5"), "a whole number"),
    "an absurd count": ((*COMPARE, "--chips", "1e15"), "from 1 to 1,000,000"),
    "a deadline of nothing": ((*COMPARE, "--deadline", "0d"), "deadline"),
    "a negative deadline": ((*COMPARE, "--deadline", "-3d"), "--deadline"),
    "a deadline that is no time": ((*COMPARE, "--deadline", "soon"), "30d"),
    "an absurd deadline": ((*COMPARE, "--deadline", "1e20d"), "century"),
    "a deadline nobody meets": ((*COMPARE, "--deadline", "1s"), "the deadline is"),
    "a budget of nothing": ((*COMPARE, "--budget", "0"), "budget"),
    "a budget that is no number": ((*COMPARE, "--budget", "nan"), "--budget"),
    "a budget too small": ((*COMPARE, "--budget", "1"), "the budget is"),
    "a preset without a batch": (("compare", "llama-3.1-8b", "--tokens", "1T", "--sequence", "8192"), "--batch"),
    "a preset without a length": (("compare", "llama-3.1-8b", "--batch", "8", "--sequence", "8192"), "--tokens"),
    "a preset with nothing": (
        ("compare", "llama-3.1-8b"),
        "missing: --batch or --batch-tokens, --sequence, --tokens or --steps",
    ),
    "a vision preset with nothing": (
        ("layouts", "resnet-50", "--on", "h100:8"),
        "missing: --batch, --samples or --steps",
    ),
    "samples and steps": ((*COMPARE, "--samples", "1M", "--steps", "5"), "can't combine"),
    "adapters of no rank": ((*PREDICT, "--lora", "0"), "train.lora.rank: 0"),
    "adapters of a cnn": (
        ("predict", "resnet-50", "--steps", "9", "--batch", "64", "--lora", "8", "--on", "h100:8"),
        "train.lora",
    ),
    "no model of that name to list": (("models", "zzz"), "model: unknown name 'zzz'"),
    "a preset without a sequence": (("compare", "llama-3.1-8b", "--batch", "8", "--tokens", "1T"), "--sequence"),
    "a deadline of no unit": (
        ("compare", *SMALL_RUN, "--on", "h100", "--deadline", "3"),
        "--deadline: 3 what? Give a unit, such as 3h or 3d",
    ),
    "an SLO of no unit": (
        ("compare", *SMALL_SERVICE, "--on", "h100", "--ttft", "1"),
        "--ttft: 1 what? Give a unit, such as 1s or 1ms",
    ),
    "several SLOs, one of no unit": (
        ("compare", *SMALL_SERVICE, "--on", "h100", "--tpot", "p50:40ms,p99:60"),
        "--tpot: 60 what?",
    ),
    "two kinds of chips where one is predicted": (
        ("predict", *SMALL_RUN, "--on", "h100:8,v5p:8"),
        "one kind of chip, such as h100:8; `chipwise compare` takes several",
    ),
    "a path that isn't there": (("compare", "nowhere.yaml"), "no such file"),
    "a config that isn't there": (("compare", "nowhere/config.json"), "no such file"),
    "rows that aren't there": (("validate", "--rows", "nowhere.csv"), "no such file"),
    "an output in no folder": ((*COMPARE, "--out", "no/such/folder/x"), "can be written"),
    "an output that is a folder": ((*COMPARE, "--out", "."), "can be written"),
    "no layouts to show": (("layouts", EXAMPLE, "--on", "h100:8", "--top", "0"), "--top"),
    "too large a model for the chips": (
        ("predict", "llama-3.1-405b", "--steps", "1", "--batch", "64", "--sequence", "8192", "--on", "h100:8"),
        "the smallest that holds it is h100:",
    ),
    "a model that fits nowhere": (
        (
            "compare",
            "llama-3.1-405b",
            "--steps",
            "1",
            "--batch",
            "64",
            "--sequence",
            "8192",
            "--chips",
            "8",
            "--on",
            "h100,v5e,v5p",
        ),
        "the smallest of each that hold it are h100:",
    ),
}


def refused(arguments, said, folder):
    before = sorted(folder.iterdir())
    done = chipwise(*arguments, cwd=folder)
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("chipwise: ") and said in done.stderr, done.stderr
    assert "Traceback" not in done.stderr and sorted(folder.iterdir()) == before


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_one_line(case, tmp_path):
    refused(*CASES[case], tmp_path)


def test_a_config_with_nothing_says_all_that_is_missing(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    refused(
        ("predict", "config.json", "--on", "h100:8"),
        "missing: --batch or --batch-tokens, --sequence, --tokens or --steps",
        tmp_path,
    )


FILES = {
    "empty.yaml": (b"", "isn't empty"),
    "blank.yaml": (b"  \n\n", "isn't empty"),
    "broken.yaml": (b"model: [a\n  b: {", "valid YAML"),
    "words.yaml": (b"just words", "keys and values"),
    "binary.yaml": (bytes(range(256)), "UTF-8"),
    "unknown-key.yaml": (b"model: gpt2\ntrain: {steps: 1, global_batc: 8, sequence: 8}", "did you mean global_batch"),
    "negative.yaml": (b"model: gpt2\ntrain: {steps: 1, global_batch: -8, sequence: 8}", "train.global_batch: -8"),
    "nan.yaml": (b"model: gpt2\ntrain: {steps: .nan, global_batch: 8, sequence: 8}", "train.steps"),
    "absurd.yaml": (b"model: gpt2\ntrain: {steps: 1e300, global_batch: 8, sequence: 8}", "train.steps"),
    "both.yaml": (b"model: gpt2\ntrain: {steps: 1}\nserve: {input: 10}", "either a train section or a serve section"),
    "neither.yaml": (b"model: gpt2\n", "train"),
    "broken.json": (b'{"a":', "valid JSON"),
    "empty.json": (b"", "isn't empty"),
    "list.json": (b"[1, 2]", "a JSON object"),
    "alien.json": (json.dumps({"model_type": "alien"}).encode(), "model_type"),
    "heads.json": (json.dumps({**CONFIG, "num_attention_heads": 7}).encode(), "heads"),
    "zero.json": (json.dumps({**CONFIG, "num_hidden_layers": 0}).encode(), "num_hidden_layers"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_bad_file_is_one_line(name, tmp_path):
    content, said = FILES[name]
    (tmp_path / name).write_bytes(content)
    refused(("compare", name, "--on", "h100"), said, tmp_path)


@pytest.mark.parametrize("verb", ["predict", "layouts"])
def test_a_verb_that_trains_says_who_serves(verb, tmp_path):
    (tmp_path / "served.yaml").write_text("model: gpt2\nserve: {input: 10, output: 10, arrival: {rate: 1}}")
    refused(
        (verb, "served.yaml", "--on", "h100:8"),
        "`chipwise serving` and `chipwise compare` take a serve section",
        tmp_path,
    )


@pytest.mark.parametrize("name", ["large.yaml", "large.json"])
def test_a_file_of_200_mb_is_one_line(name, tmp_path):
    with (tmp_path / name).open("wb") as f:
        f.truncate(200_000_000)
    refused(("compare", name, "--on", "h100"), "at most", tmp_path)


def test_an_unwritable_stdout_is_one_line(tmp_path):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "chipwise", "chips"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "output" in done.stderr


def test_a_closed_pipe_is_silent():
    with subprocess.Popen(
        [sys.executable, "-m", "chipwise", "chips", "-o", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        running.stdout.readline()
        running.stdout.close()
        said = running.stderr.read()
        assert running.wait(PATIENCE_S) in (0, 141) and said == ""  # 0 where the pipe took everything before it closed


def test_a_write_to_a_closed_pipe_ends_with_141(monkeypatch, capsys):
    class Closed(io.StringIO):
        def write(self, _):
            raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(main, "_mute", lambda: None)
    monkeypatch.setattr("sys.stdout", Closed())
    assert main.run(["schema"]) == 141 and capsys.readouterr().err == ""


def test_an_interrupt_is_one_line(monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "command", lambda: interrupted)
    assert main.run([]) == 130 and capsys.readouterr().err == "chipwise: interrupted\n"


def test_a_defect_is_one_line_and_a_traceback_only_when_asked_for(monkeypatch, capsys):
    def defect(*_, **__):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(main, "command", lambda: defect)
    monkeypatch.delenv("CHIPWISE_DEBUG", raising=False)
    assert main.run([]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "ZeroDivisionError" in said and "report" in said
    monkeypatch.setenv("CHIPWISE_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main.run([])
