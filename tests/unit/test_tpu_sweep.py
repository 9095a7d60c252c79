"""The sweep through the TPU compilers: what is asked, how rows are kept, the tables made of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from chipwise.calibrate.dated_files import compiled_path, merge
from chipwise.calibrate.tpu_rows import FILE, Row, read_rows, write_rows
from chipwise.calibrate.tpu_shapes import LARGEST_BYTES, design, swept
from chipwise.calibrate.tpu_sweep import complete, missing
from chipwise.calibrate.tpu_tables import held_out, kept, table_cycles, tables, tables_in_words, usable
from chipwise.catalog import load
from chipwise.catalog.calibration import load_calibration
from chipwise.errors import BrokenFile
from chipwise.predict.model.shapes import Products
from chipwise.predict.model.systolic import POINTS, CycleTable, factor_at, systolic_seconds

pytestmark = pytest.mark.thorough

DATA = Path(__file__).parents[2] / "src" / "chipwise" / "catalog" / "data" / "calibration"
ROWS = usable(read_rows(DATA / FILE))


def row(**changes: object) -> Row:
    one = Row("v5e", "matmul", "bf16", "1", "128", "256", "512", "nn", "", 1000.0, 4e5, 0.0, 1, "", "0.10.2", "0.0.42")
    return replace(one, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("chip", swept())
def test_the_design_is_the_same_every_time_and_fits(chip: str) -> None:
    asked = design(load().chips[chip])
    assert asked == design(load().chips[chip])
    assert len({a.key for a in asked}) == len(asked)
    plain = [a for a in asked if a.kind == "matmul" and a.dtype == "bf16" and a.order == "nn" and a.batch == 1]
    assert len(plain) >= 40
    for size in ("m", "n", "k"):
        found = [getattr(a, size) for a in plain]
        assert max(found) / min(found) > 300, size
        assert any(x % 128 for x in found), size
    assert all(2 * a.batch * (a.m * a.k + a.k * a.n + a.m * a.n) < LARGEST_BYTES for a in asked if a.kind != "conv")
    assert {a.dtype for a in asked} == {"bf16", "fp32"} | ({"int8", "fp8"} & set(load().chips[chip].peak))


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    rows = [row(), row(chip="v6e", options="xla_tpu_scoped_vmem_limit_kib=98304", window="64x56x64x64x3x1")]
    write_rows(tmp_path / FILE, rows)
    assert read_rows(tmp_path / FILE) == rows
    assert [p.name for p in tmp_path.iterdir()] == [FILE]
    assert read_rows(tmp_path / "absent.csv") == []


@pytest.mark.parametrize("text", ["", "chip,kind\nv5e,matmul\n"])
def test_a_file_with_other_columns_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(BrokenFile, match="columns"):
        read_rows(tmp_path / FILE)


def test_a_row_without_numbers_is_refused(tmp_path: Path) -> None:
    write_rows(tmp_path / FILE, [row(m="many")])
    with pytest.raises(BrokenFile, match="numbers"):
        read_rows(tmp_path / FILE)


def test_a_sweep_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path = tmp_path / FILE
    whole = missing(path)
    assert set(whole) == set(swept())
    first = design(load().chips["v5e"])[0]
    write_rows(path, [row(**dict(zip(("kind", "dtype", "batch", "m", "n", "k", "order", "window"), first.key,
                                     strict=True)))])  # fmt: skip
    assert missing(path) == {**whole, "v5e": whole["v5e"] - 1}


def test_nothing_is_asked_when_every_row_is_there() -> None:
    said: list[str] = []
    if not missing(DATA / FILE):
        complete(DATA / FILE, said.append)
        assert said == []


def test_merging_keeps_other_keys(tmp_path: Path) -> None:
    path = compiled_path(tmp_path, "2026-01-01")
    merge(path, {"v6e": {"attention": 0.5}, "other": [1]})
    merge(path, {"v6e": {"cycles": 1.1}, "tables": {"chips": {}}})
    assert json.loads(path.read_text()) == {
        "v6e": {"attention": 0.5, "cycles": 1.1}, "other": [1], "tables": {"chips": {}},
    }  # fmt: skip
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_merging_into_something_else_is_refused(tmp_path: Path) -> None:
    path = compiled_path(tmp_path, "2026-01-01")
    for text in ("[1]", "{"):
        path.write_text(text)
        with pytest.raises(BrokenFile):
            merge(path, {})
        assert path.read_text() == text


def test_held_out_shapes_are_met_and_said() -> None:
    found = held_out(ROWS)
    assert found["median"] <= 0.05
    assert set(found["chips"]) == set(swept())
    assert found["shapes"] >= 80 and found["rows"] >= 450
    stored = load_calibration(bench=False).training.compiled["tables"]
    assert stored["held_out"] == found
    assert f"median error {found['median']:.1%}" in tables_in_words(stored)[0]


def test_the_stored_tables_are_those_of_the_rows() -> None:
    stored = load_calibration(bench=False).training.compiled["tables"]["chips"]
    made = tables(ROWS)["chips"]
    assert set(stored) == set(made) == set(swept())
    for chip, entry in made.items():
        assert np.max(np.abs(np.subtract(entry["factors"], stored[chip]["factors"]))) <= 2
        assert all("libtpu" in version for version in entry["versions"])


def test_tables_give_back_the_rows_they_were_made_of() -> None:
    made = kept(ROWS)
    for chip, entry in made.items():
        mine = [r for r in ROWS if r.chip == chip]
        errors = np.abs(table_cycles(entry, mine) / np.array([r.cycles for r in mine]) - 1)
        assert np.median(errors) < 0.04, chip


def test_a_grid_is_linear_between_its_points_and_level_beyond() -> None:
    factors = np.arange(np.prod(POINTS), dtype=float).reshape(POINTS)

    def at(m: float, n: float, k: float) -> float:
        return float(factor_at(factors, *(np.array(x) for x in (m, n, k))))

    assert at(8, 16, 16) == 0.0
    assert at(8, 16, 32) == 1.0
    assert at(8, 16, 2**4.25) == pytest.approx(0.25)
    assert at(2**3.5, 16, 16) == pytest.approx(0.5 * POINTS[1] * POINTS[2])
    assert at(1, 1, 1) == 0.0
    assert at(2**30, 2**30, 2**30) == factors[-1, -1, -1]


def test_a_product_is_never_faster_than_the_peak() -> None:
    table = CycleTable(1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, factors=np.full(POINTS, -3.0))
    size = np.array(4096.0)
    seconds = systolic_seconds(table, 1e15, 1e15, 256, Products(size, size, size))
    assert float(seconds) >= 2 * 4096**3 / 1e15


def test_two_devices_share_the_rows_of_a_product() -> None:
    from chipwise.predict.microbenchmark import Kernel, predict_kernel

    chip = load().chips["v7x"]
    both = predict_kernel(Kernel("gemm", m=8192, n=8192, k=8192, devices=2), chip, load_calibration(bench=False))
    one = predict_kernel(Kernel("gemm", m=4096, n=8192, k=8192, devices=1), chip, load_calibration(bench=False))
    assert both == pytest.approx(one, rel=0.02)
