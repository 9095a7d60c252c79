"""chipwise numerics as people run it: presets in both frameworks, and programs built to fail."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from command import ROOT, good, running

from chipwise.cli import main
from patience import PATIENCE_S

UNDERFLOW, TINY = (f"examples/programs/numerics_{name}.py" for name in ("underflow", "tiny_updates"))
GOOD = """
import torch
from torch import nn

def model():
    return nn.Linear(2, 1)

def loss(net, batch):
    return net(batch).square().mean()

def batches(seed):
    yield torch.ones(4, 2)
"""


def refused(capsys, *arguments):
    """The one line of a command that must leave with 2."""
    status = main.run(["numerics", *arguments])
    out, err = capsys.readouterr()
    assert (status, out, err.count("\n")) == (2, "", 1), err
    return err


def told(*arguments):
    """Verdicts by precision, and the whole document."""
    found = json.loads(good("numerics", *arguments, "-o", "json"))
    return {each["precision"]: each for each in found["verdicts"]}, found


def test_tiny_gradients_fail_in_fp16_and_pass_with_scaling_and_in_bf16():
    said, found = told(UNDERFLOW, "--precisions", "bf16,fp16", "--seeds", "3")
    assert said["bf16"]["verdict"] == "safe"
    assert said["fp16"]["verdict"] == "safe with loss scaling (static 1,024 or dynamic from 65,536)"
    assert "unsafe without" in said["fp16"]["why"] and "gradients of" in said["fp16"]["why"]
    answers = {each["recipe"]: each for each in found["recipes"]}
    assert answers["fp16"]["answer"] == "unsafe" and answers["fp16+dynamic"]["answer"] == "safe"
    assert all(each["how"] == "emulated" for each in found["recipes"]) or "native" in str(found["notes"])
    lost = {
        (each["layer"], each["values"]): each["underflows"] / each["elements"]
        for each in answers["fp16"]["layers"]
        if each["elements"]
    }
    assert lost["scores", "gradients"] > 0.5
    assert answers["fp16+dynamic"]["runs"][0]["scale"][0] == 65536.0


def test_tiny_updates_to_large_weights_fail_in_bf16_and_pass_with_master_weights():
    said, found = told(TINY, "--precisions", "bf16", "--seeds", "3")
    assert said["bf16"]["verdict"] == "safe with fp32 master weights"
    assert "unsafe without" in said["bf16"]["why"] and "updates of gain are lost" in said["bf16"]["why"]
    (pure,) = [each for each in found["recipes"] if each["recipe"] == "bf16"]
    assert pure["answer"] == "unsafe" and pure["final_difference"]["p_worse"] < 0.05


@pytest.mark.parametrize("framework", ["torch", "jax"])
@pytest.mark.parametrize("preset", [pytest.param("char-transformer", marks=pytest.mark.slow), "digits-cnn"])
def test_presets_train_in_both_frameworks(preset, framework):
    said, found = told(preset, "--framework", framework, "--precisions", "bf16", "--seeds", "2", "--steps", "20")
    runs = found["reference"]["runs"]
    assert found["framework"] == framework and len(runs) == 2 and found["weights"] > 5_000
    assert all(len(run["loss"]) == 20 and run["loss"][0] > run["final_loss"] for run in runs)
    assert said["bf16"]["verdict"].startswith(("safe", "inconclusive"))
    assert {each["recipe"] for each in found["recipes"]} == {"bf16", "bf16+master"}


@pytest.mark.slow
def test_fp8_and_all_of_fp16_train_a_preset_and_a_picture_is_drawn(tmp_path):
    picture = tmp_path / "curves.png"
    said, found = told("digits-cnn", "--framework", "torch", "--precisions", "fp16,fp8", "--quick", "--plot", picture)
    assert picture.read_bytes().startswith(b"\x89PNG") and list(tmp_path.iterdir()) == [picture]
    assert set(said) == {"fp16", "fp8"} and found["seeds"] == 3 and found["steps"] == 40
    kinds = {each["values"] for row in found["recipes"] for each in row["layers"]}
    assert kinds == {"activations", "gradients", "weights", "weight gradients", "updates"}


def test_the_same_command_gives_the_same_answer(tmp_path):
    asked = ("numerics", TINY, "--precisions", "fp16", "--quick")
    target = tmp_path / "out.txt"
    assert good(*asked, "--out", target) == "" and target.read_text(encoding="utf-8") == good(*asked)


def test_a_drawing_is_the_same_every_time_and_svg(tmp_path):
    drawn = []
    for name in ("a.svg", "b.svg"):
        good("numerics", TINY, "--precisions", "bf16", "--quick", "--plot", tmp_path / name)
        drawn.append((tmp_path / name).read_text(encoding="utf-8"))
    assert drawn[0] == drawn[1] and drawn[0].startswith("<?xml")


BAD = {
    "an unknown precision": ((TINY, "--precisions", "fp12"), "did you mean fp32, fp16, fp8"),
    "fp32 against itself": ((TINY, "--precisions", "fp32"), "at least one besides fp32"),
    "no precision": ((TINY, "--precisions", ","), "some of fp32, bf16, fp16, fp8"),
    "an unknown preset": (("char-transfomer",), "did you mean char-transformer"),
    "an unknown framework": (("digits-cnn", "--framework", "tf"), "torch or jax"),
    "the wrong framework": ((TINY, "--framework", "torch"), "which defines model()"),
    "a file that isn't there": (("nowhere.py",), "no such file"),
    "a file of another kind": (("README.md",), "a Python file"),
    "one seed": ((TINY, "--seeds", "1"), "--seeds: 1"),
    "too few steps": ((TINY, "--steps", "9"), "--steps: 9"),
    "a picture of another kind": ((TINY, "--plot", "curves.gif"), "ends in .svg or .png"),
    "a picture in no folder": ((TINY, "--plot", "nowhere/curves.png"), "a folder that exists"),
    "a file in no folder": ((TINY, "--out", "nowhere/out.txt"), "a folder that exists"),
    "a scale of nothing": ((TINY, "--loss-scale", "0"), "--loss-scale"),
    "a margin of everything": ((TINY, "--margin", "1.5"), "--margin"),
    "an unknown format": ((TINY, "-o", "csv"), "table, json"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line(name, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    arguments, said = BAD[name]
    assert said in refused(capsys, *arguments)


PROGRAMS = {
    "without a loss": (GOOD.replace("def loss", "def lose"), "no loss"),
    "without a model": (GOOD.replace("def model", "def mudel"), "model() (PyTorch) or init(seed) (JAX)"),
    "with a syntax error": (GOOD.replace("def model():", "def model(:"), "mine.py:5"),
    "that raises": (GOOD.replace("net(batch).square()", "1 / 0"), "mine.py:9"),
    "that leaves": (GOOD.replace("return nn.Linear(2, 1)", "raise SystemExit(3)"), "mine.py:6"),
    "that imports nothing we know": ("import nowhere_at_all\n" + GOOD, "nowhere_at_all"),
    "without batches": (GOOD.replace("yield torch.ones(4, 2)", "return iter(())"), "gave none"),
    "whose loss is no number": (GOOD.replace(".mean()", ""), "a tensor of one element"),
    "whose model is no module": (GOOD.replace("nn.Linear(2, 1)", "3"), "a torch.nn.Module"),
    "that diverges": (GOOD + "\noptimizer = {'name': 'sgd', 'learning_rate': 1e30}\n", "finite in fp32"),
    "with an unknown optimizer": (GOOD + "\noptimizer = 'lion'\n", "sgd or adamw"),
    "with too few steps": (GOOD + "\nsteps = 3\n", "program.steps: 3"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_cannot_be_used_is_one_line_with_its_place(name, tmp_path, capsys, monkeypatch):
    text, said = PROGRAMS[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    assert said in refused(capsys, "mine.py", "--precisions", "bf16", "--quick")


def test_ctrl_c_leaves_nothing_behind(tmp_path):
    started, here = tmp_path / "started", tmp_path / "here"
    here.mkdir()
    text = GOOD.replace("    yield", f"    open({str(started)!r}, 'w').close()\n    yield")
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    with running(
        "numerics", "../mine.py", "--steps", "1000000", "--out", "out.txt", "--plot", "curves.png", cwd=here
    ) as process:
        while not started.exists() and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out) == (130, "") and err == "chipwise: interrupted\n"
    assert list(here.iterdir()) == []


def test_the_help_needs_no_framework():
    code = "import sys, chipwise.cli.main; print([m for m in ('numpy', 'torch', 'jax', 'sklearn', 'matplotlib') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ, cwd=ROOT
    )
    assert done.stdout.strip() == "[]"
