"""Edge devices side by side on one model: the best power mode of each within a limit, ranked, with a pick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Any, ClassVar

from chipwise.catalog.edge import EdgeDevice, PowerMode, edge_devices, find_devices
from chipwise.catalog.edge_calibration import EdgeCalibration
from chipwise.catalog.edge_models import EdgeModel
from chipwise.errors import DoesNotFit, InputError, Refusal
from chipwise.predict.estimate import Estimate
from chipwise.present.blocks import Block, Text, section
from chipwise.present.columns import Column, flat, padded, record, table
from chipwise.present.numbers import number, rate, spread
from chipwise.present.result import Result
from chipwise.serving.edge import seconds_a_sample
from chipwise.serving.edge_power import device_joules, is_metered, wall_joules
from chipwise.serving.edge_presets import edge_model
from chipwise.serving.edge_roofline import (
    DATAFLOW,
    EDGE_PRECISIONS,
    SAMPLES,
    SCENARIOS,
    EdgePoint,
    lower_bound,
    peak_of,
    weight_bytes,
)
from chipwise.units import format_money, format_seconds, parse_number

OBJECTIVES = ("latency", "energy", "price")
ALSO = {"time": "latency", "cost": "price"}  # as `compare` calls them for chips that are rented
SCENARIO_WORDS = {"single": "single stream", "multi": "multi stream, 8 samples a query", "offline": "offline"}
FALLBACK = ("int8", "fp16")  # in turn, where a device lacks the model's own precision and none is named


@dataclass(frozen=True, slots=True)
class EdgeTerms:
    """What devices are compared by, and within which limit."""

    objective: str = "latency"
    scenario: str = "single"
    power_w: float | None = None  # of the device or module, not of the whole system
    precision: str | None = None  # None: the model's own

    @classmethod
    def read(cls, by: str | None, scenario: str | None, power: str | float | None, precision: str | None) -> EdgeTerms:
        """Terms as people write them.

        >>> EdgeTerms.read("energy", None, "15W", None).power_w
        15.0
        """
        objective = ALSO.get(by or "latency", by or "latency")
        if objective not in OBJECTIVES:
            raise InputError("by", by, f"one of {', '.join(OBJECTIVES)} for edge devices")
        if scenario is not None and scenario not in SCENARIOS:
            raise InputError("scenario", scenario, f"one of {', '.join(SCENARIOS)}")
        if precision is not None and precision not in EDGE_PRECISIONS:
            raise InputError("precision", precision, f"one of {', '.join(EDGE_PRECISIONS)} for edge devices")
        return cls(objective, scenario or "single", parse_watts(power), precision)


def parse_watts(value: str | float | None) -> float | None:
    """Watts as people write them: 15 (watts without a unit), "15W", "1.5 kW".

    >>> parse_watts("15W"), parse_watts("15"), parse_watts("0.5kW"), parse_watts(None)
    (15.0, 15.0, 500.0, None)
    """
    if value is None:
        return None
    accepted = "watts above 0, such as 15W"
    watts = parse_number(value, "power", accepted, (("w", 1.0), ("k", 1e3), ("kw", 1e3)))
    if not 0 < watts < 1e6:
        raise InputError("power", value, accepted)
    return watts


@dataclass(frozen=True, slots=True)
class EdgeRow:
    """A device in one power mode, predicted."""

    device: EdgeDevice
    mode: PowerMode
    point: EdgePoint
    seconds: Estimate  # a query: one sample, or 8 of a multi stream; of offline runs one sample
    throughput: Estimate  # samples/s, offline
    joules: Estimate  # a sample, of the device alone: never above the mode's budget
    bound_s: float  # lower bound of `seconds`
    wall_joules: Estimate | None  # a sample, of the whole system; None where no published result measured one

    @property
    def price_usd(self) -> float | None:
        """Price of the device; None where no source gives one."""
        return self.device.price_usd or None

    def by(self, objective: str) -> float:
        """What it is ranked by."""
        if objective == "price":
            return self.device.price_usd or inf
        return self.joules.value if objective == "energy" else self.seconds.value


@dataclass(frozen=True, slots=True)
class EdgeRefused:
    """A device that can't run the model on these terms."""

    device: EdgeDevice
    kind: str
    reason: str


def _joules(value: float) -> str:
    """Two digits, or all before the point."""
    return number(round(value)) if value >= 99.5 else f"{value:.2g}"


ROWS: list[Column[EdgeRow]] = [
    Column("device", lambda r: r.device.id, "device", words=True, help="id of the edge device"),
    Column("name", lambda r: r.device.name, help="as its vendor calls it"),
    Column("mode", lambda r: r.mode.name, "mode", words=True, help="power mode; default: as delivered"),
    Column(
        "power_watts",
        lambda r: r.mode.watts or None,
        "W",
        lambda r: f"{r.mode.watts:g}" if r.mode.watts else "-",
        help="budget of the mode: of the module, card or chip, not of the host",
        unit="W",
    ),
    Column("precision", lambda r: r.point.precision, "in", words=True, help="precision computed in"),
    Column(
        "latency_seconds",
        lambda r: r.seconds,
        lambda c: "time a sample" if c.terms.scenario == "offline" else "latency",
        lambda r: format_seconds(r.seconds.value),
        help="estimate of a query (of multi stream: 8 samples), or of a sample of an offline run",
        unit="s",
    ),
    Column("", None, "90 %", lambda r: spread(r.seconds), drop=2, help="ends of the 90 % interval"),
    Column("lower_bound_seconds", lambda r: r.bound_s, help="no schedule is faster", unit="s"),
    Column(
        "samples_per_second",
        lambda r: r.throughput,
        "offline samples/s",
        lambda r: rate(r.throughput.value),
        drop=3,
        help="estimate of the offline throughput",
        unit="samples/s",
    ),
    Column(
        "joules_per_sample",
        lambda r: r.joules,
        "J/sample",
        lambda r: _joules(r.joules.value) + ("" if r.wall_joules else "*"),
        help="estimate of the energy of a sample in this scenario, of the device alone: at most the mode's budget",
        unit="J",
    ),
    Column(
        "wall_joules_per_sample",
        lambda r: r.wall_joules,
        help="the same of the whole system at the wall; null where no published result measured one",
        unit="J",
    ),
    Column(
        "price_usd",
        lambda r: r.price_usd,
        "price",
        lambda r: format_money(r.price_usd) if r.price_usd else "-",
        help="of the device, one; null without a public price",
        unit="USD",
    ),
    Column("", None, "evidence", lambda r: r.seconds.evidence, words=True, drop=1, help="what the times rest on"),
]
REFUSED: list[Column[EdgeRefused]] = [
    Column("device", lambda r: r.device.id),
    Column("kind", lambda r: r.kind),
    Column("reason", lambda r: r.reason),
]


@dataclass(frozen=True, slots=True, repr=False)
class EdgeComparison(Result):
    """Edge devices on one model, the best first."""

    VERB: ClassVar[str] = "compare"
    model: EdgeModel
    terms: EdgeTerms
    rows: tuple[EdgeRow, ...]
    refused: tuple[EdgeRefused, ...]

    @property
    def pick(self) -> EdgeRow | None:
        """The best device by the objective."""
        return self.rows[0] if self.rows else None

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "model": asdict(self.model),
            "edge": True,
            "objective": self.terms.objective,
            "terms": asdict(self.terms),
            "pick": self.pick.device.id if self.pick else None,
            "words": self.words(),
            "rows": [{"rank": i, **record(ROWS, row)} for i, row in enumerate(self.rows, 1)],
            "refused": [record(REFUSED, refused) for refused in self.refused],
            "assumptions": self.assumptions(),
        }

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas; the refused follow, with the reason."""
        rows: list[dict[str, Any]] = [
            {"rank": i, **flat(ROWS, row), "evidence": row.seconds.evidence, "refused": None}
            for i, row in enumerate(self.rows, 1)
        ]
        rows += [{"device": refused.device.id, "refused": refused.reason} for refused in self.refused]
        return padded(rows)

    def words(self) -> str:
        """The decision in one line."""
        best = self.pick
        if best is None:
            limit = f" within {self.terms.power_w:g} W" if self.terms.power_w else ""
            return f"No device runs {self.model.id}{limit}."
        mode = "" if best.mode.name == "default" else f" in its {best.mode.name} mode"
        what = f"{format_seconds(best.seconds.value)} ({spread(best.seconds)}), {_joules(best.joules.value)} J a sample"
        near = [row for row in self.rows[1:] if self._ties(row, best)]
        also = f" Not surely better than {', '.join(row.device.id for row in near[:3])}." if near else ""
        return f"Pick {best.device.id}{mode} by {self.terms.objective}: {what}.{also}"

    def _ties(self, row: EdgeRow, best: EdgeRow) -> bool:
        """Whether intervals overlap, so that the order may be the other."""
        if self.terms.objective == "price":
            return False
        mine, other = (r.joules if self.terms.objective == "energy" else r.seconds for r in (row, best))
        return mine.low <= other.high

    def assumptions(self) -> list[str]:
        """What was taken for granted, in words."""
        m = self.model
        size = f"{number(m.ops / 1e9)} GOP and {number(m.params / 1e6)} M weights"
        out = [f"{m.id}: {size} an inference ({m.note})"]
        out.append("power and energy are of the module, card or chip, not of its host")
        if not all(row.wall_joules for row in self.rows):
            out.append("*: no published power: the mode's whole budget, the most it can draw")
        changed = sorted({r.point.precision for r in self.rows} - {self.terms.precision or m.precision})
        if changed:
            out.append(f"devices without {m.precision} run in {', '.join(changed)}")
        if any(row.device.design == DATAFLOW for row in self.rows):
            out.append("Hailo: times are 1 / throughput at that batch; a frame alone may take longer in the pipeline")
        return out

    def _refusals(self) -> list[str]:
        """One line a reason; devices above the power limit share one, with what each needs."""
        above = [r.device for r in self.refused if r.kind == "power" and _least(r.device)]
        needs = ", ".join(f"{device.id} ({_least(device):g} W)" for device in above)
        reasons: dict[str, list[str]] = {}
        for refused in self.refused:
            if refused.device.id not in {device.id for device in above}:
                reasons.setdefault(refused.reason, []).append(refused.device.id)
        lines = [f"{', '.join(names)}: {why}" for why, names in reasons.items()]
        if above:
            lines.insert(0, f"above {self.terms.power_w:g} W in the smallest mode whose clock is published: {needs}")
        return lines

    def blocks(self) -> list[Block]:
        """For people."""
        t = self.terms
        limit = f", at most {t.power_w:g} W" if t.power_w else ""
        head = f"{self.model.id}: {SCENARIO_WORDS[t.scenario]}{limit}; by {t.objective}"
        number: Column[EdgeRow] = Column("rank", lambda row: self.rows.index(row) + 1, "#")
        shown = [table([number, *ROWS], self.rows, self, strong=frozenset({0}))] if self.rows else []
        lines = self._refusals()
        return [
            Text(head),
            *shown,
            Text("Decision", True),
            Text(self.words()),
            *section("Refused", lines),
            *section("Assumptions", self.assumptions()),
        ]


def devices_named(on: str | Sequence[str] | None) -> list[EdgeDevice]:
    """The devices named, or every one that is ranked."""
    if on is None:
        return [device for device in edge_devices().values() if device.ranked]
    names = on.split(",") if isinstance(on, str) else on
    return list({device.id: device for name in names for device in find_devices(name)}.values())


def _precision(device: EdgeDevice, model: EdgeModel, named: str | None) -> str:
    """The precision to run in: named, the model's own, or the next that the device has and the model allows."""
    if named is not None:
        return named
    others: tuple[str, ...] = FALLBACK if model.precision == "int8" else ()
    for precision in (model.precision, *others):
        try:
            peak_of(device, precision)
        except Refusal:
            continue
        return precision
    return model.precision


def _at_most(seconds: Estimate, point: EdgePoint, calibration: EdgeCalibration) -> Estimate:
    """A time a sample among many: never above that of samples one by one, which any device can do."""
    alone = seconds_a_sample(replace(point, scenario="single"), calibration)
    return seconds if seconds.value <= alone.value else alone


def evaluate(
    device: EdgeDevice, mode: PowerMode, model: EdgeModel, terms: EdgeTerms, calibration: EdgeCalibration
) -> EdgeRow:
    """A device in one of its modes; raises a refusal where it can't run the model."""
    precision = _precision(device, model, terms.precision)
    peak_of(device, precision)
    point = EdgePoint(device, model, precision, terms.scenario, clock=mode.clock)
    need = weight_bytes(point)
    if device.memory_bytes and need > device.memory_bytes:
        raise DoesNotFit(f"weights of {need / 1e9:.1f} GB exceed its {device.memory_bytes / 1e9:.1f} GB")
    seconds = seconds_a_sample(point, calibration)
    offline = _at_most(seconds_a_sample(replace(point, scenario="offline"), calibration), point, calibration)
    if terms.scenario != "single":
        seconds = offline if terms.scenario == "offline" else _at_most(seconds, point, calibration)
    query = SAMPLES["multi"] if terms.scenario == "multi" else 1
    return EdgeRow(
        device,
        mode,
        point,
        seconds.scaled(query),
        offline.inverted(),
        device_joules(point, seconds, calibration),
        lower_bound(point) * query,
        wall_joules(point, seconds, calibration) if is_metered(device, calibration) else None,
    )


def compare_devices(
    model: str, on: str | Sequence[str] | None, terms: EdgeTerms, calibration: EdgeCalibration
) -> EdgeComparison:
    """Rank edge devices on a model: each in its best mode within the power limit."""
    work = edge_model(model)
    rows: list[EdgeRow] = []
    refused: list[EdgeRefused] = []
    for device in devices_named(on):
        modes = device.modes_within(terms.power_w)
        if not modes:
            refused.append(EdgeRefused(device, "power", _no_mode(device, terms.power_w)))
            continue
        try:
            choices = [evaluate(device, mode, work, terms, calibration) for mode in modes]
        except Refusal as error:
            refused.append(EdgeRefused(device, error.kind, str(error).replace(f"{device.name} ", "")))
            continue
        objective = "energy" if terms.objective == "energy" else "latency"
        rows.append(min(choices, key=lambda row: (row.by(objective), row.mode.watts)))
    rows.sort(key=lambda row: (row.by(terms.objective), row.seconds.value))
    return EdgeComparison(work, terms, tuple(rows), tuple(refused))


def _least(device: EdgeDevice) -> float:
    """The smallest budget of its modes; 0: unknown."""
    return min((mode.watts for mode in device.modes), default=0.0)


def _no_mode(device: EdgeDevice, watts: float | None) -> str:
    least = _least(device)
    if not least:
        return "no source gives its power"
    return f"needs {least:g} W in the smallest mode whose clock is published; the limit is {watts:g} W"
