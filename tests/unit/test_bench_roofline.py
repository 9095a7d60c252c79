"""Ceilings come from the file's own best points; the picture is written whole, as SVG or PNG."""

import pytest
from bench_files import EVERYTHING, bench_file, spread, timed
from bench_numpy import copy, gemm

from chipwise.bench.roofline import draw, roofline
from chipwise.errors import ChipwiseError, InputError


def test_ceilings_are_the_best_of_the_file_beside_the_catalogs():
    found = roofline(EVERYTHING)
    assert found.bandwidth == pytest.approx(2**29 / 1.3e-4, rel=1e-3)
    assert found.measured == {"bf16": pytest.approx(7e14, rel=1e-3)}
    assert found.stated["bf16"] > found.measured["bf16"] and found.stated_bandwidth > found.bandwidth
    assert {dot.kind for dot in found.dots} == {"gemm", "sdpa_fwd"}


def test_a_file_without_arithmetic_has_no_roofline():
    with pytest.raises(ChipwiseError, match="no usable point"):
        roofline(bench_file(timed(copy(), *spread(1.0), moved_bytes=1.0)))


@pytest.mark.parametrize("name, magic", [("r.svg", b"<?xml"), ("r.png", b"\x89PNG")])
def test_the_picture_is_what_its_name_says(tmp_path, name, magic):
    draw(roofline(EVERYTHING), tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(magic) and len(list(tmp_path.iterdir())) == 1


def test_a_chip_that_is_unknown_and_no_copy_still_make_a_picture(tmp_path):
    alone = bench_file(timed(gemm(), *spread(1.0), flops=1e9, moved_bytes=1e6), chip="")
    found = roofline(alone)
    assert found.bandwidth is None and found.stated == {}
    draw(found, tmp_path / "r.svg")


@pytest.mark.parametrize("name", ["r.gif", "r", "no/r.svg"])
def test_a_name_that_cannot_be_written_is_refused(tmp_path, name):
    with pytest.raises(InputError, match=r"^plot: "):
        draw(roofline(EVERYTHING), tmp_path / name)
    assert not list(tmp_path.iterdir())
