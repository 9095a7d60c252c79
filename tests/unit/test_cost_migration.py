"""What a port takes: nothing within a family, more with every kernel, less where a compiler took the program."""

import json

import pytest

from chipwise.catalog import load
from chipwise.catalog.economics import economics
from chipwise.cost.migration import Program, migration, read_framework, read_kernels
from chipwise.cost.migration_check import Checked, CheckedRow, read_check
from chipwise.errors import BrokenFile, InputError

CHIPS, KNOW = load().chips, economics()


def weeks(chip, *program, **more):
    return migration(Program(*program, **more), CHIPS[chip], KNOW).weeks


def test_a_program_of_which_nothing_is_known_has_no_port_and_says_so():
    got = migration(Program(), CHIPS["v5p"], KNOW)
    assert (got.weeks, got.usd_run) == (0, 0) and "not counted" in got.reasons[0]


@pytest.mark.parametrize("chip", ["h200", "b200", "a100-80gb", "l40s"])
def test_within_a_family_nothing_is_ported(chip):
    got = migration(Program("pytorch", (("cuda", 5), ("triton", 2))), CHIPS[chip], KNOW)
    assert got.weeks == 0 and all("0 weeks" in reason for reason in got.reasons)


def test_amd_takes_less_than_tpus_and_a_missing_framework_most():
    assert 0 < weeks("mi300x", "pytorch") < weeks("v5p", "pytorch") < weeks("gaudi2", "jax")
    assert weeks("v5p", "jax") < weeks("v5p", "tensorflow") < weeks("v5p", "pytorch")


def test_every_kernel_counts():
    # PyTorch to TPUs 8 weeks, each CUDA kernel written again 4: 8 + 3 x 4 = 20; at $6,000 a week over 4 runs $30,000
    got = migration(Program("pytorch", (("cuda", 3),)), CHIPS["v6e"], KNOW, runs=4)
    assert got.weeks == 20 and got.usd_run == 30_000
    # lows 2 + 3 x 1, highs 20 + 3 x 12
    assert (got.weeks_low, got.weeks_high) == (5, 56)


def test_a_program_at_home_on_tpus_ports_the_other_way():
    assert weeks("v6e", "jax", (("pallas", 4),), home=CHIPS["v5e"]) == 0
    assert weeks("h100", "jax", (("pallas", 1),), home=CHIPS["v5e"]) == 1 + 4


def test_kernels_without_a_framework_count_alone():
    got = migration(Program(kernels=(("triton", 2),)), CHIPS["mi300x"], KNOW)
    assert got.weeks == 1.0 and any("framework was not given" in reason for reason in got.reasons)


def checked(chip, compiles, *refusals):
    return Checked("program.py", (CheckedRow(chip, compiles, refusals),))


def test_a_program_that_compiled_needs_no_port():
    got = migration(Program("pytorch", (("cuda", 3),), checked=checked("v5e", True)), CHIPS["v5e"], KNOW)
    assert got.weeks == 0 and "compiled the program" in got.reasons[0]


def test_what_a_compiler_refused_comes_on_top():
    got = migration(Program("jax", checked=checked("v5e", False, "dynamic shape")), CHIPS["v5e"], KNOW)
    assert got.weeks == 1 + 1 and any("dynamic shape" in reason for reason in got.reasons)


def test_a_check_of_other_chips_says_so():
    got = migration(Program("jax", checked=checked("v5e", True)), CHIPS["v6e"], KNOW)
    assert got.weeks == 1 and any("says nothing of v6e" in reason for reason in got.reasons)


def test_the_file_of_a_check_is_read(tmp_path):
    rows = [
        {"accelerators": {"chip": "v5e"}, "compiles": False, "refused": {"stage": "compile", "reason": "no op"}},
        {"accelerators": {"chip": "v6e"}, "compiles": True, "refused": None},
    ]
    path = tmp_path / "check.json"
    path.write_text(json.dumps({"command": "check", "program": "p.py", "rows": rows}))
    got = read_check(path)
    assert got.of("v5e").refusals == ("no op",) and got.of("v6e").compiles and got.of("v5p") is None


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        "no",
        '{"command": "check", "program": "p"}',
        '{"command": "check", "program": "p", "rows": [{"compiles": 3}]}',
    ],
)
def test_a_file_that_is_no_check_is_refused(tmp_path, text):
    path = tmp_path / "check.json"
    path.write_text(text)
    with pytest.raises(BrokenFile):
        read_check(path)


@pytest.mark.parametrize("given", [["x"], ["-1"], ["rust:2"], ["cuda:"], ["99999999"]])
def test_kernels_that_make_no_sense_are_refused(given):
    with pytest.raises(InputError):
        read_kernels(given)


def test_frameworks_by_name():
    assert read_framework("PyTorch") == "pytorch" and read_framework(None) is None
    with pytest.raises(InputError):
        read_framework("mxnet")


def test_no_runs_to_share_a_port_are_refused():
    with pytest.raises(InputError):
        migration(Program("jax"), CHIPS["v5e"], KNOW, runs=0)
