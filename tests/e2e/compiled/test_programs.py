"""Every kind of program, loaded and compiled by the real compilers on the smallest slice that shows what it should."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from chipwise.compiled.worker.process import worker_environment
from patience import PATIENCE_S

CASES, PROGRAMS = (Path(__file__).parent / name for name in ("cases", "programs"))
EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "programs"
tpu = pytest.mark.compiler("tpu")
cuda = pytest.mark.compiler("cuda")
torch = pytest.mark.compiler("tpu", "torch")


def python(*arguments):
    line = [sys.executable, *map(str, arguments)]
    done = subprocess.run(
        line, env=worker_environment(os.environ), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def answers(folder, cases):
    (folder / "cases.json").write_text(json.dumps(cases))
    python(CASES / "loaded.py", folder / "cases.json", folder / "results.json")
    return json.loads((folder / "results.json").read_text())


def case(name, kind="function", folder=CASES, **more):
    data = {"folder": str(folder), **more.pop("data", {})}
    return {"kind": kind, "name": name, "data": data, **more}


ACCEPTED = ("attached", "three_parts", "real_arrays", "captured_constant", "nested", "own_mesh", "already_jitted")
REFUSED = {
    "jax_cases:needs_arguments": "step.example_args",
    "jax_cases:returns_nothing": "(step, args)",
    "jax_cases:string_argument": "functools.partial",
    "jax_cases:bad_axes": "data(3)",
    "jax_cases:two_open_axes": "at most one -1",
    "jax_cases:unknown_axis": "an axis of the mesh: data",
    "jax_cases:no_mesh": 'give "axes"',
    "jax_cases:uneven": "splits evenly",
    "jax_cases:too_few_shardings": "each of the 2 arguments",
    "jax_cases:misspelt_key": "keys step, args, sharding",
    "jax_cases:bad_donation": "0 to 0",
    "jax_cases:no_arguments": "at least one array",
    "jax_cases:absent": "a name jax_cases defines",
    "no_such_module:step": "can be imported",
    "absent.py:step": "no such file",
    "just_a_name": "package.module:function",
}


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    cases = {name: case(f"jax_cases:{name}") for name in ACCEPTED}
    cases |= {name: case(name, until="load") for name in REFUSED}
    cases |= {
        "varying": case("jax_cases:varying", until="lower", data={"choices": {"width": 256}}),
        "no such choice": case("jax_cases:three_parts", until="load", data={"choices": {"width": 256}}),
        "mesh from outside": case("narrow_mlp.py:train", folder=PROGRAMS, until="lower", axes={"data": 4}),
        "mlp": case("narrow_mlp.py:train", folder=PROGRAMS),
        "pallas": case("jax_pallas:matmul", folder=EXAMPLES),
    }
    return answers(tmp_path_factory.mktemp("functions"), cases)


@tpu
@pytest.mark.parametrize("name", ACCEPTED)
def test_what_a_function_may_return(functions, name):
    assert "error" not in functions[name], functions[name]
    assert functions[name]["arguments"] > 0


@tpu
@pytest.mark.parametrize(("name", "told"), REFUSED.items())
def test_a_mistake_is_named_with_what_is_accepted(functions, name, told):
    assert functions[name].get("input"), functions[name]
    assert told in functions[name]["message"]
    assert "\n" not in functions[name]["message"]


@tpu
def test_without_axes_one_device_is_used_and_that_is_said(functions):
    assert functions["attached"]["notes"] == ["one of 4 devices used: give axes and shardings to use all"]


@tpu
def test_shardings_follow_the_structure_of_the_arguments(functions):
    nested = functions["nested"]
    assert nested["mesh"] == {"data": 2, "model": 2}
    assert nested["shards"] == [[8, 128], [8, 128], [8, 128], [8, 64], [16, 128]]


@tpu
def test_a_factory_may_build_its_own_mesh_from_the_devices(functions):
    assert functions["own_mesh"]["shards"] == [[4, 128]]
    assert functions["own_mesh"]["notes"] == []


@tpu
def test_a_jitted_step_keeps_its_donation(functions):
    assert functions["already_jitted"]["aliased"] == functions["already_jitted"]["arguments"]


@tpu
def test_choices_are_passed_to_the_factory_and_varying_shapes_are_told(functions):
    varying = functions["varying"]
    assert varying["shapes"] == [[16, 256]]
    assert (varying["varies"], varying["choices"]) == (["rows: 16, 32"], {"width": [128, 256]})


@tpu
def test_a_choice_the_factory_does_not_take_is_refused(functions):
    assert functions["no such choice"]["message"].startswith("choices.width: 256 is not accepted")


@tpu
def test_a_training_step_on_a_mesh_shares_its_weights_and_donates_them(functions):
    mlp = functions["mlp"]
    assert mlp["mesh"] == functions["mesh from outside"]["mesh"] == {"data": 4}
    assert mlp["shards"][0] == [512 // 4, 256]
    assert mlp["aliased"] == 2 * 2 * 256 * 512 * 4 / 4  # weights and momentum, fp32, a quarter each


@tpu
def test_a_pallas_kernel_of_ones_own_compiles(functions):
    assert "tpu_custom_call" in functions["pallas"]["text"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    python("-c", WRITE_FILES, folder)
    names = ("plain.bin", "open.bin", "sharded.bin", "plain.mlir", "sharded.mlir", "sharded.mlirbc")
    cases = {name: {"kind": "file", "name": str(folder / name)} for name in names}
    cases["sized"] = cases["open.bin"] | {"data": {"sizes": {"b": 4}}}
    cases["fewer devices"] = cases["sharded.bin"] | {"on": "v5e:1"}
    damaged = {
        "cut.bin": (folder / "plain.bin").read_bytes()[:700],
        "words.bin": b"this is not an export",
        "cut.mlir": (folder / "plain.mlir").read_bytes()[:300],
        "cut.mlirbc": (folder / "sharded.mlirbc").read_bytes()[:300],
        "module.hlo": b"HloModule jit_f, is_scheduled=true",
        "empty.bin": b"",
    }
    for name, content in damaged.items():
        (folder / name).write_bytes(content)
        cases[name] = {"kind": "file", "name": str(folder / name)}
    return answers(folder, cases)


WRITE_FILES = """
import io, sys, jax, jax.numpy as jnp
from pathlib import Path
from jax import export
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from chipwise.catalog.names import parse
from chipwise.compiled.targets import target_of
from chipwise.compiled.worker.worker import topology_devices
import numpy as np

folder = Path(sys.argv[1])
f = lambda x, w: {"y": jnp.tanh(x @ w)}
x, w = jax.ShapeDtypeStruct((8, 16), jnp.float32), jax.ShapeDtypeStruct((16, 32), jnp.float32)
save = lambda name, exported: (folder / name).write_bytes(exported.serialize())
save("plain.bin", export.export(jax.jit(f), platforms=["tpu", "cuda", "cpu"])(x, w))
b, = export.symbolic_shape("b")
save("open.bin", export.export(jax.jit(f), platforms=["tpu"])(jax.ShapeDtypeStruct((2 * b, 16), jnp.float32), w))
mesh = Mesh(np.array(topology_devices(target_of(parse("v5e:2x2")))).reshape(2, 2), ("a", "b"))
place = lambda s, spec: jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=NamedSharding(mesh, spec))
sharded = place(x, P("a")), place(w, P(None, "b"))
save("sharded.bin", export.export(jax.jit(f), platforms=["tpu"])(*sharded))
(folder / "plain.mlir").write_text(jax.jit(f).lower(x, w).as_text())
lowered = jax.jit(f).lower(*sharded)
(folder / "sharded.mlir").write_text(lowered.as_text())
out = io.BytesIO()
lowered.compiler_ir("stablehlo").operation.write_bytecode(out)
(folder / "sharded.mlirbc").write_bytes(out.getvalue())
"""


@tpu
@pytest.mark.parametrize("name", ["plain.bin", "plain.mlir", "sized"])
def test_exported_and_stablehlo_files_compile_on_one_device(files, name):
    assert files[name]["shapes"] == [[8, 16], [16, 32]]
    assert "one of 4 devices used" in files[name]["notes"][0]


@tpu
@pytest.mark.parametrize("name", ["sharded.bin", "sharded.mlir", "sharded.mlirbc"])
def test_a_partitioned_file_brings_its_mesh(files, name):
    assert files[name]["mesh"] == {"a": 2, "b": 2}
    assert files[name]["shards"] == [[4, 16], [16, 16]]


@tpu
def test_open_dimensions_ask_for_sizes_and_are_told_as_a_risk(files):
    assert files["open.bin"]["message"].endswith("leaves open: b")
    assert files["sized"]["varies"] == ["b (compiled at 4; every other size compiles again)"]


@tpu
def test_a_file_for_four_devices_is_refused_on_one(files):
    assert "a target with 4 devices" in files["fewer devices"]["message"]


@tpu
@pytest.mark.parametrize("name", ["cut.bin", "words.bin", "cut.mlir", "cut.mlirbc", "module.hlo", "empty.bin"])
def test_a_damaged_file_is_called_so_in_one_line(files, name):
    assert files[name]["error"] == "BrokenFile"
    assert name in files[name]["message"]
    assert "\n" not in files[name]["message"]


TORCH_REFUSED = {
    "custom": ("cases.fast_relu", "custom operation"),
    "branch": ("a branch on a tensor's value", "torch.where"),
    "mask": ("aten.index.Tensor", "fixed shapes"),
}


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    cases = {name: case(f"torch_cases:{name}", "torch", until="load") for name in (*TORCH_REFUSED, "not_a_module")}
    cases |= {
        "cnn training": case("torch_cnn:train", "torch", EXAMPLES, until="lower"),
        "regions": case("torch_cases:regions", "torch"),
        "keywords": case("torch_cases:keywords", "torch"),
        "real": case("torch_cases:reads_a_value", "torch", until="lower"),
    }
    return answers(tmp_path_factory.mktemp("modules"), cases)


@pytest.fixture(scope="module")
def large_modules(tmp_path_factory):
    cases = {
        "transformer": case("torch_transformer:forward", "torch", EXAMPLES),
        "transformer training": case("torch_transformer:train_data_parallel", "torch", EXAMPLES),
        "cnn": case("torch_cnn:forward", "torch", EXAMPLES, axes={"data": 4}),
    }
    return answers(tmp_path_factory.mktemp("large"), cases)


@torch
@pytest.mark.parametrize("name", ["cnn training", "regions", "keywords"])
def test_pytorch_modules_compile_without_weights_in_memory(modules, name):
    assert "error" not in modules[name], modules[name]
    assert not any("took memory" in note for note in modules[name]["notes"])


@torch
@pytest.mark.slow
@pytest.mark.parametrize("name", ["transformer", "transformer training", "cnn"])
def test_large_pytorch_modules_compile_without_weights_in_memory(large_modules, name):
    test_pytorch_modules_compile_without_weights_in_memory(large_modules, name)


@torch
@pytest.mark.slow
def test_a_pytorch_training_step_donates_its_state_and_shards_it_as_asked(large_modules):
    training = large_modules["transformer training"]
    assert (training["mesh"], training["donate"]) == ({"data": 4}, [0, 1, 2])
    assert training["aliased"] > 0.99 * training["outputs"]
    assert training["shards"][-1] == [2, 128]


@torch
@pytest.mark.slow
def test_a_batch_is_split_over_the_first_axis_by_default(large_modules):
    assert large_modules["cnn"]["shards"][-1] == [1, 3, 64, 64]
    assert large_modules["cnn"]["notes"][0].startswith("batch split over data")


@torch
def test_dynamic_shapes_are_told_and_keywords_reach_the_module(modules):
    assert modules["keywords"]["varies"] == ["x.0 (batch)"]


@torch
def test_a_factory_that_reads_values_is_run_for_real(modules):
    assert any("took memory" in note for note in modules["real"]["notes"])


@torch
@pytest.mark.parametrize(("name", "told"), TORCH_REFUSED.items())
def test_what_xla_lacks_is_named_with_its_line(modules, name, told):
    found = modules[name]
    source = (CASES / "torch_cases.py").read_text().splitlines()
    assert found["error"] == "UnsupportedOp"
    assert all(each in found["message"] for each in told)
    file, line = found["source"].split(":")
    assert file == "torch_cases.py"
    assert source[int(line) - 1].strip() in ("return fast_relu(x + 1)", "if x.sum() > 0:", "return x[x > 0].sum()")


@torch
def test_a_factory_without_a_module_is_refused(modules):
    assert "a torch.nn.Module" in modules["not_a_module"]["message"]


@pytest.mark.compiler("torch")
@pytest.mark.slow
def test_the_translation_agrees_with_pytorch_forward_and_backward():
    found = json.loads(python(CASES / "torch_agreement.py").splitlines()[-1])
    assert found["transformer"] < 1e-5
    assert found["cnn"] < 1e-5
    assert found["transformer_gradients"] < 1e-5
    assert max(found["cnn_gradients"]) < 1e-5


@pytest.fixture(scope="module")
def cards(tmp_path_factory):
    mlp = case("narrow_mlp:train", folder=PROGRAMS)
    names = ("t4", "a10g", "a100-80gb", "l4", "h100", "b200", "gb200", "b300", "rtx-pro-6000")
    cases = {name: mlp | {"on": f"{name}:1"} for name in names}
    cases |= {"h100:8": mlp | {"on": "h100:8"}, "v100": mlp | {"on": "v100:8"}}
    cases["words as options"] = mlp | {"on": "h100:1", "options": {"xla_gpu_enable_triton_gemm": "true"}}
    cases["over"] = case("jax_oom:over", folder=EXAMPLES, on="t4:1")
    return answers(tmp_path_factory.mktemp("cards"), cases)


@cuda
@pytest.mark.parametrize("name", ["t4", "a10g", "a100-80gb", "l4", "gb200", "b300", "rtx-pro-6000"])
def test_cards_without_a_table_compile_and_say_that_xla_has_no_times(cards, name):
    assert cards[name]["arguments"] > 0
    assert cards[name]["sol"] == []
    assert any("no time estimates" in note for note in cards[name]["notes"])


@cuda
@pytest.mark.parametrize("name", ["h100", "b200", "h100:8"])
def test_cards_with_a_table_have_speed_of_light_times(cards, name):
    assert sum(seconds for _, seconds in cards[name]["sol"]) > 0
    assert cards[name]["notes"] == []


@cuda
def test_a_step_sharded_over_gpus_takes_its_share_of_memory(cards):
    assert cards["h100:8"]["arguments"] * 8 == cards["h100"]["arguments"]
    assert any(name.startswith("all-gather") for name, _ in cards["h100:8"]["sol"])


@cuda
def test_options_given_as_words_reach_the_gpu_compiler(cards):
    assert "error" not in cards["words as options"]


@cuda
def test_cards_that_cuda_13_dropped_are_refused(cards):
    assert "Pascal and Volta" in cards["v100"]["message"]


@cuda
def test_the_gpu_compiler_itself_never_refuses_for_memory(cards):
    """So whoever asks compares with the card: nothing here raises."""
    assert cards["over"]["arguments"] + cards["over"]["outputs"] > 15.75 * 2**30


def test_naming_programs_imports_no_framework():
    code = "import sys, chipwise.compiled.loaders, chipwise.compiled.gpu; print(*sys.modules)"
    assert not {"jax", "torch", "torchax", "jaxlib"} & set(python("-c", code).split())
