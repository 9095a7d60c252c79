"""A chip of one's own in one file: what it says, what it takes from the chip it is like, and what is refused."""

import json

import pytest
from command import EXAMPLE, ROOT, chipwise_alone

SERVED = ROOT / "examples" / "llama-3.1-70b-serve.yaml"
OWN = """
name: h100-oem
like: h100
title: H100 OEM 120GB
memory: {value: 120 GiB, source: a vendor's offer, date: 2026-11}
bandwidth: 3.0 TB/s
peak: {bf16: 900 TFLOP/s, fp8: none}
power: 500 W
price: 2.05
"""
TOML = """
name = "v5e-fast"
like = "v5e"
source = "a data sheet"
bandwidth = "1.2 TB/s"
price = 1.1
"""


@pytest.fixture
def own(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text(OWN)
    return path


def answer(*words):
    done = chipwise_alone(*words, "-o", "json")
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return json.loads(done.stdout)


def test_a_step_on_it_is_bounded_however_much_is_published_of_its_relative(own):
    step = answer("predict", EXAMPLE, "--chip", own, "--on", "h100-oem:64")["step_seconds"]
    relative = answer("predict", EXAMPLE, "--on", "h100:64")["step_seconds"]
    assert (step["evidence"], relative["evidence"]) == ("bounded", "modelled")
    assert "like h100" in step["because"]
    assert step["high"] / step["value"] >= relative["high"] / relative["value"]
    assert step["low"] / step["value"] <= relative["low"] / relative["value"]


def test_it_is_compared_at_its_price_beside_a_chip_of_the_catalog(own):
    rows = answer("compare", EXAMPLE, "--chip", own, "--on", "h100-oem:64,h100:64")["rows"]
    mine = next(row for row in rows if row["accelerators"]["chip"] == "h100-oem")
    assert len(rows) == 2 and mine["step_seconds"]["evidence"] == "bounded"
    assert mine["ondemand"]["usd"]["value"] > 0


def test_its_service_is_bounded_too(own):
    capacity = answer("serving", "capacity", SERVED, "--chip", own, "--on", "h100-oem:8")
    assert '"bounded"' in json.dumps(capacity) and '"modelled"' not in json.dumps(capacity)


def test_a_precision_that_it_lacks_is_refused(own):
    done = chipwise_alone("predict", EXAMPLE, "--chip", own, "--on", "h100-oem:64", "--precision", "fp8")
    assert done.returncode == 2 and "fp8" in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_tpu_like_another_has_its_slices(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(TOML)
    step = answer("predict", EXAMPLE, "--chip", path, "--on", "v5e-fast:8x16")["step_seconds"]
    assert step["evidence"] == "bounded"
    done = chipwise_alone("layouts", EXAMPLE, "--chip", path, "--on", "v5e-fast:7x3")
    assert done.returncode == 2 and "v5e-fast slice" in done.stderr


def test_every_figure_says_its_source_or_whose_it_is(own):
    figures = answer("chips", "h100-oem", "--chip", own)["chips"][0]["figures"]
    assert figures["memory_bytes"]["source"] == "a vendor's offer" and figures["memory_bytes"]["date"] == "2026-11"
    assert str(own) in figures["bandwidth"]["source"]
    assert figures["cores"]["note"].startswith("assumed: as h100")
    assert figures["usable_bytes"]["note"].startswith("assumed: 0.989 of it")
