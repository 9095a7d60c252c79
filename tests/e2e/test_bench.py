"""`chipwise bench` as people run it: both frameworks on this CPU, bad input, an interrupt, files of before."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from command import ROOT, chipwise, good, running

from chipwise.bench.file import read, write
from patience import PATIENCE_S

ENV = {**os.environ, "OMP_NUM_THREADS": "1"}
EXAMPLE, LATER = ROOT / "examples/bench/cpu.json", ROOT / "examples/bench/cpu-avx2.json"
PACKED = ROOT / "examples/bench/h200-1.json.gz"
TIMED = ("ok", "unstable")  # on a busy machine samples scatter


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Kernels through both frameworks, once for all tests."""
    out = tmp_path_factory.mktemp("bench") / "kernels.json"
    done = chipwise("bench", "kernels", "--suite-size", "tiny", "--device", "cpu", "--out", out, env=ENV)
    file = read(out)
    assert done.returncode in (0, 1) and file.complete and set(file.frameworks) == {"torch", "jax"}, done.stderr
    return done, out


@pytest.mark.slow
def test_every_suite_runs_through_both_frameworks(tmp_path):
    out = tmp_path / "all.json"
    done = chipwise("bench", "all", "--suite-size", "tiny", "--device", "cpu", "--out", out, env=ENV)
    assert done.returncode in (0, 1), done.stderr
    file = read(out)
    assert file.complete and set(file.frameworks) == {"torch", "jax"}
    for framework in file.frameworks:
        suites = {each.point.suite for each in file.points if each.framework == framework and each.status in TIMED}
        assert {"kernels", "train", "serve", "vision"} <= suites, framework
    wrong = [(each.framework, each.point, each.reason) for each in file.points if each.status == "failed"]
    assert not wrong
    assert not list(out.parent.glob("*.part"))


def test_each_figure_is_told_as_it_is_measured(measured):
    done, out = measured
    points = read(out).points
    lines = done.stderr.splitlines()
    assert f"{len(points)}/{len(points)} " in done.stderr and lines[-1] == f"kept in {out}"
    assert "this measures the CPU; its figures say nothing about a GPU or TPU" in lines
    assert "gemm" in done.stdout and "IQR" in done.stdout


def test_what_was_measured_is_shown_as_table_json_and_rows(measured):
    _, out = measured
    assert "gemm" in good("bench", "show", out)
    record = json.loads(good("bench", "show", out, "-o", "json"))
    assert len(record["points"]) == len(read(out).points) and record["complete"] is True
    rows = list(csv.DictReader(io.StringIO(good("bench", "show", out, "-o", "csv"))))
    assert len(rows) == sum(each.usable for each in read(out).points)


def test_a_run_does_not_regress_against_itself(measured):
    _, out = measured
    assert good("bench", "diff", out, out, "--fail-above", "0").rstrip().endswith("exit status 0")


def test_json_on_stdout_is_the_bench_file(tmp_path):
    done = chipwise(
        "bench",
        "kernels",
        "--suite-size",
        "tiny",
        "--device",
        "cpu",
        "--frameworks",
        "torch",
        "--seconds",
        "5",
        "-o",
        "json",
        env=ENV,
    )
    (tmp_path / "out.json").write_text(done.stdout)
    assert read(tmp_path / "out.json").points and "not kept" in done.stderr


def test_no_accelerator_and_none_asked_for_runs_on_the_cpu_and_says_so():
    text = good(
        "bench",
        "kernels",
        "--suite-size",
        "tiny",
        "--points",
        "--frameworks",
        "torch",
        env={**ENV, "TPU_ACCELERATOR_TYPE": ""},
    )
    assert (
        "no accelerator found: this measures the CPU; its figures say nothing about a GPU or TPU" in text
        or "cuda" in text
    )


def test_the_file_describes_itself(measured):
    _, out = measured
    document = json.loads(out.read_text())
    assert document["schema"] == "chipwise.bench/1" and document["command"][:3] == ["chipwise", "bench", "kernels"]
    assert "host" not in document["environment"] and document["device"]["platform"] == "cpu"


def test_ctrl_c_keeps_what_is_done(tmp_path):
    out = tmp_path / "out.json"
    # every suite through both frameworks: however slow this process is, that one is not through when it is interrupted
    with running(
        "bench", "all", "--suite-size", "tiny", "--device", "cpu", "--frameworks", "torch,jax", "--out", out, env=ENV
    ) as process:
        seen = ""
        while "2/" not in seen and process.poll() is None:
            seen = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130 and stderr.rstrip().endswith("chipwise: interrupted")
    file = read(out)
    assert len(file.points) >= 2 and "interrupted" in file.notes[-1] and "gemm" in stdout


def test_a_killed_run_leaves_a_draft_that_can_be_read(tmp_path):
    out = tmp_path / "out.json"
    draft = tmp_path / "out.json.part"
    with running(
        "bench",
        "all",
        "--suite-size",
        "tiny",
        "--device",
        "cpu",
        "--frameworks",
        "torch,jax",
        "--out",
        out,
        env=ENV | {"TMPDIR": str(tmp_path)},  # where a killed process leaves its folder
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        while not draft.exists() and process.poll() is None:
            time.sleep(0.05)
    assert not out.exists() and read(draft).complete is False


@pytest.mark.parametrize(
    "arguments, words",
    [
        (
            ("kernels", "--device", "abacus"),
            "--device: 'abacus' is not accepted; expected one of auto, cuda, tpu, rocm, cpu",
        ),
        (("kernels", "--frameworks", "mxnet"), "--frameworks: 'mxnet'"),
        (("kernels", "--frameworks", ","), "--frameworks"),
        (("kernels", "--suite-size", "huge"), "--suite-size: 'huge'"),
        (("kernels", "--quick", "--suite-size", "full"), "--suite-size"),
        (("kernels", "--seconds", "0"), "--seconds"),
        (("kernels", "--seconds", "soon"), "--seconds"),
        (("kernels", "-o", "xml"), "one of table, json"),
        (("kernel",), "No such command 'kernel'"),
        ((), "Missing command"),
        (("show", "absent.json"), "no such file"),
        (("show", "README.md"), "whole JSON"),
        (("show", str(EXAMPLE), "--framework", "mxnet"), "--framework"),
        (("diff", str(EXAMPLE), "absent.json"), "absent.json"),
        (("diff", str(EXAMPLE), str(LATER), "--fail-above", "-1"), "--fail-above"),
        (("roofline", str(EXAMPLE), "--plot", "r.gif"), "--plot"),
        (
            (
                "kernels",
                "--device",
                "cpu",
                "--suite-size",
                "tiny",
                "--frameworks",
                "torch",
                "--out",
                "no/such/folder/out.json",
            ),
            "--out",
        ),
    ],
)
def test_bad_input_is_one_line_and_exit_2(arguments, words):
    done = chipwise("bench", *arguments, env=ENV)
    assert (done.returncode, done.stdout) == (2, "") and words in done.stderr
    assert done.stderr.splitlines()[-1].startswith("chipwise: ")


@pytest.mark.parametrize("device", ["cuda", "rocm", "tpu"])
def test_a_device_asked_for_and_absent_is_one_line(device):
    from chipwise.bench.environment import platforms

    if device in platforms():
        pytest.skip(f"this machine may have {device}")
    done = chipwise("bench", "kernels", "--device", device, "--suite-size", "tiny", env=ENV)
    assert done.returncode == 2 and done.stdout == "" and len(done.stderr.splitlines()) == 1, done.stderr
    assert device in done.stderr


def test_a_truncated_file_and_another_schema_are_one_line(tmp_path):
    text = EXAMPLE.read_text(encoding="utf-8")
    (tmp_path / "cut.json").write_text(text[: len(text) // 2])
    (tmp_path / "later.json").write_text(text.replace("chipwise.bench/1", "chipwise.bench/9"))
    for name, words in (("cut.json", "whole JSON"), ("later.json", "it says 'chipwise.bench/9'")):
        done = chipwise("bench", "show", tmp_path / name)
        assert done.returncode == 2 and words in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_packed_file_is_read_as_it_is(tmp_path):
    write(read(EXAMPLE), tmp_path / "cpu.json.gz")
    assert (tmp_path / "cpu.json.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert good("bench", "show", tmp_path / "cpu.json.gz") == good("bench", "show", EXAMPLE)
    assert (
        good("bench", "diff", EXAMPLE, tmp_path / "cpu.json.gz", "--fail-above", "0").rstrip().endswith("exit status 0")
    )


def test_a_packed_file_that_breaks_off_is_one_line(tmp_path):
    (tmp_path / "cut.json.gz").write_bytes(PACKED.read_bytes()[:20_000])
    (tmp_path / "not.json.gz").write_bytes(EXAMPLE.read_bytes())
    for name in ("cut.json.gz", "not.json.gz"):
        done = chipwise("bench", "show", name, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "") and len(done.stderr.splitlines()) == 1
        assert f"'{name}' is not accepted; expected a readable file" in done.stderr


def test_the_runs_shipped_are_whole_and_of_one_chip():
    for path in sorted(PACKED.parent.glob("h200-*.json.gz")):
        file = read(path)
        assert file.complete and file.chip == "h200" and set(file.frameworks) == {"torch", "jax"}
        assert file.command == ("chipwise", "bench", "all", "--device", "auto", "--suite-size", "quick")
        assert sum(each.usable for each in file.points) > 0.95 * len(file.points)
        assert "host" not in file.environment


def test_a_regression_leaves_with_1():
    done = chipwise("bench", "diff", EXAMPLE, LATER, "--fail-above", "5")
    assert done.returncode == 1 and done.stdout.rstrip().endswith("exit status 1")
    assert (
        json.loads(chipwise("bench", "diff", EXAMPLE, LATER, "--fail-above", "5", "-o", "json").stdout)["regressions"]
        > 0
    )


def test_the_roofline_is_drawn(tmp_path):
    good("bench", "roofline", EXAMPLE, "--plot", tmp_path / "r.svg")
    assert (tmp_path / "r.svg").read_text().startswith("<?xml")


def test_the_schema_is_printed():
    assert json.loads(good("schema", "bench"))["title"] == "chipwise bench file"
    assert chipwise("schema", "novel").returncode == 2


def test_heavy_packages_are_not_imported_for_help():
    code = "import sys, chipwise.cli.main; print([n for n in ('numpy', 'torch', 'jax', 'matplotlib', 'pydantic') if n in sys.modules])"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, env=ENV, capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )


def keys(value, out):
    if isinstance(value, dict):
        for key, inside in value.items():
            out.add(key)
            keys(
                {}
                if key
                in ("environment", "frameworks", "settings", "flops_per_s_by_dtype", "stated_flops_per_s_by_dtype")
                else inside,
                out,
            )
    elif isinstance(value, list):
        for inside in value:
            keys(inside, out)
    return out


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", EXAMPLE),
        ("show", PACKED),
        ("diff", EXAMPLE, LATER, "--fail-above", "1e6"),
        ("roofline", PACKED),
        ("kernels", "--device", "cpu", "--suite-size", "tiny", "--frameworks", "torch", "--points"),
    ],
    ids=lambda a: a[0],
)
def test_every_key_of_the_json_is_documented(arguments):
    pages = [(ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("json.md", "bench-file.md")]
    found = keys(json.loads(good("bench", *arguments, "-o", "json", env=ENV)), set())
    assert not [key for key in sorted(found) if not any(f"`{key}`" in page for page in pages)]


def test_every_field_of_the_file_is_documented():
    page = (ROOT / "docs" / "bench-file.md").read_text(encoding="utf-8")
    described = json.loads(good("schema", "bench"))
    names = {name for each in (described, *described["$defs"].values()) for name in each["properties"]}
    assert not [name for name in sorted(names) if f"`{name}`" not in page]
