"""Real messages of the tracers and compilers, turned into words: what, where, what to change."""

from pathlib import Path

import pytest
from real_jobs import PROGRAMS, compile_together

from chipwise.compiled.job import Compiled, Refused

pytestmark = pytest.mark.compiler("tpu")

# label -> (stage, words of the reason, op, words of the change); the line to blame carries "# here".
JAX = {
    "branch": ("trace", "data-dependent control flow", "bool(array)", "jax.lax.cond"),
    "mask": ("trace", "dynamic shape", "x[mask]", "jnp.where"),
    "nonzero": ("trace", "dynamic shape", "jnp.nonzero", "size="),
    "arange": ("trace", "dynamic shape", "jnp.arange", "static_argnums"),
    "python_range": ("trace", "dynamic shape", "int(array)", "fori_loop"),
    "zeros": ("trace", "dynamic shape", "int(array)", "static_argnums"),
    "numpy_call": ("trace", "NumPy", "numpy", "jax.numpy"),
    "shapes": ("trace", "got (256,) and (3,)", "", "shapes"),
    "eig": ("trace", "unsupported operation: eig does not exist for TPU", "eig", "host"),
    "psum": ("trace", "axis model", "collective", "shard_map"),
    "cuda_kernel": ("compile", "custom kernel: my_cuda_kernel", "my_cuda_kernel", "Pallas"),
    "raises": ("import", "the data folder is not mounted", "", "line"),
    "twice": ("trace", "axis twice", "", "once"),
    "wrong_axis": ("trace", "axis model, the mesh has ('data',)", "", "mesh"),
    "needs_absent": ("import", "needs the module a_module_nobody_has", "", "install a_module_nobody_has"),
    "ends": ("import", "sys.exit(3)", "", "__main__"),
    "odd_block": ("trace", "Pallas block of (7, 5)", "_double", "multiples of 8 and 128"),
    "sort_kernel": ("trace", "sort can't be used inside a Pallas TPU kernel", "sort", "outside the kernel"),
    "large_block": (
        "memory",
        "needs 32.0 MiB of on-chip memory (VMEM); 16.0 MiB",
        "jit(_large_block)/pallas_call",
        "smaller blocks",
    ),
    "large_scratch": ("memory", "needs 512 MiB of on-chip memory (VMEM); 128 MiB", "pallas_call", "smaller blocks"),
    "fft_complex128": ("compile", "complex128 has no fft", "fft", "complex64"),
    "indivisible": ("trace", "6 % 4 != 0", "", "multiple of 4"),
    "two_meshes": ("trace", "different devices", "", "one mesh"),
    "without_shapes": ("program", "without_shapes takes x", "", "example_args"),
    "not_callable": ("program", "int 3", "", "(step, args)"),
    "no_module": ("import", "nothing_here:make", "", "can be imported from"),
    "no_attribute": ("program", "refused:nothing_here", "", "branch"),
    "broken_syntax": ("import", "not valid Python", "", "imported"),
    "unknown_option": ("compile", "no option xla_tpu_nothing_here", "xla_tpu_nothing_here", "spelling"),
    "option_word": ("compile", "must either be '' or 'premsa'", "xla_tpu_enable_slack_in_trough", "value"),
    "option_needs": ("compile", "requires sparse core", "", "xla_tpu_enable_latency_hiding_layer_scheduler"),
    "option_value": ("compile", "'abc' is not a value it takes", "xla_tpu_scoped_vmem_limit_kib", "value"),
    "mesh": ("program", "data(3)", "", "4 devices"),
    "garbled_text": ("import", "garbled.mlir", "", "valid StableHLO module"),
    "garbled_bytes": ("import", "garbled.bin", "", "jax.export"),
    "absent_file": ("import", "absent.mlir", "", "a file that exists"),
}
# Neither the traceback nor the message leads to the line.
UNPLACED = {
    *("sort_kernel", "indivisible", "two_meshes", "without_shapes", "not_callable"),
    *(
        "no_module",
        "no_attribute",
        "broken_syntax",
        "unknown_option",
        "option_value",
        "option_word",
        "option_needs",
        "mesh",
    ),
    *("garbled_text", "garbled_bytes", "absent_file"),
}
SLICE = {"on": "v5e:2x2"}
CASES = {
    **{label: (f"refused:{label}", {}) for label in JAX},
    **{label: (f"refused:{label}", SLICE) for label in ("indivisible", "twice", "wrong_axis", "two_meshes")},
    **{label: (f"{label}:make", {}) for label in ("needs_absent", "ends", "broken_syntax")},
    "no_module": ("nothing_here:make", {}),
    "no_attribute": ("refused:nothing_here", {}),
    "unknown_option": ("refused:plain", {"options": {"xla_tpu_nothing_here": "1"}}),
    "option_value": ("refused:plain", {"options": {"xla_tpu_scoped_vmem_limit_kib": "abc"}}),
    "option_word": ("refused:plain", {"options": {"xla_tpu_enable_slack_in_trough": "true"}}),
    "option_needs": ("refused:plain", {"options": {"xla_tpu_enable_latency_hiding_layer_scheduler": "true"}}),
    "mesh": ("refused:plain", {**SLICE, "mesh": {"data": 3}}),
}
MEMORY = ("one_percent_too_large", "activations", "fits_by_one_percent")
WIDE = ("float64", "narrowed")


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("outcomes")
    syntax = folder / "broken_syntax.py"
    syntax.write_text("def make(:\n    pass\n")
    cases = CASES | {label: (f"refused:{label}", {}) for label in (*MEMORY, *WIDE)}
    cases["broken_syntax"] = ("broken_syntax:make", {"folder": folder})
    (folder / "garbled.mlir").write_text("module @m { func.func @main(%x: tensor<8x")
    (folder / "garbled.bin").write_bytes(bytes(range(256)) * 8)
    files = {"garbled_text": "garbled.mlir", "garbled_bytes": "garbled.bin", "absent_file": "absent.mlir"}
    cases |= {label: (str(folder / file), {"kind": "file"}) for label, file in files.items()}
    return compile_together(cases, folder)


def blamed(source):
    """Whether the line named is one of those marked in the programs."""
    file, _, number = source.rpartition(":")
    path = PROGRAMS / Path(file).name
    return path.is_file() and path.read_text().splitlines()[int(number) - 1].endswith("# here")


@pytest.mark.parametrize("label", JAX)
def test_a_refusal_says_what_where_and_what_to_change(outcomes, label):
    refused = outcomes[label]
    stage, reason, op, change = JAX[label]
    assert isinstance(refused, Refused)
    assert (refused.stage, refused.op) == (stage, op)
    assert reason in refused.reason
    assert "\n" not in refused.reason
    assert change in refused.change
    assert blamed(refused.source) == (label not in UNPLACED), refused.source


def test_a_program_out_of_memory_by_one_percent_says_both_figures(outcomes):
    refused = outcomes["one_percent_too_large"]
    assert (refused.stage, refused.repeatable) == ("memory", True)
    assert refused.hbm_available == pytest.approx(15.75 * 2**30)
    assert refused.hbm_needed / refused.hbm_available == pytest.approx(1.01, abs=0.002)
    assert "% too much" in refused.reason
    assert "args[0] float32" in refused.detail


def test_one_percent_less_than_the_memory_compiles(outcomes):
    fits = outcomes["fits_by_one_percent"]
    assert isinstance(fits, Compiled)
    assert fits.memory["arguments"] + fits.memory["outputs"] == pytest.approx(0.99 * 15.75 * 2**30, rel=0.002)


def test_activations_out_of_memory_name_the_arguments_share(outcomes):
    refused = outcomes["activations"]
    assert refused.stage == "memory"
    assert refused.hbm_needed > 4 * refused.hbm_available
    assert "arguments of one device: 1.19 GiB" in refused.detail
    assert "jax.checkpoint" in refused.change


def test_float64_compiles_and_is_said_to_be_slow(outcomes):
    assert any("software" in note for note in outcomes["float64"].notes)


def test_float64_without_x64_is_said_to_be_narrowed(outcomes):
    (note,) = outcomes["narrowed"].notes
    assert note.startswith("float64 is computed as float32")
    assert "refused.py:" in note


def test_errors_of_the_users_own_python_are_not_kept(outcomes):
    kept = {label for label in JAX if outcomes[label].repeatable}
    assert {"branch", "cuda_kernel", "unknown_option", "fft_complex128"} <= kept
    assert not kept & {"raises", "needs_absent", "ends", "shapes", "no_module", "mesh", "broken_syntax"}


def test_the_traceback_is_shortened_to_the_users_frames(outcomes):
    detail = outcomes["raises"].detail
    assert "raise RuntimeError" in detail
    assert "importlib" not in detail
    assert "chipwise/compiled" not in detail


TORCH = {
    "branch": ("data-dependent control flow", "torch.where"),
    "selected": ("aten.index.Tensor", "fixed shapes"),
    "custom": ("chipwise_test.scale", "custom operation"),
}


@pytest.fixture(scope="module")
def torch_outcomes(tmp_path_factory):
    cases = {label: (f"refused_torch:{label}", {"kind": "torch"}) for label in (*TORCH, "double")}
    return compile_together(cases, tmp_path_factory.mktemp("outcomes"))


@pytest.mark.compiler("torch")
@pytest.mark.parametrize("label", TORCH)
def test_a_torch_module_that_can_not_be_exported_says_which_line(torch_outcomes, label):
    refused = torch_outcomes[label]
    reason, change = TORCH[label]
    assert refused.stage == "export"
    assert reason in refused.reason
    assert change in refused.change
    assert blamed(refused.source), refused.source


@pytest.mark.compiler("torch")
def test_a_torch_module_in_float64_is_said_to_be_slow(torch_outcomes):
    assert any("float64" in note for note in torch_outcomes["double"].notes)
