"""Schedules of the committed modules: arithmetic against the programs' own, bytes, collectives, loops."""

from __future__ import annotations

import json

import pytest
from hlo_samples import NAMES, module

from chipwise.compiled.timing.extract import extract
from chipwise.compiled.timing.schedule import Loop, Op, Schedule


def flops(name: str) -> float:
    return sum(op.flops * times for op, times in extract(module(name)).ops())


def collectives(name: str) -> list[tuple[str, float, int, int]]:
    found = [op.collective for op, _ in extract(module(name)).ops() if op.collective]
    return [(c.op, c.data, c.size, c.stride) for c in found]


@pytest.mark.parametrize("name", NAMES)
def test_a_schedule_survives_json(name: str) -> None:
    made = extract(module(name))
    again = Schedule.from_json(json.loads(json.dumps(made.as_json())))
    assert again.as_json() == made.as_json()
    assert again.ops() == made.ops()


@pytest.mark.parametrize("name", NAMES)
def test_every_wait_ends_something_that_started_before_it(name: str) -> None:
    for items in extract(module(name)).blocks.values():
        open_pairs: set[str] = set()
        for item in items:
            if isinstance(item, Op) and item.kind == "wait":
                assert item.pair in open_pairs
            elif isinstance(item, Op) and item.pair:
                open_pairs.add(item.pair)


def test_arithmetic_of_a_training_step_is_that_of_its_source() -> None:
    """6 layers, 1,024 rows a device, 2 products of 2048 x 8192: forward, again in the backward pass, and 2 gradients."""
    product = 2 * 1024 * 2048 * 8192
    forward, again, gradients = 2, 2, 4
    whole = 6 * product * (forward + again + gradients)
    # the gradients of the last layer's input and of the second product made again are never needed
    assert whole - 6 * product <= flops("fsdp_gathers_v5e") <= whole


def test_windowed_einsums_do_the_same_arithmetic_as_whole_gathers() -> None:
    assert flops("fsdp_scan_v5e") == pytest.approx(flops("fsdp_gathers_v5e"), rel=1e-6)


def test_a_product_knows_its_rows_columns_and_contraction() -> None:
    found = [p for op, _ in extract(module("matmul_tpu7x")).ops() for p in op.products]
    assert {(p.m, p.n, p.k, p.batch) for p in found} >= {(1024, 4096, 4096, 1), (2048, 2048, 2048, 1)}
    assert {p.dtype for p in found} == {"bf16", "f8e4m3fn"}


def test_convolutions_count_every_tap_that_meets_the_image() -> None:
    found = [op for op, _ in extract(module("convnet_v4")).ops() if op.kind in ("conv", "matmul")]
    total = sum(op.flops for op in found)
    # forward: 7x7x3x64 at 56x56, 3x3x64x128 at stride 2 (28x28), 1x1x128x256; backward of weights and inputs
    images = 64 // 8
    first, second, third = (
        images * size**2 * taps * a * b * 2
        for size, taps, a, b in ((56, 49, 3, 64), (28, 9, 64, 128), (28, 1, 128, 256))
    )
    whole = 2 * first + 3 * second + 3 * third  # the image needs no gradient
    assert 0.8 * whole < total < 1.02 * whole  # taps beyond the edge are not counted


def test_splash_attention_is_known_by_its_shapes() -> None:
    found = [op.attention for op, _ in extract(module("splash_v6e")).ops() if op.kind == "attention"]
    assert {(a[1], a[2], a[3]) for a in found} == {(2048, 2048, 128)}
    assert {a[0] for a in found} == {8.0}  # two sequences a device, four heads
    assert sorted(a[5] for a in found)[0] == 2.0  # forward: two products


def test_collectives_of_a_mixture_of_experts() -> None:
    found = collectives("moe_v5p")
    ops = [op for op, *_ in found]
    assert ops.count("exchange") == 2 and "permute" in ops and "reduce" in ops
    assert {(size, stride) for op, _, size, stride in found if op == "exchange"} == {(4, 1)}
    assert {data for op, data, *_ in found if op == "exchange"} == {1024 * 1024 * 2.0}
    assert {(size, stride) for op, _, size, stride in found if op == "reduce" and size == 2} == {(2, 4)}


def test_hidden_gathers_are_booked_once() -> None:
    made = extract(module("fsdp_gathers_v5e"))
    gathers = [(op, times) for op, times in made.ops() if op.collective and op.collective.op == "gather"]
    layer = 2048 * 8192 * 2.0  # bf16
    moved = sum(op.collective.data * times for op, times in gathers if op.collective)
    # two weights, forward and backward, of six layers; one of them may be kept
    assert 6 * 3 * layer <= moved <= 6 * 4 * layer


def test_collectives_of_the_sparse_cores_are_collectives() -> None:
    found = [(op, data, size) for op, data, size, _ in collectives("sparsecore_tpu7x")]
    weight = 2048 * 8192 * 2.0
    assert ("gather", weight, 8) in found
    assert sum(data for op, data, _ in found if op in ("scatter", "reduce")) >= 2 * weight  # both gradients
    started = [op for op, _ in extract(module("sparsecore_tpu7x")).ops() if op.collective and op.pair]
    assert started, "they run beside the products"


def test_offload_crosses_the_host_link_both_ways() -> None:
    made = extract(module("offload_v6e"))
    moved = sum(op.hbm * times for op, times in made.ops() if op.kind == "host")
    tensor = 4096 * 2048 * 2.0
    assert moved == pytest.approx(2 * 4 * 2 * tensor, rel=0.2)  # two tensors of four layers, out and back


def test_a_loop_whose_length_depends_on_data_says_so() -> None:
    loops = [i for items in extract(module("data_dependent_v5e")).blocks.values() for i in items if isinstance(i, Loop)]
    assert loops and all(not loop.known for loop in loops)


def test_operands_on_the_chip_move_no_memory() -> None:
    made = extract(module("nested_scan_v5e"))
    inner = [op for op, times in made.ops() if times >= 21 and op.kind == "matmul"]
    whole = (256 * 512 * 2 + 512 * 512) * 4.0
    assert inner and all(op.hbm <= whole for op in inner)
