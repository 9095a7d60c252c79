"""What would be measured: every point once, within the device's memory, few where a compiler waits for each."""

from itertools import product

import pytest

from chipwise.bench.frameworks.interface import Device
from chipwise.bench.plan import FITS, SIZES, halton, needed_bytes, points, spread
from chipwise.errors import InputError
from chipwise.ops.point import DTYPES, KINDS, SUITES
from chipwise.ops.work import work_of

H200 = Device("cuda", "NVIDIA H200", 150e9, 1, cache_bytes=60e6)
EIGHT = Device("cuda", "NVIDIA H200", 150e9, 8, cache_bytes=60e6)
SMALL = Device("cuda", "NVIDIA A10", 24e9, 1, cache_bytes=6e6)
CPU = Device("cpu", "some CPU", 64e9, 1, cache_bytes=30e6)
COLLECTIVES = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"}
FRAMEWORKS = ("torch", "jax")


@pytest.mark.parametrize("size, framework", list(product(SIZES, FRAMEWORKS)))
def test_every_point_comes_once_and_in_its_suite(size, framework):
    every = []
    for suite in SUITES:
        found = points(suite, EIGHT, size, framework)
        assert found and {point.suite for point in found} == {suite}
        every += found
    assert len({point.key() for point in every}) == len(every)
    assert points("all", EIGHT, size, framework) == every


@pytest.mark.parametrize("size, framework", list(product(SIZES, FRAMEWORKS)))
def test_every_point_is_work_that_can_be_counted(size, framework):
    for point in points("all", EIGHT, size, framework):
        assert set(point.sizes) == set(KINDS[point.kind]) and all(value >= 1 for value in point.sizes.values())
        assert work_of(point).moved_bytes > 0


@pytest.mark.parametrize("size, framework, memory", list(product(SIZES, FRAMEWORKS, (8e9, 24e9, 80e9, 150e9))))
def test_every_point_fits_the_memory(size, framework, memory):
    device = Device("cuda", "some GPU", memory, 1)
    assert all(needed_bytes(point) <= FITS * memory for point in points("all", device, size, framework))


def test_a_smaller_device_gets_the_points_that_fit_it():
    large, small = ({point.key() for point in points("all", device, "full", "torch")} for device in (H200, SMALL))
    assert small < large and len(small) > len(large) / 2


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_tiny_is_small(framework):
    found = points("all", EIGHT, "tiny", framework)
    assert len(found) < 40 and len(found) < len(points("all", EIGHT, "quick", framework)) + 10
    assert all(work_of(point).flops < 1e10 and work_of(point).moved_bytes < 2**28 for point in found)
    assert {point.kind for point in found} >= {
        "gemm",
        "copy",
        "sdpa_fwd",
        "adamw",
        "train",
        "prefill",
        "decode",
        "vit_train",
    }


def test_quick_has_every_kind_and_every_precision():
    found = points("all", H200, "quick", "torch")
    assert {point.kind for point in found} == set(KINDS) - COLLECTIVES
    assert {point.dtype for point in found if point.kind == "gemm"} == set(DTYPES)
    train = [point for point in found if point.kind == "train"]
    assert {point.compile for point in train} == {point.remat for point in train} == {True, False}
    assert {point.causal for point in found if point.kind == "sdpa_fwd"} == {True, False}


def test_jax_gets_a_taste_in_a_quick_sweep_and_all_of_it_is_compiled_steps():
    through = {framework: points("all", H200, "quick", framework) for framework in FRAMEWORKS}
    assert len(through["jax"]) < len(through["torch"]) / 20
    assert {point.dtype for point in through["jax"] if point.kind == "gemm"} == set(DTYPES)
    assert all(point.compile for point in through["jax"] if point.suite in ("train", "serve", "vision"))


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_full_is_more_than_quick(framework):
    quick, full = (points("all", H200, size, framework) for size in ("quick", "full"))
    assert len(full) > 1.5 * len(quick)
    if framework == "torch":
        steps = {point.key() for point in quick if point.suite != "kernels"}
        assert steps <= {point.key() for point in full}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_cpu_gets_what_it_can_do(framework):
    found = points("all", CPU, "quick", framework)
    assert {point.suite for point in found} >= {"kernels", "train", "serve"}
    assert len(found) < len(points("all", H200, "full", framework)) / 2
    assert all(work_of(point).flops < 1e12 for point in found)


def test_one_device_has_no_collectives():
    for size in SIZES:
        assert points("collectives", H200, size, "torch") == []
        assert {point.kind for point in points("collectives", EIGHT, size, "torch")} == COLLECTIVES


def test_the_same_points_come_every_time():
    assert points("kernels", H200, "quick", "torch") == points("kernels", H200, "quick", "torch")


def test_draws_fill_their_ranges():
    drawn = list(spread(200, (64, 4096, 64), (1, 300, 1)))
    assert all(64 <= m <= 4096 and m % 64 == 0 and 1 <= n <= 300 for m, n in drawn)
    small = sum(m < 512 for m, _ in drawn)
    assert 0.4 < small / 200 < 0.6  # half of the logarithms lie below 8 x 64
    assert len({halton(i, 3) for i in range(1, 100)}) == 99


def test_a_size_or_suite_that_is_not_known_is_refused():
    with pytest.raises(InputError, match="suite_size: 'huge' is not accepted; expected one of tiny, quick, full"):
        points("kernels", H200, "huge", "torch")
    with pytest.raises(InputError, match="suite: 'dance' is not accepted; expected one of kernels, train"):
        points("dance", H200, "tiny", "torch")
