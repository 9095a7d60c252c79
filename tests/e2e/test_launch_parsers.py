"""Launches are read by the tools' own parsers: each script runs in bash, where stand-ins take down what it starts."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from math import prod
from typing import Any

import pytest
import yaml
from real_parsers import PINS, refusals

import chipwise as cw
from chipwise.catalog import load, parse
from chipwise.errors import Refusal
from chipwise.launch.described import Replicas, TrainingRun
from chipwise.launch.launch import Launch, launch
from chipwise.launch.tools import accelerator_names, cloud_tools, tools
from chipwise.predict.estimate import Estimate
from chipwise.predict.model.layouts import Layout
from chipwise.workload import load_workload
from chipwise.workload.load import load_serving

pytestmark = pytest.mark.slow
PROGRAMS = ("vllm", "torchrun", "python", "python3", "trtllm-serve", "accelerate", "pip", "git")
# what a machine of a cloud, or whoever starts a script on many hosts, sets
HOSTS = {
    "NODE_RANK": "1",
    "MASTER_ADDR": "10.0.0.1",
    "SKYPILOT_NODE_RANK": "1",
    "SKYPILOT_NODE_IPS": "10.0.0.1\n10.0.0.2",
    "SKYPILOT_NUM_NODES": "2",
    "SKYPILOT_NUM_GPUS_PER_NODE": "8",
    "DSTACK_NODE_RANK": "1",
    "DSTACK_NODES_NUM": "2",
    "DSTACK_GPUS_PER_NODE": "8",
    "DSTACK_MASTER_NODE_IP": "10.0.0.1",
    "OUTPUT": "/output",
    "MAXTEXT": "/maxtext",
    "DATASET": "some/dataset",
    "CHECKPOINT": "/checkpoint",
}
# whose own parser does not install here; tests/unit/test_launch.py holds these to recorded options
RECORDED = {
    "tensorrt-llm": "PyPI has no wheel of it (1.2.1, 2026-11-17: an sdist alone)",
}
OTHERS = {"jetstream": "maxtext"}  # whose arguments another tool's parser reads
DAY = Estimate(86_400.0, 80_000.0, 90_000.0, "modelled")


@dataclass(frozen=True)
class Started:
    """What a script starts, and the config file that it wrote before."""

    words: list[str]
    config: str


def started(script: str, folder: Any) -> Started:
    """Run a script with stand-ins for the programs it starts; the last that was started."""
    bin_folder, work = folder / "bin", folder / "work"
    bin_folder.mkdir(exist_ok=True)
    work.mkdir(exist_ok=True)
    for name in PROGRAMS:
        stand_in = bin_folder / name
        words = f"import json, sys; json.dump(['{name}', *sys.argv[1:]], open('{work}/started.json', 'w'))"
        stand_in.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{words}" "$@"\n', encoding="utf-8")
        stand_in.chmod(0o755)
    for left in work.iterdir():
        left.unlink()
    env = {**os.environ, **HOSTS, "PATH": f"{bin_folder}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-eu"], input=script, text=True, env=env, cwd=work, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    configs = [file.read_text(encoding="utf-8") for file in work.glob("*.yml")]
    return Started(json.loads((work / "started.json").read_text()), "".join(configs))


def training(text: str, on: str, stack: str, **layout: Any) -> TrainingRun:
    acc = parse(on)
    return TrainingRun(load_workload(text), acc, load().stacks[stack], Layout(**{"dp": acc.count, **layout}), DAY)


def serving(text: str, on: str, replicas: int, **axes: int) -> Replicas:
    acc, split = parse(on), {"tp": 1, "pp": 1, "dp": 1, "ep": 1, **axes}
    shape = (replicas, *split.values())
    return Replicas(load_serving(text), acc, load().stacks["vllm"], *shape, 256, 8192, 16, True, "bf16")


def load_chat(name: str, **changes: Any) -> Any:
    return cw.load(name, rate=5, input_len=1000, output_len=300, **changes)


@cache
def decisions() -> dict[str, Callable[[str], Launch]]:
    """Launches by tool of what chipwise decides, and of some axes that it seldom picks: names say what they are of."""
    dense = cw.load("llama-3.1-8b", steps=1000, batch=512, sequence=8192)
    moe = cw.load("mixtral-8x7b", steps=10, batch=512, sequence=4096)
    adapters = cw.load("llama-3.1-8b", steps=100, batch=64, sequence=4096, lora=16)
    decided = [
        ("train: dense on h100", cw.predict(dense, on="h100:64")),
        ("train: dense on v5p", cw.predict(dense, on="v5p:64")),
        ("train: MoE on h100", cw.predict(moe, on="h100:64")),
        ("train: MoE on v5p", cw.predict(moe, on="v5p:64")),
        ("train: Qwen on h200", cw.predict(cw.load("qwen3-32b", steps=10, batch=512, sequence=4096), on="h200:32")),
        ("train: LoRA on h100", cw.predict(adapters, on="h100:8")),
        ("train: LoRA on one GPU", cw.predict(adapters, on="h100:1")),
        ("train: LoRA on v6e", cw.predict(adapters, on="v6e:16")),
        ("serve: dense on h200", cw.capacity(load_chat("qwen3-32b"), on="h200:8")),
        ("serve: fp8 MoE on h200", cw.capacity(load_chat("deepseek-v3"), on="h200:16")),
        ("serve: mxfp4 MoE on h100", cw.capacity(load_chat("gpt-oss-120b"), on="h100:8")),
        ("serve: an FP8 checkpoint", cw.capacity(load_chat("Qwen/Qwen3-32B-FP8"), on="h200:8")),
        ("serve: dense on v6e", cw.capacity(load_chat("llama-3.1-70b"), on="v6e:8")),
        ("serve: speech", cw.capacity(cw.load("whisper-large-v3", rate=5, output_len=200), on="l4:1")),
        ("serve: embedding", cw.capacity(cw.load("bge-m3", rate=50, input_len=300, stack="vllm"), on="l4:1")),
    ]
    llama = "model: llama-3.1-8b\ntrain: {steps: 1000, global_batch: 1024, sequence: 8192}"
    deep = "model: deepseek-v3\ntrain: {steps: 1000, global_batch: 1024, sequence: 4096, precision: fp8}"
    chat = "model: llama-3.1-70b\nserve: {input: 1000, output: 200, arrival: {rate: 5}, kv_precision: fp8}"
    experts = "model: deepseek-v3\nserve: {input: 1000, output: 200, arrival: {rate: 5}}"
    made = [
        ("train: tp x pp on h100", training(llama, "h100:64", "megatron", dp=8, tp=4, pp=2, vpp=2, zero=1, shard=8)),
        ("train: FSDP on h100", training(llama, "h100:64", "torchtitan", zero=3, shard=8, recompute="full")),
        ("train: cp on h100", training(llama, "h100:64", "torchtitan", dp=32, cp=2, zero=3, shard=32)),
        ("train: fp8 MoE on h200", training(deep, "h200:256", "megatron", dp=64, pp=4, ep=64, zero=1, shard=64)),
        ("train: two slices", training(llama, "2*v5e:16x16", "maxtext", zero=3, shard=256, recompute="full")),
        ("train: pp on v5p", training(llama, "v5p:64", "maxtext", dp=16, pp=4, recompute="selective")),
        ("train: FSDP and tp on v7x", training(llama, "v7x:64", "maxtext", dp=16, tp=4, zero=3, shard=16)),
        ("train: MaxText on h100", training(llama, "h100:64", "maxtext", zero=3, shard=64)),
        ("serve: two hosts", serving(chat, "h100:16", 1, tp=8, pp=2)),
        ("serve: attention groups on two hosts", serving(experts, "h200:16", 1, dp=16, ep=16)),
        ("serve: tp x dp", serving(experts, "b200:8", 1, tp=4, dp=2, ep=8)),
    ]
    launches: dict[str, Callable[[str], Launch]] = {name: result.launch for name, result in decided}
    return launches | {name: partial(launch, run) for name, run in made}


@cache
def launches_of(tool: str) -> dict[str, Launch]:
    """Those that a tool has, by name."""
    work = {**tools(), **cloud_tools()}[tool].work if tool in tools() else ""
    launches = {}
    for name, launched in decisions().items():
        if work and not name.startswith(work):
            continue
        try:
            launches[name] = launched(tool)
        except Refusal:
            continue
    return launches


def held(tool: str, cases: list[Any], names: list[str], wrong: str, **environment: str) -> None:
    """The parser takes every case but the last, which it refuses for the wrong word in it."""
    answers = refusals(tool, cases, **environment)
    assert not any(answers[:-1]), {name: answer for name, answer in zip(names, answers[:-1], strict=True) if answer}
    assert wrong in answers[-1], f"{tool}'s parser takes {wrong}, or says no word of it: {answers[-1]}"


# ------------------------------------------------------------------ the stacks' own programs


def test_every_tool_has_a_parser_or_a_reason():
    named = set(PINS) | set(RECORDED) | set(OTHERS)
    assert set(tools()) | set(cloud_tools()) <= named
    for tool in {**tools(), **cloud_tools()}.values():
        pins = PINS.get(OTHERS.get(tool.id, tool.id), {})
        for pin in (pins.get("newer") or pins.get("packages") or [])[:1]:
            assert pin.split("==")[1] == tool.version, f"{tool.id} is written for {tool.version}, and {pin} is tried"


@pytest.mark.parametrize(
    ("tool", "wrong"),
    [
        ("vllm", ["--zero-stage", "2"]),
        ("sglang", ["--attention-groups", "8"]),
        ("torchtitan", ["--parallelism.zero_degree", "8"]),
        ("megatron", ["--zero-stage", "3"]),
        ("trl", ["--lora_rank_of", "8"]),
    ],
)
def test_commands_are_taken_by_the_tools_own_parsers(tool, wrong, tmp_path):
    launches = launches_of(tool)
    assert len(launches) >= (2 if tool == "trl" else 6), list(launches)
    words = [started(written.text, tmp_path).words for written in launches.values()]
    if tool == "torchtitan":  # MODULE stands for a config that the reader has
        words = [each for each in words if "MODULE" not in each]
    held(tool, [*words, [*words[0], *wrong]], [str(each) for each in words], wrong[0])


@pytest.mark.parametrize("tool", ["maxtext", "jetstream"])
def test_maxtext_takes_configs_and_words(tool, tmp_path):
    """By the number of devices, which JAX has to be told before it starts."""
    by_devices: dict[int, list[tuple[str, dict[str, Any]]]] = {}
    for name, written in launches_of(tool).items():
        ran = started(written.text, tmp_path)
        first = next(i for i, word in enumerate(ran.words) if word.endswith(".yml"))
        sizes = yaml.safe_load(ran.config) if ran.config else dict(w.split("=", 1) for w in ran.words if "=" in w)
        axes = {axis: [int(n) for key, n in sizes.items() if key.startswith(f"{axis}_")] for axis in ("ici", "dcn")}
        slices, words = prod(axes["dcn"]), ran.words[first + 1 :]
        case = {"config": ran.config, "words": words, "slices": slices}
        by_devices.setdefault(slices * prod(axes["ici"]), []).append((name, case))
    assert by_devices
    for devices, cases in by_devices.items():
        wrong = {**cases[0][1], "words": [*cases[0][1]["words"], "ici_fsdp_parallelisms=2"]}
        held(
            "maxtext",
            [*(case for _, case in cases), wrong],
            [name for name, _ in cases],
            "ici_fsdp_parallelisms",
            XLA_FLAGS=f"--xla_force_host_platform_device_count={devices}",
        )


# ------------------------------------------------------------------ tasks


def tasks_of(tool: str) -> tuple[list[str], list[dict[str, Any]]]:
    launches = launches_of(tool)
    assert len(launches) >= 6
    return list(launches), [yaml.safe_load(written.text) for written in launches.values()]


def test_dstack_takes_tasks_and_services():
    names, tasks = tasks_of("dstack")
    held("dstack", [*tasks, {**tasks[0], "gpus": 8}], names, "gpus")


def test_skypilot_takes_tasks(tmp_path):
    names, tasks = tasks_of("skypilot")
    file = tmp_path / "catalogs.json"
    file.write_text(json.dumps(catalogs()), encoding="utf-8")
    held("skypilot", [*tasks, {**tasks[0], "gpus": 8}], names, "gpus", CATALOGS=str(file))
    wrong = {**tasks[0], "resources": {**tasks[0]["resources"], "infra": "nowhere/here"}}
    assert "nowhere/here" in refusals("skypilot", [wrong], CATALOGS=str(file))[0]


def catalogs() -> dict[str, str]:
    """The offers of clouds that SkyPilot knows, in the columns of its catalogs."""
    columns = ("InstanceType", "AcceleratorName", "AcceleratorCount", "vCPUs", "MemoryGiB", "Price", "Region")
    columns += ("GpuInfo", "SpotPrice", "AvailabilityZone")
    tables: dict[str, io.StringIO] = {}
    clouds = cloud_tools()["skypilot"].clouds
    for o in load().offers:
        name = accelerator_names().get(o.chip_id, {}).get("skypilot", "")
        if o.cloud not in clouds or not name:
            continue
        table = tables.setdefault(clouds[o.cloud], io.StringIO())
        writer = csv.writer(table)
        if not table.tell():
            writer.writerow(columns)
        instance = "" if load().chips[o.chip_id].family == "tpu" else o.instance
        writer.writerow([instance, name, o.chips, 8, 64, 1.0, o.region, "", "", f"{o.region}-a"])
    names = sorted({names["skypilot"] for names in accelerator_names().values() if names["skypilot"]})
    known = "AcceleratorName,Clouds\n" + "".join(f"{name},\n" for name in names)
    return {f"{cloud}/vms.csv": table.getvalue() for cloud, table in tables.items()} | {
        "common/accelerators.csv": known
    }
