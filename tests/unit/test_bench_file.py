"""The bench file: what is written is read back, whatever is wrong with it is one line naming the field."""

import gzip
import json
import sys

import pytest
from bench_files import EVERYTHING, bench_file

from chipwise.bench.file import SCHEMA, read, rows, text, write
from chipwise.bench.measurement import COLUMNS, MORE_COLUMNS
from chipwise.bench.spec import schema
from chipwise.errors import BrokenFile, InputError


@pytest.fixture
def kept(tmp_path):
    path = tmp_path / "bench.json"
    write(EVERYTHING, path)
    return path


def changed(path, change):
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    return path


def test_what_is_written_is_read_back(kept):
    assert read(kept) == EVERYTHING
    assert [each.name for each in kept.parent.iterdir()] == ["bench.json"]


def test_a_file_with_no_points_is_whole(tmp_path):
    write(bench_file(), tmp_path / "none.json")
    assert read(tmp_path / "none.json").points == ()


def test_a_point_takes_a_line():
    lines = text(EVERYTHING).splitlines()
    assert sum('"kind"' in line for line in lines) == len(EVERYTHING.points)


def test_keys_of_later_versions_are_read_over(kept):
    changed(kept, lambda d: (d.update(weather="fine"), d["points"][0].update(mood="good")))
    assert read(kept) == EVERYTHING


def test_the_first_spelling_of_utilization_is_read(kept):
    def older(document):
        for point in document["points"]:
            watched = point.get("watched") or {}
            if "utilization" in watched:
                watched["utilisation"] = watched.pop("utilization")

    assert "utilization" in kept.read_text()
    changed(kept, older)
    assert "utilization" not in kept.read_text() and read(kept) == EVERYTHING


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda d: d.update(schema="chipwise.bench/2"), f"schema {SCHEMA} (it says 'chipwise.bench/2')"),
        (lambda d: d.pop("schema"), "a bench file"),
        (lambda d: d.pop("device"), "device, which is missing"),
        (lambda d: d["device"].update(platform="abacus"), "device.platform"),
        (lambda d: d["points"][0].pop("m"), "points[0]: gemm needs the size m"),
        (lambda d: d["points"][0]["seconds"].update(median=-1), "points[0].seconds.median"),
        (lambda d: d["points"][0]["seconds"].update(median=float("nan")), "points[0].seconds.median"),
        (lambda d: d.update(elapsed_s=float("inf")), "elapsed_s: a finite number"),
        (lambda d: d["environment"].update(cores=float("inf")), "environment.cores"),
        (lambda d: d["telemetry"]["settings"].update(power_w=float("nan")), "telemetry.settings.power_w"),
        (lambda d: d["points"][0].update(kind="dance"), "points[0].kind"),
        (lambda d: d["points"][0].update(status="great"), "points[0].status"),
        (lambda d: d["points"][0].pop("seconds"), "seconds are missing"),
        (lambda d: d.update(created="yesterday"), "created"),
        (lambda d: d.update(points=3), "points"),
        (lambda d: d["points"][0].update(m="many"), "points[0].m"),
    ],
)
def test_a_broken_file_is_one_line_naming_the_field(kept, change, words):
    with pytest.raises(BrokenFile) as raised:
        read(changed(kept, change))
    assert words in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize("size", [0, 1, 100, 900])
def test_a_truncated_file_is_one_line(kept, size):
    kept.write_text(kept.read_text()[:size])
    with pytest.raises(BrokenFile, match="whole JSON"):
        read(kept)


@pytest.mark.parametrize("content", [b"[1]", b"\xff\xfe\x00", b"3", b'"chipwise.bench/1"'])
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "other").write_bytes(content)
    with pytest.raises(BrokenFile):
        read(tmp_path / "other")


@pytest.mark.parametrize("name", ["endless.json", "endless.json.gz"])
def test_what_never_ends_is_read_no_further_than_a_bench_file_may_be(tmp_path, monkeypatch, name):
    monkeypatch.setattr(sys.modules[read.__module__], "MOST_BYTES", 2**20)  # `chipwise.bench` is the verb
    data = bytes(2**20 + 1)
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    with pytest.raises(BrokenFile, match="at most 1 MiB"):
        read(tmp_path / name)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(BrokenFile, match="no such file"):
        read(tmp_path / "absent.json")
    with pytest.raises(BrokenFile, match="a file, not a folder"):
        read(tmp_path)


def test_a_place_that_cannot_be_written_is_named_and_nothing_is_left(tmp_path):
    with pytest.raises(InputError, match=r"^out: "):
        write(EVERYTHING, tmp_path / "no" / "folder.json")
    (tmp_path / "taken.json").mkdir()
    with pytest.raises(InputError, match=r"^out: "):
        write(EVERYTHING, tmp_path / "taken.json")
    assert [each.name for each in tmp_path.iterdir()] == ["taken.json"]


def test_rows_hold_the_usable_points():
    found = rows(EVERYTHING)
    assert [row["kind"] for row in found] == ["gemm", "copy", "train", "sdpa_fwd", "adamw", "all_reduce"]
    assert all(tuple(row) == (*COLUMNS, *MORE_COLUMNS) for row in found)
    product, _, train, _, adamw, reduce = found
    assert (product["m"], product["peak_gib"], product["seconds"]) == (4096, "1", pytest.approx(2e-4))
    assert (train["model"], train["compile"], train["remat"], train["params"], train["vocab"]) == ("gpt2", 1, 1, 100, 7)
    assert adamw["params"] == 1000 and (reduce["bytes"], reduce["n"]) == (1024, 8)
    assert rows(EVERYTHING, "jax") == []


def test_the_schema_describes_what_is_written():
    described = schema()
    assert described["title"] == "chipwise bench file" and set(described["properties"]) == set(EVERYTHING.as_json())
    point = described["$defs"]["PointSpec"]["properties"]
    assert all(set(each) <= set(point) for each in EVERYTHING.as_json()["points"])
