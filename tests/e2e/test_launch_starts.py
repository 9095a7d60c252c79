"""Launches start: what is printed runs, as it is, on this machine's CPU with a model of two small layers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from real_parsers import installed

from chipwise.catalog import load, parse
from chipwise.launch.described import TrainingRun
from chipwise.launch.launch import launch
from chipwise.predict.estimate import Estimate
from chipwise.predict.model.layouts import Layout
from chipwise.workload import load_workload

pytestmark = pytest.mark.slow
DAY = Estimate(86_400.0, 80_000.0, 90_000.0, "modelled")
LORA = "model: mistral-7b\ntrain: {steps: 10, global_batch: 4, sequence: 2048, lora: {rank: 8}}"
QLORA = LORA.replace("{rank: 8}", "{rank: 8, base: nf4}")
DENSE = "model: llama-3.1-8b\ntrain: {steps: 10, global_batch: 64, sequence: 2048}"
# a word each, so that packed sequences fill
TINY = """
import json
from pathlib import Path
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
sizes = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
LlamaForCausalLM(LlamaConfig(vocab_size=64, **sizes)).save_pretrained("tiny")
words = ["<unk>", "<s>", "</s>", *"abcdefgh"]
tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
names = dict(unk_token="<unk>", bos_token="<s>", eos_token="</s>", pad_token="</s>")
PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained("tiny")
Path("data").mkdir()
rows = [json.dumps({"text": " ".join("abcdefgh" * 30)}) for _ in range(64)]
Path("data/train.jsonl").write_text("\\n".join(rows))
"""
# the command as printed, and behind it what makes it small: the last value of an option counts
SMALL = "--model_name_or_path tiny --max_steps 1 --max_length 64 --use_cpu true --report_to none"


def run_of(text: str, on: str, stack: str, **layout: object) -> TrainingRun:
    acc = parse(on)
    return TrainingRun(load_workload(text), acc, load().stacks[stack], Layout(**{"dp": acc.count, **layout}), DAY)


def started(
    script: str, folder: Path, programs: dict[str, str], **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a script in bash, where programs are those of this machine."""
    env = environment_of(folder, programs, **environment)
    return subprocess.run(
        ["bash", "-eu"], input=script, text=True, env=env, cwd=folder, capture_output=True, check=False, timeout=300
    )


def environment_of(folder: Path, programs: dict[str, str], **environment: str) -> dict[str, str]:
    binaries = folder / "bin"
    binaries.mkdir(exist_ok=True)
    for name, line in programs.items():
        file = binaries / name
        file.write_text(f"#!/bin/sh\nexec {sys.executable} -W ignore {line}\n", encoding="utf-8")
        file.chmod(0o755)
    return {**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}", "TMPDIR": str(folder), **environment}


@pytest.fixture(scope="module")
def peft(tmp_path_factory):
    """TRL's packages, and a folder with a small model and data for it."""
    path = os.pathsep.join(map(str, [installed(name) for name in ("trl", "bitsandbytes", "shared")]))
    environment = {
        "PYTHONPATH": path,
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "ACCELERATE_USE_CPU": "true",
        "DATASET": "data",
        "OUTPUT": "out",
    }
    folder = tmp_path_factory.mktemp("peft")
    env = {**os.environ, **environment}
    done = subprocess.run(
        [sys.executable, "-c", TINY], cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return folder, environment


@pytest.mark.parametrize(
    ("on", "layout"),
    [("h100:1", {}), ("h100:2", {}), ("h100:2", {"zero": 3, "shard": 2, "recompute": "full"})],
    ids=["one GPU", "two replicas", "two shards"],
)
def test_adapters_are_trained_by_the_printed_command(peft, on, layout):
    folder, environment = peft
    written = launch(run_of(LORA, on, "fsdp", **layout))
    assert written.tool == "trl"
    programs = {"accelerate": f'-m accelerate.commands.accelerate_cli "$@" {SMALL}'}
    done = started(written.text, folder, programs, **environment)
    assert done.returncode == 0 and "'train_loss'" in done.stdout + done.stderr, done.stderr[-3000:]


def test_adapters_beside_a_base_of_four_bits_are_trained_by_the_printed_command(peft):
    folder, environment = peft
    written = launch(run_of(QLORA, "h100:1", "fsdp"))
    assert written.tool == "trl" and "--load_in_4bit" in written.text
    programs = {"accelerate": f'-m accelerate.commands.accelerate_cli "$@" {SMALL}'}
    done = started(written.text, folder, programs, **environment)
    assert done.returncode == 0 and "'train_loss'" in done.stdout + done.stderr, done.stderr[-3000:]


def test_adapters_beside_a_base_of_four_bits_are_trained_by_two_processes(peft):
    """They train and save. On a CPU one of them then waits for the other at its end: torch leaves their group to it."""
    folder, environment = peft
    written = launch(run_of(QLORA, "h100:2", "fsdp"))
    assert "--num_processes 2" in written.text and "--load_in_4bit" in written.text
    programs = {"accelerate": f'-m accelerate.commands.accelerate_cli "$@" {SMALL}'}
    told = folder / "two.txt"
    with told.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            ["bash", "-eu"], stdin=subprocess.PIPE, stdout=output, stderr=output, text=True, cwd=folder,
            env=environment_of(folder, programs, **{**environment, "OUTPUT": "two", "OMP_NUM_THREADS": "1"}),
            start_new_session=True,
        )  # fmt: skip
        try:
            assert process.stdin is not None
            process.stdin.write(written.text)
            process.stdin.close()
            until = time.monotonic() + 300
            while "Model saved" not in told.read_text() and process.poll() is None and time.monotonic() < until:
                time.sleep(0.5)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert "'train_loss'" in told.read_text() and "Model saved" in told.read_text(), told.read_text()[-3000:]
    assert (folder / "two" / "adapter_model.safetensors").stat().st_size > 0


def test_a_command_that_cannot_start_is_told(peft):
    """The check itself can fail: accelerate refuses several GPUs of one process."""
    folder, environment = peft
    written = launch(run_of(LORA, "h100:1", "fsdp")).text.replace("--num_machines 1", "--num_machines 1 --multi_gpu")
    programs = {"accelerate": f'-m accelerate.commands.accelerate_cli "$@" {SMALL}'}
    done = started(written, folder, programs, **environment)
    assert done.returncode != 0 and "at least 2 processes" in done.stderr


@pytest.mark.parametrize(("stack", "program"), [("megatron", "pretrain_gpt.py"), ("torchtitan", "torchtitan/train.py")])
def test_torchrun_starts_a_process_a_chip(stack, program, tmp_path):
    """With ranks of their own; what each would run is another test's."""
    script = tmp_path / program
    script.parent.mkdir(exist_ok=True)
    line = "import json, os, sys; names = ('RANK', 'LOCAL_RANK', 'WORLD_SIZE')\n"
    line += "file = open(f\"{os.environ['RANK']}.json\", 'w'); json.dump([int(os.environ[n]) for n in names], file)\n"
    script.write_text(line, encoding="utf-8")
    written = launch(run_of(DENSE, "h100:8", stack, zero=1 if stack == "megatron" else 3, shard=8), stack)
    done = started(written.text, tmp_path, {"torchrun": '-m torch.distributed.run "$@"'})
    assert done.returncode == 0, done.stderr[-2000:]
    ranks = [json.loads(file.read_text()) for file in sorted(tmp_path.glob("*.json"))]
    assert ranks == [[rank, rank, 8] for rank in range(8)]
