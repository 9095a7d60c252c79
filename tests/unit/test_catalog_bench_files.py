"""Calibrations of measured chips: whole files only, the user's before the package's, the newest first."""

import json
from pathlib import Path

import pytest

from chipwise.catalog import bench_files
from chipwise.catalog.bench_files import SCHEMA, packaged_folder, read, user_folder, write
from chipwise.catalog.calibration import Bench
from chipwise.errors import BrokenFile, InputError

NAME = "h200-torch-2026-11-20.json"


def document(**more):
    return {
        "chip": "h200",
        "framework": "torch",
        "date": "2026-11-20",
        "source": "a.json",
        "versions": {},
        "tables": {},
        "steps": {},
        "measured": {},
        "peaks": {},
        **more,
    }


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    """A data folder of the test's own."""
    monkeypatch.setenv("CHIPWISE_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data" / "calibration"


def refusal(content):
    Path(NAME).write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    with pytest.raises(BrokenFile) as raised:
        read(Path(NAME))
    line = str(raised.value)
    assert "\n" not in line and line.startswith(f"calibration: '{NAME}' is not accepted; expected ")
    return line


def test_what_is_written_is_read_back(data):
    path = write(data, document())
    assert path == data / NAME and read(path) == {"schema": SCHEMA, **document()}


def test_a_file_of_another_version_says_to_calibrate_anew():
    line = refusal({**document(), "schema": "chipwise.bench-calibration/9"})
    assert f"schema {SCHEMA} (found chipwise.bench-calibration/9); calibrate again from the bench file" in line
    assert "(found None)" in refusal(document())


@pytest.mark.parametrize("size", [0, 1, 40, -2])
def test_a_file_that_breaks_off_says_what_writes_one(size):
    whole = json.dumps({"schema": SCHEMA, **document()}).encode()
    assert "a JSON file written by `chipwise calibrate bench`" in refusal(whole[:size])


def test_a_file_that_is_not_text_says_what_writes_one():
    assert "written by `chipwise calibrate bench`" in refusal(b"\xff\xfe\x00")


@pytest.mark.parametrize("field", ["chip", "framework", "date", "tables", "steps"])
def test_a_missing_field_is_named(field):
    whole = {"schema": SCHEMA, **document()}
    del whole[field]
    assert f"the field '{field}'" in refusal(whole)


@pytest.mark.parametrize(
    "content, found", [(b"[1]", "list"), (b"3", "int"), (b'"words"', "str"), (b"null", "NoneType")]
)
def test_what_is_no_object_is_refused(content, found):
    assert f"(found {found})" in refusal(content)


def test_a_file_that_is_not_there_is_refused():
    with pytest.raises(BrokenFile, match="no such file"):
        read(Path("absent.json"))


def test_the_data_folder_is_the_users_choice(tmp_path, monkeypatch):
    assert user_folder() == tmp_path / "data" / "calibration"
    monkeypatch.delenv("CHIPWISE_DATA")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    assert user_folder() == tmp_path / "xdg" / "chipwise" / "calibration"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert user_folder() == tmp_path / "home" / ".local" / "share" / "chipwise" / "calibration"


def test_a_calibration_is_written_whole_or_not_at_all(data, monkeypatch):
    write(data, document(source="first"))
    assert [path.name for path in data.iterdir()] == [NAME]
    write(data, document(source="second"))
    assert [path.name for path in data.iterdir()] == [NAME] and read(data / NAME)["source"] == "second"

    def broken(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", broken)
    with pytest.raises(InputError, match="No space left"):
        write(data, document(source="third"))
    assert read(data / NAME)["source"] == "second"


def test_the_users_newest_wins_over_the_packages(data):
    assert [raw["source"] for raw in bench_files.read_all("h200")] == ["h200-1.json.gz, h200-2.json.gz, h200-3.json.gz"]
    for date in ("2026-11-20", "2026-12-01", "2026-11-30"):
        write(data, document(date=date, source=date))
    assert [raw["source"] for raw in bench_files.read_all("h200")][:3] == ["2026-12-01", "2026-11-30", "2026-11-20"]


def test_the_users_wins_though_the_packages_is_newer(data):
    write(data, document(date="2020-01-01", source="mine"))
    assert bench_files.read_all("h200")[0]["source"] == "mine"


def test_a_calibration_is_of_one_chip_and_one_framework(data):
    write(data, document(framework="jax", source="through jax"))
    write(data, document(chip="h100", source="of an h100"))
    assert bench_files.read_all("h200", "jax")[0]["source"] == "through jax"
    assert bench_files.read_all("h100")[0]["source"] == "of an h100" and bench_files.read_all("h100", "jax") == []
    assert bench_files.read_all("h200")[0]["source"].startswith("h200-1.json.gz")


def test_a_file_under_the_name_of_another_chip_is_refused(data):
    write(data, document(chip="h100")).rename(data / "b200-torch-2026-12-01.json")
    with pytest.raises(BrokenFile, match="it is of h100 with torch"):
        bench_files.read_all("b200")


def test_a_calibration_of_few_points_leaves_what_only_older_ones_know(data):
    from chipwise.predict.learn.bench_calibration import BenchCalibration, bench_calibration

    whole = bench_calibration(Bench(used=True), "h200", "torch")
    few = BenchCalibration(
        "h200",
        "torch",
        "2026-12-01",
        "few.json",
        {},
        {},
        {},
        {"gemm bf16 k=1 m=1 n=1": {"seconds": 1.0, "low": 0.9, "high": 1.1}},
    )
    write(data, few.as_json())
    both = bench_calibration(Bench(used=True), "h200", "torch")
    assert set(both.tables) == set(whole.tables) and set(both.steps) == set(whole.steps) and both.date == "2026-12-01"
    assert len(both.measured) == len(whole.measured) + 1 and both.source.startswith(
        "few.json; what it lacks from h200-1"
    )


def test_a_calibration_that_lacks_a_part_is_told_as_a_broken_file(data):
    from chipwise.predict.learn.bench_calibration import bench_calibration

    raw = dict(bench_files.read_all("h200")[0])
    for name in ("path", "schema", "peaks"):
        del raw[name]
    write(data, {**raw, "date": "2026-12-01"})
    with pytest.raises(BrokenFile, match=r"h200-torch-2026-12-01\.json.*whole calibration.*peaks"):
        bench_calibration(Bench(used=True), "h200", "torch")


def test_other_files_in_the_folder_are_read_over(data):
    data.mkdir(parents=True)
    (data / "notes.txt").write_text("mine")
    (data / "h200-torch-2026-12-01.part").write_text("{")
    assert list(bench_files.all_files()) == sorted(
        packaged_folder().glob("*.json"), key=lambda path: path.stem[-10:], reverse=True
    )


def test_a_broken_file_of_the_user_is_told_not_passed_over(data):
    write(data, document())
    (data / "h200-torch-2026-12-01.json").write_text("{")
    with pytest.raises(BrokenFile):
        bench_files.read_all("h200")


def test_what_comes_with_the_package_can_be_read():
    paths = sorted(packaged_folder().glob("*.json"))
    assert [path.name for path in paths] == [f"{r['chip']}-{r['framework']}-{r['date']}.json" for r in map(read, paths)]
    assert {read(path)["chip"] for path in paths} == {"h200"}
