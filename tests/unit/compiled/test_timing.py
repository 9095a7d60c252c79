"""The walk: what runs beside what, loops, and the laws any clock obeys."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hlo_samples import NAMES, module
from hypothesis import given
from hypothesis import strategies as st

from chipwise.catalog import parse
from chipwise.catalog.calibration import load_calibration
from chipwise.compiled.timing.extract import extract
from chipwise.compiled.timing.schedule import Branch, Collective, Loop, Op, Schedule
from chipwise.compiled.timing.timing import LAUNCH_S, ClockRates, clock_rates, op_seconds, time_schedule

PACE = clock_rates(parse("v5e:4x4"), load_calibration(bench=False))
COMPUTE = Op("matmul", "m", cycles=1.5e6)
GATHER = Op("collective", "g", collective=Collective("gather", 64e6, 16, 1, 1))


def schedule(*items: Op | Loop | Branch, **blocks: list[Op | Loop | Branch]) -> Schedule:
    return Schedule("main", {"main": list(items), **blocks}, 16)


def seconds(*items: Op | Loop | Branch, **blocks: list[Op | Loop | Branch]) -> float:
    return time_schedule(schedule(*items, **blocks), PACE).seconds


def started(op: Op, pair: str = "p") -> Op:
    return replace(op, pair=pair)


def wait(pair: str = "p") -> Op:
    return Op("wait", "w", pair=pair)


def test_what_is_not_started_ahead_waits_its_turn() -> None:
    assert seconds(COMPUTE, GATHER) == pytest.approx(op_seconds(COMPUTE, PACE) + op_seconds(GATHER, PACE))


def test_a_collective_hides_behind_compute_until_its_wait() -> None:
    apart, beside = op_seconds(GATHER, PACE), seconds(started(GATHER), COMPUTE, wait())
    assert beside == pytest.approx(max(apart, op_seconds(COMPUTE, PACE)))


def test_two_collectives_share_the_wires() -> None:
    both = seconds(started(GATHER, "a"), started(GATHER, "b"), wait("a"), wait("b"))
    assert both == pytest.approx(2 * op_seconds(GATHER, PACE))


def test_a_copy_to_the_host_and_a_collective_do_not() -> None:
    host = Op("host", "h", hbm=1e8)
    both = seconds(started(host, "a"), started(GATHER, "b"), wait("a"), wait("b"))
    assert both == pytest.approx(max(op_seconds(host, PACE), op_seconds(GATHER, PACE)))


def test_a_loop_runs_its_block_so_often() -> None:
    once = seconds(COMPUTE, GATHER)
    assert seconds(Loop("body", 7), body=[COMPUTE, GATHER]) == pytest.approx(7 * once)


def test_of_branches_the_longest_counts() -> None:
    assert seconds(Branch(("a", "b")), a=[COMPUTE], b=[COMPUTE, COMPUTE]) == pytest.approx(seconds(COMPUTE, COMPUTE))


def test_a_product_is_never_faster_than_its_bytes() -> None:
    fed = replace(COMPUTE, hbm=1e12)
    assert op_seconds(fed, PACE) == pytest.approx(1e12 / PACE.bandwidth + LAUNCH_S)


@given(st.lists(st.tuples(st.sampled_from(["matmul", "stream", "collective"]), st.floats(0, 1e7)), max_size=12))
def test_parts_add_up_and_faster_chips_are_never_slower(drawn: list[tuple[str, float]]) -> None:
    ops: list[Op | Loop | Branch] = []
    for i, (kind, size) in enumerate(drawn):
        if kind == "collective":
            ops += [Op("collective", f"c{i}", collective=Collective("gather", size, 16, 1, 1), pair=f"c{i}")]
        else:
            ops.append(Op(kind, f"o{i}", cycles=size if kind == "matmul" else 0.0, hbm=size))
    ops += [wait(f"c{i}") for i, (kind, _) in enumerate(drawn) if kind == "collective"]
    made = schedule(*ops)
    found = time_schedule(made, PACE)
    assert sum(found.by_kind.values()) == pytest.approx(found.seconds, rel=1e-9, abs=1e-12)
    faster = replace(PACE, clock=2 * PACE.clock, bandwidth=2 * PACE.bandwidth)
    assert time_schedule(made, faster).seconds <= found.seconds * (1 + 1e-12)
    alone = sum(op_seconds(op, PACE) for op in ops if isinstance(op, Op))
    assert max((op_seconds(op, PACE) for op in ops if isinstance(op, Op)), default=0.0) <= found.seconds * (1 + 1e-12)
    assert found.seconds <= alone * (1 + 1e-12) + 1e-15


@pytest.mark.parametrize("name", [n for n in NAMES if not n.endswith("h100")])
def test_every_module_takes_a_time_that_its_parts_add_up_to(name: str) -> None:
    chip = {"tpu7x": "v7x"}.get(name.rpartition("_")[2], name.rpartition("_")[2])
    acc = parse({"v5e": "v5e:4x4", "v6e": "v6e:2x4", "v5p": "v5p:2x2x2", "v4": "v4:2x2x2", "v7x": "v7x:2x2x1"}[chip])
    rates: ClockRates = clock_rates(acc, load_calibration(bench=False))
    found = time_schedule(extract(module(name)), rates)
    assert 0 < found.seconds < 1
    assert sum(found.by_kind.values()) == pytest.approx(found.seconds)
