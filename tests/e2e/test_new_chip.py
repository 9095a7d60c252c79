"""A chip or a serving stack that nobody has heard of is added by data files alone."""

import json
import os
import re
import subprocess
import sys

import pytest
import yaml
from command import EXAMPLE, ROOT, chipwise_alone
from invented_chips import invented_catalog

SERVED = ROOT / "examples" / "llama-3.1-70b-serve.yaml"
NEW = ("v8", "mi400", "r100")


@pytest.fixture(scope="module")
def env(tmp_path_factory):
    """Variables of a process whose catalog has the invented entries."""
    return os.environ | {"CHIPWISE_CATALOG": str(invented_catalog(tmp_path_factory.mktemp("catalog") / "data"))}


def answer(env, *words):
    done = chipwise_alone(*words, "-o", "json", env=env)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return json.loads(done.stdout)


def python(env, code):
    """What a program prints as JSON, in a process with the invented catalog."""
    run = [sys.executable, "-c", f"import json\n{code}"]
    return json.loads(subprocess.run(run, env=env, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("chip", NEW)
def test_a_step_is_predicted_from_the_family_and_that_is_said(env, chip):
    step = answer(env, "predict", EXAMPLE, "--on", f"{chip}:64")
    seconds = step["step_seconds"]
    assert step["lower_bound_seconds"] < seconds["low"] < seconds["value"] < seconds["high"]
    design = {"mi400": "cdna5", "r100": "rubin"}.get(chip, chip)
    assert seconds["evidence"] == "bounded"
    assert seconds["because"] == f"few or no published training steps on {design} chips to learn from"


def test_kernels_of_a_new_chip_are_those_of_its_family(env):
    code = """
from chipwise.catalog import load
from chipwise.catalog.calibration import load_calibration
from chipwise.predict.site import kernel_coefficients
from dataclasses import asdict
calibration, chips = load_calibration(bench=False), load().chips
print(json.dumps({chip: asdict(kernel_coefficients(chips[chip], "bf16", calibration)) == asdict(
    kernel_coefficients(chips[chip], "bf16", calibration).__class__(**calibration.training.kernels[family]["any"]))
    for chip, family in (("v8", "family:tpu"), ("mi400", "family:gpu"), ("r100", "family:gpu"))}))
"""
    assert python(env, code) == dict.fromkeys(NEW, True)


def test_a_comparison_ranks_them_among_the_others(env):
    rows = answer(env, "compare", EXAMPLE, "--on", ",".join((*NEW, "h100")))["rows"]
    assert {row["accelerators"]["chip"] for row in rows} == {*NEW, "h100"}
    assert all(row["ondemand"]["usd"]["value"] > 0 for row in rows)


def test_every_chip_is_compared_where_none_is_named(env):
    rows = answer(env, "compare", EXAMPLE)["rows"]
    assert set(NEW) <= {row["accelerators"]["chip"] for row in rows}


def test_compilers_are_asked_for_them_by_their_own_names(env):
    code = """
from dataclasses import asdict
from chipwise.catalog import parse
from chipwise.compiled.gpu import target_config
from chipwise.compiled.reference import recipe, splash_block
from chipwise.compiled.targets import target_of
tpu, gpu = parse("v8:16"), parse("r100:16")
print(json.dumps([asdict(target_of(tpu)), recipe(tpu.chip), splash_block(tpu.chip), asdict(target_of(gpu)),
                  target_config("r100")]))
"""
    tpu, options, block, gpu, config = python(env, code)
    assert (tpu["platform"], tpu["topology"], tpu["devices"]) == ("tpu", "tpu8:2x2x4", 16)
    assert options["xla_tpu_scoped_vmem_limit_kib"] == "65536" and options["xla_enable_async_all_gather"] == "true"
    assert block == 1024
    assert (gpu["platform"], gpu["topology"]) == ("cuda", "2x1x8")
    assert "major: 13" in config and "shared_memory_per_core: 262144" in config


def test_a_chip_without_such_a_compiler_is_told_which_have_one(env):
    done = chipwise_alone("check", EXAMPLE, "--on", "mi400:8", env=env)
    assert done.returncode == 2 and "v7x, v8, or an NVIDIA GPU" in done.stderr and "AMD Instinct MI400" in done.stderr


def test_kubernetes_gets_their_labels_hosts_and_resources(env, tmp_path):
    pools, job = tmp_path / "pools.yaml", tmp_path / "job.yaml"
    pools.write_text("""
backends: {kubernetes: {namespace: training}}
pools:
  - {name: cubes, backend: kubernetes, chip: v8, count: 64, price: 5, shapes: [2x2x1, 2x2x2]}
  - {name: hosts, backend: kubernetes, chip: mi400, count: 64, price: 6}
""")
    variant = {"chips": 8, "image": "i", "command": ["python", "train.py"]}
    job.write_text(
        json.dumps(
            {"name": "j", "variants": {"tpu": variant, "gpu": variant}, "estimates": {"v8": "2h", "mi400": "1h"}}
        )
    )
    rendered = answer(env, "jobs", "render", job, "--pools", pools)["rendered"]
    manifests = {each["pool"]: yaml.safe_load(each["text"]) for each in rendered if each["text"]}
    (group,) = manifests["cubes"]["spec"]["replicatedJobs"]
    slice_ = group["template"]["spec"]
    assert (slice_["parallelism"], slice_["completions"]) == (2, 2)
    pod = slice_["template"]["spec"]
    assert pod["nodeSelector"] == {
        "cloud.google.com/gke-tpu-accelerator": "tpu8-slice",
        "cloud.google.com/gke-tpu-topology": "2x2x2",
    }
    assert pod["containers"][0]["resources"]["limits"] == {"google.com/tpu": "4"}
    host = manifests["hosts"]["spec"]["template"]["spec"]
    assert host["containers"][0]["resources"]["limits"] == {"amd.com/gpu": "8"}
    assert [each["key"] for each in host["tolerations"]] == ["amd.com/gpu"]


def test_what_a_runtime_calls_it_is_recognized(env):
    code = """
from chipwise.bench.file import chip_named
print(json.dumps([chip_named("tpu", "TPU8 whole"), chip_named("rocm", "AMD Instinct MI400"), chip_named("tpu", "TPU v5")]))
"""
    assert python(env, code) == ["v8", "mi400", "v5p"]


@pytest.mark.parametrize("on", ["mi400:8", "v8:8", "h200:8"])
def test_a_new_stack_serves_with_its_own_defaults(env, on):
    service = answer(env, "serving", "simulate", SERVED, "--on", on, "--stack", "flume", "--rate", "1")["service"]
    assert service["stack"] == "flume"
    assert service["settings"] == {"max_batch": 48, "chunk": 2048, "block": 32, "mixed": False, "reserve": True}
    tp = service["split"]["tp"]
    assert service["flags"] == f"flume run meta-llama/Llama-3.1-70B --split {tp} --at-once 48 --chunk 2048"


def test_its_share_of_memory_is_what_the_cache_gets(env):
    words = ("serving", "simulate", SERVED, "--on", "h200:8", "--rate", "1", "--tp", "4")
    half, usual = (answer(env, *words, "--stack", stack)["service"]["cache_sequences"] for stack in ("flume", "vllm"))
    assert half < 0.6 * usual


def test_without_the_variable_the_catalog_is_the_packages_own():
    done = chipwise_alone("predict", EXAMPLE, "--on", "mi400:8")
    assert done.returncode == 2 and "unknown name 'mi400'" in done.stderr


def test_a_folder_that_is_no_catalog_is_refused_in_one_line(tmp_path):
    done = chipwise_alone("chips", env=os.environ | {"CHIPWISE_CATALOG": str(tmp_path)})
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert "CHIPWISE_CATALOG" in done.stderr and "a folder with every file of the catalog" in done.stderr


@pytest.mark.parametrize(
    ("file", "before", "after", "said"),
    [
        ("chips.toml", 'vendor = "', 'seller = "', r"chips\.toml: '[\w-]+' .*KeyError: 'vendor'"),
        ("figures.csv", ",memory_bytes,", ",memory,", r"chips\.toml: '[\w-]+' .*KeyError: 'memory_bytes'"),
        ("offers.csv", ",8,", ",none,", r"offers\.csv: '[\w-]+' .*ValueError"),
        ("stacks.toml", "[[stack]]", "[stack]", r"stacks\.toml' .*expected tables \[\[stack\]\]|TOML"),
    ],
)
def test_an_entry_that_lacks_something_is_named_in_one_line(tmp_path, file, before, after, said):
    catalog = invented_catalog(tmp_path / "data")
    text = (catalog / file).read_text()
    assert before in text
    (catalog / file).write_text(text.replace(before, after, 1))
    done = chipwise_alone("chips", "v5e", env=os.environ | {"CHIPWISE_CATALOG": str(catalog)})
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1) and re.search(said, done.stderr), done
