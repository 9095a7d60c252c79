"""An error names the parameter in Python, and the flag or argument of it on the command line."""

import ast
from pathlib import Path

import pytest

import chipwise as cw
from chipwise.cli.flags import in_flags
from chipwise.cli.main import command, run
from chipwise.errors import InputError

SOURCE = Path(cw.__file__).parent
RUN = {"tokens": "1T", "batch": "64", "sequence": "8192"}
TRAIN = ["llama-3.1-8b", *(word for name, value in RUN.items() for word in (f"--{name}", value))]
DAY, POOLS = "examples/traces/mixed-day.yaml", "examples/traces/mixed-pools.yaml"
GAVEL = "examples/traces/gavel-seed0"
FLAT = "examples/bench/h200-held-out.csv"
NAMING_FIELDS = ("InputError", "UnknownName", "Conflict", "MissingInput", "BrokenFile", "NoSuchFile")


def job() -> object:
    return cw.load("llama-3.1-8b", **RUN)


CASES = {
    "compare": (
        lambda: cw.compare(job(), budget="x"),
        ["compare", *TRAIN, "--budget", "x"],
        "budget: 'x' is not accepted; expected an amount",
        "--budget: 'x' is not accepted; expected an amount",
    ),
    "load": (
        lambda: cw.load("llama-3.1-8b", tokens="1T"),
        ["compare", "llama-3.1-8b", "--tokens", "1T"],
        "missing: batch or batch_tokens, sequence",
        "missing: --batch or --batch-tokens, --sequence",
    ),
    "two loads": (
        lambda: cw.load("llama-3.1-8b", input_len=100, output_len=10, rate=1, users=3),
        ["compare", "llama-3.1-8b", "--input-len", "100", "--output-len", "10", "--rate", "1", "--users", "3"],
        "can't combine users with rate",
        "can't combine --users with --rate",
    ),
    "an axis of a layout": (
        lambda: cw.predict(job(), "h100:8", layout="fsdp=8,zero=9"),
        ["predict", *TRAIN, "--on", "h100:8", "--layout", "fsdp=8,zero=9"],
        "layout zero: 9 is not accepted",
        "--layout zero: 9 is not accepted",
    ),
    "an assumption": (
        lambda: cw.Knowledge.default(assumptions=["interest=lots"]),
        ["cost", *TRAIN, "--on", "h100:8", "--set", "interest=lots"],
        "assumptions: 'interest=lots' is not accepted",
        "--set: 'interest=lots' is not accepted",
    ),
    "cost": (
        lambda: cw.cost(job(), "h100:8", draws=0),
        ["cost", *TRAIN, "--on", "h100:8", "--draws", "0"],
        "draws: 0 is not accepted",
        "--draws: 0 is not accepted",
    ),
    "prices": (
        lambda: cw.prices("h100", cloud="gpc"),
        ["prices", "--on", "h100", "--cloud", "gpc"],
        "cloud: unknown name 'gpc'",
        "--cloud: unknown name 'gpc'",
    ),
    "simulate": (
        lambda: cw.simulate(DAY, POOLS, weights=["cost"]),
        ["simulate", DAY, "--pools", POOLS, "--weight", "cost"],
        "weights: 'cost' is not accepted",
        "--weight: 'cost' is not accepted",
    ),
    "a Gavel trace": (
        lambda: cw.simulate("nowhere"),
        ["simulate", "--gavel-trace", "nowhere"],
        "trace: 'nowhere' is not accepted; expected a folder",
        "--gavel-trace: 'nowhere' is not accepted; expected a folder",
    ),
    "pools beside a Gavel trace": (
        lambda: cw.simulate(GAVEL, POOLS),
        ["simulate", "--gavel-trace", GAVEL, "--pools", POOLS],
        "can't combine pools with a Gavel trace",
        "can't combine --pools with a Gavel trace",
    ),
    "check": (
        lambda: cw.check("gpt2", "v5e:1", options=["x"]),
        ["check", "gpt2", "--on", "v5e:1", "--option", "x"],
        "options: 'x' is not accepted",
        "--option: 'x' is not accepted",
    ),
    "a program": (
        lambda: cw.check("", "v5e:1"),
        ["check", "", "--on", "v5e:1"],
        "program: '' is not accepted",
        "PROGRAM: '' is not accepted",
    ),
    "bench": (
        lambda: cw.bench("kernels", quick=True, suite_size="tiny"),
        ["bench", "kernels", "--quick", "--suite-size", "tiny"],
        "can't combine quick with suite_size tiny",
        "can't combine --quick with --suite-size tiny",
    ),
    "validate": (
        lambda: cw.validate(recompile=True),
        ["validate", "--recompile"],
        "recompile needs evidence compiled",
        "--recompile needs --evidence compiled",
    ),
    "rows without their chip": (
        lambda: cw.validate(FLAT),
        ["validate", "--rows", FLAT],
        "on: missing; expected the chip",
        "--on: missing; expected the chip",
    ),
    "a file": (
        lambda: cw.validate("nowhere.csv"),
        ["validate", "--rows", "nowhere.csv"],
        "rows: no such file: 'nowhere.csv'",
        "--rows: no such file: 'nowhere.csv'",
    ),
    "numerics": (
        lambda: cw.numerics("char-transformer", loss_scale=0),
        ["numerics", "char-transformer", "--loss-scale", "0"],
        "loss_scale: 0",
        "--loss-scale: 0",
    ),
    "a stack": (
        lambda: cw.load("llama-3.1-8b", **RUN, stack="megatorn"),
        ["predict", *TRAIN, "--on", "h100:8", "--stack", "megatorn"],
        "stack: unknown name 'megatorn'",
        "--stack: unknown name 'megatorn'",
    ),
    "a model that no flag names": (
        lambda: cw.load("llamba", **RUN),
        ["compare", "llamba", *TRAIN[1:]],
        "model: unknown name 'llamba'",
        "model: unknown name 'llamba'",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_python_names_the_parameter_and_the_command_line_its_flag(case, capsys, monkeypatch):
    monkeypatch.delenv("CHIPWISE_POOLS", raising=False)
    call, arguments, python, line = CASES[case]
    with pytest.raises(cw.ChipwiseError) as caught:
        call()
    assert str(caught.value).startswith(python)
    assert run(arguments) == 2
    assert capsys.readouterr().err.startswith(f"chipwise: {line}")


def test_a_key_of_a_file_stays_a_key_where_a_flag_has_its_name():
    verb = command().commands["compare"]
    assert in_flags(InputError("model", "x", "y"), verb, {"model": None}).field == "model"
    assert in_flags(InputError("model", "x", "y"), verb, {"model": "x"}).field == "--model"
    assert in_flags(InputError("train.steps", "x", "y"), verb, {"steps": "3"}).field == "train.steps"


def test_no_error_of_the_library_names_a_flag():
    fields = []
    for path in sorted(SOURCE.rglob("*.py")):
        if path.is_relative_to(SOURCE / "cli"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in NAMING_FIELDS and node.args:
                names = node.args[:2] if getattr(node.func, "id", "") == "Conflict" else node.args[:1]
                fields += [f"{path.name}:{node.lineno}" for name in names if "--" in ast.unparse(name)]
    assert fields == []
