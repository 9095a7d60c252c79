"""How long a compiled schedule takes: a walk in program order, with the link model beside the compiler's cycles.

Products take the compiler's cycles over the clock, corrected by what published products of that generation took;
everything bound by memory takes its bytes over the bandwidth; attention kernels their arithmetic at the share of peak
that such kernels reach; collectives the wires of the topology. A start runs beside what follows until its wait.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from chipwise.catalog import Accelerators
from chipwise.catalog.calibration import Calibration
from chipwise.compiled.timing.schedule import Branch, Item, Loop, Op, Schedule
from chipwise.predict.model.fabric import Wires, exchange_seconds, gather_seconds, reduce_seconds, send_seconds
from chipwise.predict.model.kernels import head_factor
from chipwise.predict.site import compute_spec, wires

LANES = {"collective": "wires", "host": "host", "copy": "memory", "kernel": "core", "attention": "core"}
LAUNCH_S = 1.0e-6  # from one op of a TensorCore to the next (Pallas documentation, grid overhead 0.35 us; 2025-06)


@dataclass(frozen=True, slots=True)
class ClockRates:
    """What turns a schedule's cycles and bytes into seconds on one device of a chip."""

    clock: float  # cycles/s
    cycles: float  # seconds a cycle really takes, over 1 / clock
    peak: float  # FLOP/s of one device
    bandwidth: float  # bytes/s that streams reach, of one device
    host: float  # bytes/s over the host link, of one device
    attention: float  # share of the peak of attention kernels, head size set aside
    mxu: int
    wires: Wires
    devices: int  # of a chip


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of a schedule, and where they go."""

    seconds: float
    by_kind: Mapping[str, float]  # exposed seconds: they add up to `seconds`
    by_source: Mapping[str, float]
    hidden: Mapping[str, float]  # seconds on each lane that ran beside compute
    collectives: tuple[CollectiveTime, ...]
    unknown: float = 0.0  # seconds of kernels nothing is known of, taken by their bytes


@dataclass(frozen=True, slots=True)
class CollectiveTime:
    """All runs of one collective instruction."""

    name: str
    op: str
    data: float
    size: int
    times: float
    seconds: float  # of all runs, on the wires
    exposed: float
    source: str


def clock_rates(acc: Accelerators, calibration: Calibration, dtype: str = "bf16") -> ClockRates:
    """The rates of a chip under a calibration."""
    chip = acc.chip
    spec = compute_spec(chip, dtype, chip.peak.get(dtype) or chip.peak["bf16"], calibration)
    devices = chip.devices
    rates = calibration.training.compiled.get(chip.id) or calibration.training.compiled.get("tpu", {})
    return ClockRates(
        clock=chip.clock_hz,
        cycles=rates.get("cycles", 1.0),
        peak=spec.peak / devices,
        bandwidth=spec.bandwidth * spec.coefficients.memory / devices,
        host=chip.fabric.host_link / devices,
        attention=rates.get("attention", spec.coefficients.attention),
        mxu=chip.mxu,
        wires=wires(acc, calibration),
        devices=devices,
    )


def op_seconds(op: Op, rates: ClockRates) -> float:
    """Seconds of one op on its own."""
    if op.kind == "collective":
        return collective_seconds(op, rates)
    if op.kind == "host":
        return op.hbm / rates.host
    moved = op.hbm / rates.bandwidth
    if op.kind in ("matmul", "conv"):
        cycles = op.cycles * rates.cycles / rates.clock if op.cycles else op.flops / rates.peak
        return max(cycles, moved) + LAUNCH_S
    if op.kind == "attention":
        return (
            max(attention_flops(op) / (rates.peak * rates.attention * head_factor(op.attention[3], rates.mxu)), moved)
            + LAUNCH_S
        )
    if op.kind == "wait":
        return 0.0
    if op.kind == "gather":
        return 2 * moved + LAUNCH_S  # rows come and go one by one
    return moved + LAUNCH_S


def attention_flops(op: Op) -> float:
    """Arithmetic of an attention kernel: its products over the part of the scores that the mask leaves."""
    lead, rows, keys, head, share, products = op.attention
    return 2.0 * lead * rows * keys * head * share * products


def collective_seconds(op: Op, rates: ClockRates) -> float:
    """Seconds of a collective on the wires; devices of one chip share them."""
    c = op.collective
    assert c is not None
    size, stride = c.size / rates.devices, max(c.stride / rates.devices, 1.0)
    if c.op == "permute":
        return float(send_seconds(rates.wires, np.array(stride), np.array(c.data)))
    if size <= 1:  # inside a chip
        return c.data / rates.bandwidth
    args = (rates.wires, np.array(size), np.array(stride))
    # each device of a chip moves its own copy of a gathered buffer over the chip's links
    data = np.array(c.data)
    if c.op in ("gather", "scatter"):
        return float(gather_seconds(*args, data))
    if c.op == "reduce":
        return float(reduce_seconds(*args, data))
    return float(exchange_seconds(*args, data))


@dataclass(slots=True)
class _Clock:
    """Where time stands on each lane while a block is walked."""

    now: float = 0.0
    free: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    ends: dict[str, tuple[float, Op, float]] = field(default_factory=dict)  # pair -> end, op, seconds


class _Walk:
    def __init__(self, schedule: Schedule, rates: ClockRates) -> None:
        self.schedule, self.rates = schedule, rates
        self.kinds: dict[str, float] = defaultdict(float)
        self.sources: dict[str, float] = defaultdict(float)
        self.hidden: dict[str, float] = defaultdict(float)
        self.wires: dict[str, list[float]] = {}
        self.ops: dict[str, Op] = {}
        self.unknown = 0.0

    def block(self, name: str, times: float) -> float:
        """Seconds of one run of a block; what it spends is booked `times` over."""
        clock = _Clock()
        for item in self.schedule.blocks[name]:
            self._item(item, clock, times)
        last = max([clock.now, *(end for end, _, _ in clock.ends.values())])
        if last > clock.now:  # what nobody waited for ends with the block
            self._book("copy", "", last - clock.now, times)
        return last

    def _item(self, item: Item, clock: _Clock, times: float) -> None:
        if isinstance(item, Loop):
            clock.now += self.block(item.block, times * item.trips) * item.trips
        elif isinstance(item, Branch):
            clock.now += max((self.block(b, times) for b in item.blocks), default=0.0)
        elif item.kind == "wait":
            self._wait(item, clock, times)
        elif item.pair:
            seconds, lane = op_seconds(item, self.rates), LANES.get(item.kind, "memory")
            start = max(clock.now, clock.free[lane])
            clock.free[lane] = start + seconds
            clock.ends[item.pair] = (start + seconds, item, seconds)
        else:
            seconds = op_seconds(item, self.rates)
            clock.now += seconds
            self._book(item.kind, item.source, seconds, times)
            if item.kind == "collective":
                self._wire(item, seconds, seconds, times)
            elif item.kind == "kernel":
                self.unknown += seconds * times

    def _wait(self, item: Op, clock: _Clock, times: float) -> None:
        end, op, seconds = clock.ends.pop(item.pair, (clock.now, item, 0.0))
        exposed = max(end - clock.now, 0.0)
        clock.now = max(clock.now, end)
        self._book(op.kind, op.source, exposed, times)
        self.hidden[op.kind] += max(seconds - exposed, 0.0) * times
        if op.kind == "collective":
            self._wire(op, seconds, min(exposed, seconds), times)

    def _book(self, kind: str, source: str, seconds: float, times: float) -> None:
        self.kinds[kind] += seconds * times
        if source:
            self.sources[source] += seconds * times

    def _wire(self, op: Op, seconds: float, exposed: float, times: float) -> None:
        self.ops[op.name] = op
        row = self.wires.setdefault(op.name, [0.0, 0.0, 0.0])
        for i, value in enumerate((times, seconds * times, exposed * times)):
            row[i] += value


def time_schedule(schedule: Schedule, rates: ClockRates) -> Timing:
    """Walk the schedule from its entry."""
    walk = _Walk(schedule, rates)
    total = walk.block(schedule.entry, 1.0)
    collectives = []
    for name, (times, seconds, exposed) in walk.wires.items():
        op = walk.ops[name]
        assert op.collective is not None
        collectives.append(
            CollectiveTime(
                name, op.collective.op, op.collective.data, op.collective.size, times, seconds, exposed, op.source
            )
        )
    order = sorted(walk.sources.items(), key=lambda pair: -pair[1])
    return Timing(
        total,
        dict(walk.kinds),
        dict(order),
        dict(walk.hidden),
        tuple(sorted(collectives, key=lambda c: -c.seconds)),
        walk.unknown,
    )
