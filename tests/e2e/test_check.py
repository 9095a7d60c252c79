"""chipwise check as people run it: real compilers, small programs."""

import json
import shlex

import pytest
from command import ROOT, chipwise, said

from toolchains import STATES, USABLE

PROGRAMS = "examples/programs"
NARROW = "tests/e2e/compiled/programs/narrow_mlp.py"  # compiles in seconds
GENERATIONS = "v5e:2x2,v5p:2x2x1,v6e:2x2,v7x:2x2x1"


def checked(program, on, *more, status=0):
    """The JSON of a check, which must leave with `status` and say nothing on stderr."""
    done = chipwise("check", program, "--on", on, "-o", "json", *more)
    assert (done.returncode, said(done.stderr)) == (status, []), done.stderr + done.stdout[-2000:]
    return json.loads(done.stdout)


def one(program, on, *more, status=0):
    (row,) = checked(program, on, *more, status=status)["rows"]
    return row


@pytest.mark.compiler("tpu")
@pytest.mark.parametrize(
    ("program", "on"),
    [
        (NARROW, "v5e:2x2,v6e:2x2"),
        pytest.param(f"{PROGRAMS}/jax_mlp.py", GENERATIONS, marks=pytest.mark.slow),
    ],
    ids=["narrow", "four generations"],
)
def test_a_sharded_step_compiles_for_generations_and_the_second_check_compiles_nothing(program, on):
    first = checked(f"{program}:train", on)
    assert first["ok"] and [row["accelerators"]["name"] for row in first["rows"]] == on.split(",")
    for row in first["rows"]:
        step, memory = row["step_seconds"], row["memory_bytes"]
        assert row["compiles"] and row["fits"] and step["evidence"] == "compiled"
        assert 0 < step["low"] <= step["value"] <= step["high"]
        assert sum(row["by_class_seconds"].values()) == pytest.approx(step["value"])
        assert memory["total"] == pytest.approx(sum(memory[k] for k in ("arguments", "outputs", "temporaries", "code")))
        assert memory["total"] < row["usable_bytes"]
        assert row["collectives"] and any("jax_mlp.py:" in line for line in row["by_source_seconds"])
    second = checked(f"{program}:train", on)
    assert all(row["cached"] for row in second["rows"])
    assert [row["step_seconds"] for row in second["rows"]] == [row["step_seconds"] for row in first["rows"]]


@pytest.mark.slow
@pytest.mark.compiler("tpu", "torch")
@pytest.mark.parametrize("program", ["torch_transformer.py:forward", "torch_cnn.py:forward"])
def test_a_pytorch_module_is_known_by_its_imports(program):
    found = checked(f"{PROGRAMS}/{program}", "v5e:1")
    assert found["kind"] == "torch" and found["ok"]
    row = found["rows"][0]
    assert "torch" in row["versions"]
    assert set(row["by_class_seconds"]) & {"matmul", "conv"}
    own = program.partition(":")[0]
    assert any(line.startswith(f"{own}:") for line in row["by_source_seconds"]), "the module's own lines"
    assert not any(line.startswith("torch_graph.py") for line in row["by_source_seconds"])
    assert all(0.1 <= each["share"] < 1 and each["words"] for each in row["padding"])


@pytest.mark.slow
@pytest.mark.compiler("tpu", "torch")
def test_head_size_64_on_an_array_256_wide_is_named():
    row = one(f"{PROGRAMS}/torch_transformer.py:forward", "v6e:1")
    small = [each for each in row["padding"] if 64 in each["dims"].values()]
    assert small and all(each["multiple"] in (8, 256) for each in small)


@pytest.mark.compiler("tpu")
def test_a_dynamic_shape_is_refused_with_its_line_and_what_to_change():
    why = one(f"{PROGRAMS}/jax_dynamic.py:masked", "v5e:1", status=1)["refused"]
    assert "dynamic shape" in why["reason"] and why["source_line"] == f"{PROGRAMS}/jax_dynamic.py:15"
    assert "jnp.where" in why["change"]
    assert one(f"{PROGRAMS}/jax_dynamic.py:fixed", "v5e:1")["ok"]


@pytest.mark.compiler("tpu")
def test_float64_compiles_with_a_warning():
    row = one(f"{PROGRAMS}/jax_float64.py:solve", "v5e:1")
    assert any("float64" in note and "software" in note for note in row["notes"])


@pytest.mark.compiler("tpu")
def test_the_interval_of_a_pallas_kernel_holds_what_its_arithmetic_takes():
    row = one(f"{PROGRAMS}/jax_pallas.py:matmul", "v5e:1")
    assert any("fused_matmul" in name for name in row["unknown_kernels"])
    at_peak = 2 * 4096 * 2048 * 4096 / 197e12  # seconds of the kernel's own product on a v5e
    step = row["step_seconds"]
    assert step["low"] < at_peak < step["high"] and "only the shapes are known" in step["because"]


@pytest.mark.compiler("tpu")
def test_one_per_cent_too_much_memory_is_refused_and_one_less_fits():
    why = one(f"{PROGRAMS}/jax_oom.py:over", "v5e:1", status=1)["refused"]
    assert why["stage"] == "memory" and 1.005 < why["hbm_needed_bytes"] / why["hbm_available_bytes"] < 1.02
    under = one(f"{PROGRAMS}/jax_oom.py:under", "v5e:1")
    assert under["fits"] and 0.97 < under["memory_bytes"]["total"] / under["usable_bytes"] < 1
    assert one(f"{PROGRAMS}/jax_oom.py:donated", "v5e:1")["memory_bytes"]["outputs"] < 2**20


@pytest.mark.compiler("cuda")
def test_a_gpu_is_checked_with_no_gpu_and_its_memory_is_compared():
    row = one(f"{PROGRAMS}/jax_mlp.py:inference", "h100:1")
    assert row["ok"] and row["usable_bytes"] > 70 * 2**30
    assert 0.2 < row["cross_check"]["sol_seconds"] / row["cross_check"]["our_seconds"] < 5
    small = checked(f"{PROGRAMS}/jax_oom.py:over", "l4:1")
    assert all(each["memory_bytes"]["total"] < each["usable_bytes"] for each in small["rows"])


@pytest.mark.compiler("cuda")
def test_a_program_too_large_for_a_card_compiles_but_does_not_fit(tmp_path):
    (tmp_path / "large.py").write_text(
        "import jax, jax.numpy as jnp\n\n\ndef make():\n"
        "    return (lambda x: x * 2), (jax.ShapeDtypeStruct((14, 2**30), jnp.float32),)\n"
    )
    done = chipwise("check", "large.py:make", "--on", "h100:1", "-o", "json", cwd=tmp_path)
    assert done.returncode == 1
    (row,) = json.loads(done.stdout)["rows"]
    assert row["compiles"] and row["fits"] is False


@pytest.mark.compiler("tpu")
def test_words_for_people_are_ascii_and_end_with_a_verdict():
    done = chipwise("check", f"{PROGRAMS}/jax_oom.py:under", "--on", "v5e:1")
    assert done.returncode == 0 and done.stdout.isascii()
    for words in ("Memory", "Time", "temporaries", "compiles and fits", "Verdict"):
        assert words in done.stdout


@pytest.mark.compiler("tpu")
def test_the_optimised_module_is_dumped(tmp_path):
    checked(f"{PROGRAMS}/jax_oom.py:under", "v5e:1", "--dump", tmp_path / "modules")
    assert (tmp_path / "modules" / "v5e-1x1.hlo.txt").read_text().startswith("HloModule")


@pytest.mark.compiler("tpu")
def test_without_the_cache_nothing_is_kept():
    row = one(f"{PROGRAMS}/jax_dynamic.py:fixed", "v5e:1", "--no-cache")
    assert row["ok"] and not row["cached"]


@pytest.mark.compiler("tpu")
def test_tuning_prints_a_command_that_works():
    found = checked(f"{NARROW}:train", "v6e:2x2", "--tune", "--tune-limit", "3")
    (tuning,) = found["tunings"]
    assert len(tuning["trials"]) <= 3 and tuning["left"] > 0
    assert any(trial["set"] == {"weights": "replicated"} for trial in tuning["trials"]), "the program's own choice"
    assert tuning["best"]["seconds"] <= tuning["base"]["seconds"]
    words = shlex.split(tuning["use"])
    assert words[:2] == ["chipwise", "check"]
    again = json.loads(chipwise(*words[1:], "-o", "json").stdout)
    assert again["rows"][0]["cached"] and again["rows"][0]["step_seconds"]["value"] == tuning["best"]["seconds"]


@pytest.mark.compiler("tpu")
def test_a_program_that_is_no_program_is_a_row_with_the_reason(tmp_path):
    """One through the command line; the reasons for others are in compiled/test_refusals.py."""
    (tmp_path / "broken.py").write_text("import absent_module_xyz\n")
    done = chipwise("check", "broken.py:make", "--on", "v5e:1", "-o", "json", cwd=tmp_path)
    assert (done.returncode, said(done.stderr)) == (1, [])
    why = json.loads(done.stdout)["rows"][0]["refused"]
    assert "absent_module_xyz" in json.dumps(why) and why["reason"] and why["change"]


@pytest.mark.compiler("tpu")
def test_a_corrupt_stablehlo_file_is_refused(tmp_path):
    (tmp_path / "bad.mlir").write_text("module @broken { this is not stablehlo")
    done = chipwise("check", "bad.mlir", "--on", "v5e:1", cwd=tmp_path)
    assert done.returncode == 1 and "bad.mlir" in done.stdout


@pytest.mark.compiler("tpu")
def test_a_compile_past_its_limit_is_stopped():
    why = one(f"{PROGRAMS}/jax_mlp.py:train", "v5e:4x4", "--limit-seconds", "1", status=1)["refused"]
    assert why["stage"] == "limit" and "time limit" in why["reason"]


BAD = {
    "no program": (("check", "", "--on", "v5e:1"), "PROGRAM"),
    "no function": (("check", "examples/programs/jax_mlp.py", "--on", "v5e:1"), "the function too"),
    "a file that is not there": (("check", "absent.py:train", "--on", "v5e:1"), "no such file"),
    "an exported file that is not there": (("check", "absent.mlir", "--on", "v5e:1"), "no such file"),
    "a model nobody knows": (("check", "llma-3.1-8b", "--on", "v5e:1"), "did you mean"),
    "a slice that does not exist": (("check", "a.b:c", "--on", "v5e:3x5"), "the nearest are"),
    "no chips": (("check", "a.b:c", "--on", ","), "--on"),
    "a chip without a compiler": (("check", "a.b:c", "--on", "mi300x:8"), "a compiler that runs without it"),
    "an option without a value": (("check", "a.b:c", "--on", "v5e:1", "--option", "xla_x"), "KEY=VALUE"),
    "a mode that is none": (("check", "gpt2", "--on", "v5e:1", "--mode", "sing"), "one of train"),
    "a layout for a function": (("check", "a.b:c", "--on", "v5e:1", "--layout", "fsdp=1"), "--layout"),
    "axes that are no numbers": (("check", "a.b:c", "--on", "v5e:1", "--axes", "data=x"), "a whole number"),
    "a limit of nothing": (("check", "a.b:c", "--on", "v5e:1", "--limit-seconds", "0"), "--limit-seconds"),
    "a limit that is no size": (("check", "a.b:c", "--on", "v5e:1", "--limit-memory", "lots"), "--limit-memory"),
    "a format that is none": (("check", "a.b:c", "--on", "v5e:1", "-o", "csv"), "one of table, json"),
    "a compiler nobody has": (("doctor", "--require", "npu"), "some of tpu, gpu, torch, export"),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD)
def test_bad_input_is_one_line_and_exit_2(case):
    arguments, words = case
    done = chipwise(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr and done.stderr.count("\n") == 1 and done.stderr.startswith("chipwise: ")


def test_doctor_names_what_is_missing_and_how_to_get_it():
    found = json.loads(chipwise("doctor", "-o", "json").stdout)
    assert {each["id"] for each in found["compilers"]} == {"tpu", "cuda", "torch", "export"}
    for each in found["compilers"]:
        assert each["usable"] == (each["id"] in USABLE)
        assert each["usable"] or (each["problem"] and bool(each["install"]) == each["available"])
        assert bool(each["elsewhere"]) == (not each["available"])
    assert "Google Cloud Platform" in next(each["license"] for each in found["compilers"] if each["id"] == "tpu")
    assert found["cache"]["folder"] and found["cache"]["limit_bytes"] > 0


def test_doctor_requires_what_it_is_told_to():
    ids = {"cuda": "gpu"}
    for each, state in STATES.items():
        done = chipwise("doctor", "--require", ids.get(each, each))
        assert done.returncode == (1 if state.available and not state.usable else 0)
        assert ("not required here: " in done.stderr) == (not state.available)


@pytest.mark.compiler("tpu")
@pytest.mark.slow
def test_a_workload_compiles_split_by_the_best_layout_and_tunes():
    arguments = ("gpt2", "v5e:2x2", "--batch", "8", "--sequence", "1024")
    row = one(*arguments)
    assert row["ok"] and row["layout"] and row["memory_bytes"]["arguments"] > 0
    (tuning,) = checked(*arguments, "--tune", "--tune-limit", "3")["tunings"]
    assert any("layout" in trial["set"] for trial in tuning["trials"])


def test_the_hook_of_this_repository_runs_the_command():
    text = (ROOT / ".pre-commit-hooks.yaml").read_text()
    assert "entry: chipwise check" in text and "pass_filenames: false" in text
