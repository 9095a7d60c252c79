"""`chipwise calibrate` as people run it, and what its calibrations are worth on points they have not seen."""

import csv
import gzip
import json
import os
import re

import pytest
from command import ROOT, chipwise, good

from chipwise.bench.file import read
from chipwise.catalog.bench_files import packaged_folder
from chipwise.predict.learn.points import point_id
from chipwise.validate.bench_rows import point_of

BENCH = ROOT / "examples" / "bench"
FIRST, CPU, HELD_OUT = BENCH / "h200-1.json.gz", BENCH / "cpu.json", BENCH / "h200-held-out.csv"
BARS = {
    "gemm": 0.08,
    "sdpa_fwd": 0.12,
    "sdpa_fwdbwd": 0.12,
    "train": 0.08,
    "prefill": 0.10,
    "decode": 0.10,
    "resnet50_train": 0.12,
    "peak_memory": 0.08,
}  # mean relative errors, at most
FITTED = ("kernels", "steps")


def with_data(folder):
    """An environment whose data folder is the test's own; one thread is fastest for matrices as small as these."""
    return {**os.environ, "CHIPWISE_DATA": str(folder), "OMP_NUM_THREADS": "1"}


@pytest.fixture
def env(tmp_path):
    return with_data(tmp_path / "data")


def refused(done, words, folder):
    """One line, exit 2, nothing on stdout and nothing written."""
    assert (done.returncode, done.stdout) == (2, ""), done
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("chipwise: ") and words in done.stderr, done.stderr
    assert not folder.exists()


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory):
    """The first run through every framework, as JSON, and the folder it was kept in."""
    folder = tmp_path_factory.mktemp("calibrated")
    text = good("calibrate", "bench", FIRST, "--folder", folder / "kept", "-o", "json", env=with_data(folder / "data"))
    assert not (folder / "data").exists()
    return json.loads(text), folder / "kept"


@pytest.fixture(scope="module")
def held_out(tmp_path_factory):
    """The rows held out, scored by the calibration that comes with chipwise."""
    env = with_data(tmp_path_factory.mktemp("none"))
    return json.loads(good("validate", "--rows", HELD_OUT, "--on", "h200", "-o", "json", env=env))


@pytest.mark.slow
def test_a_file_becomes_a_calibration_for_each_framework(calibrated):
    document, folder = calibrated
    assert set(document) == {"schema", "chipwise", "command", "calibrations"} and document["command"] == "calibrate"
    assert sorted(path.name for path in folder.iterdir()) == ["h200-jax-2026-11-15.json", "h200-torch-2026-11-15.json"]
    torch, jax = document["calibrations"]
    assert set(torch) == {"chip", "framework", "date", "source", "file", "points", "kernels", "steps", "left_out"}
    assert (torch["framework"], jax["framework"]) == ("torch", "jax")
    assert (torch["chip"], torch["date"], torch["source"]) == ("h200", "2026-11-15", FIRST.name)
    assert torch["file"] == str(folder / "h200-torch-2026-11-15.json")
    assert torch["points"] == sum(each.usable and each.framework == "torch" for each in read(FIRST).points)


@pytest.mark.slow
def test_every_part_says_its_points_and_its_error(calibrated):
    torch = calibrated[0]["calibrations"][0]
    assert {"gemm/bf16", "gemm/fp8", "sdpa_fwd/bf16", "copy/bf16"} <= set(torch["kernels"])
    assert {"train/bf16", "train/bf16/compiled", "prefill/bf16", "decode/bf16", "resnet50_train/bf16"} <= set(
        torch["steps"]
    )
    for name, found in (item for part in FITTED for item in torch[part].items()):
        assert found["points"] >= 1 and (found["error"] is None or 0 <= found["error"] < 1), name
    assert torch["kernels"]["gemm/bf16"]["error"] < 0.10 and torch["steps"]["train/bf16"]["error"] < 0.10


@pytest.mark.slow
def test_one_framework_is_fitted_where_it_is_named(tmp_path, env):
    text = good("calibrate", "bench", FIRST, "--framework", "jax", "--folder", tmp_path / "kept", env=env)
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["h200-jax-2026-11-15.json"]
    assert (
        "h200 with jax, from h200-1.json.gz of 2026-11-15\n" in text
        and "with torch" not in text
        and "too few to tell" in text
    )


@pytest.mark.slow
def test_the_data_folder_keeps_it_unless_a_folder_is_named_and_predictions_use_it(tmp_path, env):
    good("calibrate", "bench", FIRST, "--framework", "torch", env=env)
    kept = tmp_path / "data" / "calibration"
    assert [path.name for path in kept.iterdir()] == ["h200-torch-2026-11-15.json"]
    ask = ("validate", "--rows", HELD_OUT, "--on", "h200", "-o", "json")
    assert json.loads(good(*ask, env=env))["source"].startswith(f"{FIRST.name}; what it lacks from ")
    assert (
        json.loads(good(*ask, env=with_data(tmp_path / "none")))["source"]
        == "h200-1.json.gz, h200-2.json.gz, h200-3.json.gz"
    )


def test_a_broken_calibration_of_the_user_is_one_line(tmp_path, env):
    kept = tmp_path / "data" / "calibration"
    kept.mkdir(parents=True)
    (kept / "h200-torch-2026-12-01.json").write_text("{")
    done = chipwise("validate", "--rows", HELD_OUT, "--on", "h200", env=env)
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.count("\n") == 1
    assert "written by `chipwise calibrate bench`" in done.stderr


def broken_files(folder):
    """Bench files that can't be used, with a part of the line that says why."""
    whole = gzip.decompress(FIRST.read_bytes()).decode()
    contents = {
        "cut.json": (whole[: len(whole) // 2].encode(), "whole JSON"),
        "cut.json.gz": (FIRST.read_bytes()[:50_000], "a readable file"),
        "later.json": (whole.replace("chipwise.bench/1", "chipwise.bench/9", 1).encode(), "it says 'chipwise.bench/9'"),
        "other.json": (b'{"a": 1}', "a bench file (schema chipwise.bench/1)"),
    }
    for name, (content, _) in contents.items():
        (folder / name).write_bytes(content)
    return [(name, words) for name, (_, words) in contents.items()]


def test_a_bench_file_that_cannot_be_used_is_one_line_and_nothing_is_written(tmp_path, env):
    for name, words in broken_files(tmp_path):
        done = chipwise("calibrate", "bench", name, cwd=tmp_path, env=env)
        refused(done, words, tmp_path / "data")
        assert f"'{name}'" in done.stderr
    after_a_good_one = chipwise("calibrate", "bench", FIRST, "cut.json", cwd=tmp_path, env=env)
    refused(after_a_good_one, "whole JSON", tmp_path / "data")


@pytest.mark.parametrize(
    "arguments, words",
    [
        ((), "Missing argument 'FILE...'"),
        (("absent.json",), "bench file: no such file: 'absent.json'"),
        ((CPU,), "bench file: 'cpu.json' is not accepted; expected one measured on an accelerator (it is of a CPU"),
        ((CPU, "--chip", "h200"), "bench file: 'cpu.json' is not accepted"),
        ((FIRST, CPU), "bench file: 'cpu.json' is not accepted"),
        ((FIRST, FIRST), "FILE: "),
        ((FIRST, "--chip", "h100"), "--chip: 'h100' is not accepted; expected h200"),
        ((FIRST, "--chip", "zzz"), "--chip: 'zzz' is not accepted; expected a chip of the catalog"),
        (
            (FIRST, "--framework", "mxnet"),
            "--framework: 'mxnet' is not accepted; expected one with usable points: torch, jax",
        ),
        ((FIRST, "-o", "xml"), "one of table, json"),
    ],
    ids=[
        "no file",
        "a missing file",
        "a CPU's file",
        "a CPU called a chip",
        "a CPU beside a chip",
        "a file twice",
        "another chip",
        "an unknown chip",
        "an unknown framework",
        "a format",
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(arguments, words, tmp_path, env):
    refused(chipwise("calibrate", "bench", *arguments, cwd=tmp_path, env=env), words, tmp_path / "data")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", BARS)
def test_points_that_taught_nothing_are_predicted_within_the_bar(held_out, kind):
    found = held_out["by_kind"][kind]
    assert found["eligible"] == found["predicted"] >= 15 and found["mape"] <= BARS[kind], found


def test_every_row_held_out_is_predicted_and_most_intervals_hold(held_out):
    assert held_out["refusals"] == {} and held_out["rows_read"] == held_out["summary"]["predicted"] >= 500
    assert 0.85 <= held_out["summary"]["coverage90"] <= 0.97


def test_no_row_held_out_taught_the_calibration(held_out):
    with HELD_OUT.open(encoding="utf-8") as file:
        rows = {point_id(point_of(row)) for row in csv.DictReader(file)}
    (kept,) = packaged_folder().glob("h200-torch-*.json")
    fitted = set(json.loads(kept.read_text(encoding="utf-8"))["measured"])
    measured = {point_id(each.point) for path in BENCH.glob("h200-*.json.gz") for each in read(path).points}
    assert fitted and fitted <= measured and not rows & measured
    assert {row["evidence"] for row in held_out["rows"]} == {"modelled"}


@pytest.mark.parametrize(
    "arguments, words",
    [
        ((), "--on: missing; expected the chip that the flat rows are of, such as h200"),
        (("--on", "h20"), "unknown name 'h20'"),
        (("--on", "a100-80gb"), "a100-80gb was never measured"),
        (
            ("--on", "a100-80gb"),
            "run `chipwise bench all --quick --out FILE` on one and `chipwise calibrate bench FILE`",
        ),
        (("--on", "h200", "--rows", "validation/rows/kernels.csv"), "files of one kind"),
    ],
    ids=["no chip", "an unknown chip", "a chip never measured", "what to run", "rows of two kinds"],
)
def test_flat_rows_that_cannot_be_scored_are_one_line(arguments, words, tmp_path, env):
    done = chipwise("validate", "--rows", HELD_OUT, *arguments, env=env)
    refused(done, words, tmp_path / "data")


def test_a_chip_for_rows_that_are_not_flat_is_one_line(tmp_path, env):
    done = chipwise("validate", "--rows", "validation/rows/kernels.csv", "--on", "h200", env=env)
    refused(done, "--on: 'h200' is not accepted; expected only beside flat rows", tmp_path / "data")


def test_bad_cells_are_counted_and_the_other_rows_scored(tmp_path, env):
    rows = "kind,dtype,m,n,k,seconds\ngemm,bf16,4000,3000,2000,8e-5\ngemm,bf16,many,3,2,1\ngemm,bf16,4,3,2,\n"
    (tmp_path / "rows.csv").write_text(rows, encoding="utf-8")
    text = good("validate", "--rows", tmp_path / "rows.csv", "--on", "h200", env=env)
    assert "3 rows read" in text and "  1 x m: 'many' is not accepted; expected a number" in text
    assert "  1 x no seconds" in text


def keys(value, out):
    if isinstance(value, dict):
        for key, inside in value.items():
            if not re.fullmatch(r"[a-z0-9_]+/[a-z0-9/]+", key):  # names of what was fitted
                out.add(key)
            keys({} if key in ("by_kind", "refusals", "not_eligible") else inside, out)
    elif isinstance(value, list):
        for inside in value[:1]:
            keys(inside, out)
    return out


@pytest.mark.slow
def test_every_key_of_the_json_is_documented(calibrated, held_out):
    page = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
    found = keys(calibrated[0], set()) | keys(held_out, set())
    assert not [key for key in sorted(found) if f"`{key}`" not in page]
