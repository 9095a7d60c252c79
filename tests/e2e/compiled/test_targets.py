"""Real topologies: every slice of the catalog exists for libtpu; several slices and GPUs compile too."""

import json
import os
import subprocess
import sys
from ctypes.util import find_library
from importlib.metadata import distributions

import pytest
from real_jobs import HERE, job

from chipwise.compiled.cache import Cache
from chipwise.compiled.compiler import compile_job, module_text
from chipwise.compiled.job import Compiled, Refused
from chipwise.compiled.worker.process import worker_environment
from patience import PATIENCE_S


@pytest.mark.compiler("tpu")
def test_libtpu_knows_every_slice_of_the_catalog(tmp_path):
    line = [sys.executable, "-P", str(HERE / "topologies.py"), str(tmp_path / "found.json")]
    subprocess.run(line, env=worker_environment(os.environ), check=True, capture_output=True, timeout=PATIENCE_S)
    found = json.loads((tmp_path / "found.json").read_text())
    assert len(found) > 50
    assert {name: counts for name, counts in found.items() if counts[0] != counts[1]} == {}


@pytest.mark.compiler("tpu")
def test_two_slices_reduce_over_the_data_centre_network(tmp_path):
    cache = Cache(tmp_path / "cache")
    asked = job("odd:summed", on="2xv5e:4", mesh={"data": 8})
    assert isinstance(compile_job(asked, cache=cache), Compiled)
    assert "Megascale" in module_text(asked, cache)


@pytest.mark.compiler("cuda")
def test_a_gpu_refusal_is_put_into_words(tmp_path):
    refused = compile_job(job("refused:cuda_kernel", on="h100:1"), cache=Cache(tmp_path / "cache"))
    assert isinstance(refused, Refused)
    assert "custom kernel: my_cuda_kernel" in refused.reason


@pytest.mark.compiler("cuda")
def test_an_operation_of_nvidias_libraries_compiles_where_they_are_and_names_the_missing_one(tmp_path):
    made = compile_job(job("refused:eig", on="h100:1"), cache=Cache(tmp_path / "cache"))
    there = any(each.name == "nvidia-cusolver" for each in distributions()) or find_library("cusolver")
    assert isinstance(made, Compiled) if there else "library (cusolver" in made.reason


@pytest.mark.compiler("cuda")
def test_an_option_of_gpus_may_be_written_as_a_word(tmp_path):
    asked = job("odd:plain", on="h100:1", options={"xla_gpu_enable_triton_gemm": "true"})
    outcome = compile_job(asked, cache=Cache(tmp_path / "cache"))
    assert isinstance(outcome, Compiled)
    assert outcome.memory["arguments"] == 256 * 256 * 4
