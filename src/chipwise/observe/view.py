"""A log as every face shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, ClassVar

from chipwise.observe.against import Ratio
from chipwise.observe.faults import xids
from chipwise.observe.log import WARM_UP, Log
from chipwise.observe.records import Fault, ServingWindow, Step
from chipwise.present.blocks import Block, Table, Text
from chipwise.present.columns import Column, flat, record, table
from chipwise.present.numbers import plural, time_interval
from chipwise.present.result import Result
from chipwise.units import format_count, format_seconds

MAX_METRICS_SHOWN = 20
STEP_COLUMNS: tuple[Column[Step], ...] = (
    Column("step", lambda s: s.step, "step", help="of the run"),
    Column("step_seconds", lambda s: s.step_seconds, "seconds", help="what it took", unit="s"),
    Column("tokens_per_s", lambda s: s.tokens_per_s, "tokens/s", help="of all devices", unit="1/s"),
    Column("tokens_per_s_per_device", lambda s: s.tokens_per_s_per_device, "tokens/s/device", unit="1/s"),
    Column("tflops_per_device", lambda s: s.tflops_per_device, "TFLOP/s/device", help="as the program counts"),
    Column("mfu", lambda s: s.mfu, "MFU", help="a share of one"),
    Column("loss", lambda s: s.loss, "loss"),
)
SERVING_COLUMNS: tuple[Column[ServingWindow], ...] = (
    Column("running", lambda w: w.running, "running", help="requests"),
    Column("waiting", lambda w: w.waiting, "waiting", help="requests"),
    Column("kv_cache_usage", lambda w: w.kv_cache_usage, "KV cache", help="a share of one"),
    Column("prompt_tokens_per_s", lambda w: w.prompt_tokens_per_s, "prompt tokens/s", unit="1/s"),
    Column("generation_tokens_per_s", lambda w: w.generation_tokens_per_s, "generated tokens/s", unit="1/s"),
)
FAULT_COLUMNS: tuple[Column[Fault], ...] = (
    Column("class", lambda f: f.kind, "fault", words=True, help="what is at fault"),
    Column("device", lambda f: f.device, "device", words=True, help="as the line names it"),
    Column("xid", lambda f: f.xid, "Xid", help="NVIDIA's number"),
    Column("line", lambda f: f.line, "line", words=True, under=True, help="the first that shows it"),
    Column("line_number", lambda f: f.number, "", help="from 1"),
    Column("action", lambda f: _action(f), "what to do", words=True, under=True),
)
RATIO_COLUMNS: tuple[Column[Ratio], ...] = (
    Column("figure", lambda r: r.figure, "figure", words=True),
    Column("actual", lambda r: r.actual, "actual", lambda r: _shown(r, r.actual)),
    Column("predicted", lambda r: r.predicted, "predicted", lambda r: _shown(r, r.predicted.value)),
    Column("", None, "90 %", lambda r: time_interval(r.predicted) if r.unit == "s" else _interval(r)),
    Column("ratio", lambda r: r.ratio, "actual / predicted", lambda r: f"{r.ratio:.2f}"),
    Column("verdict", lambda r: r.verdict, "verdict", lambda r: r.verdict, words=True),
)


def _action(fault: Fault) -> str | None:
    entry = xids().get(fault.xid) if fault.xid is not None else None
    return f"{entry.meaning}: {entry.action}" if entry else None


def _shown(ratio: Ratio, amount: float) -> str:
    return format_seconds(amount) if ratio.unit == "s" else f"{format_count(amount)}/s"


def _interval(ratio: Ratio) -> str:
    return f"{format_count(ratio.predicted.low)} to {format_count(ratio.predicted.high)}"


@dataclass(frozen=True, slots=True, repr=False)
class LogReading(Result):
    """What a log says: steps, windows of serving, faults, metrics; and how they compare with a prediction."""

    VERB: ClassVar[str] = "observe read"
    CSV_HEADER: ClassVar[tuple[str, ...]] = tuple(column.key for column in STEP_COLUMNS)
    source: str
    log: Log
    against: Sequence[Ratio] = ()

    @property
    def steps(self) -> list[Step]:
        """The steps, each told once."""
        return self.log.steps

    @property
    def faults(self) -> list[Fault]:
        """The faults."""
        return self.log.faults

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        log = self.log
        return {
            "source": self.source,
            "format": log.format,
            "lines": log.lines,
            "unread_lines": log.unread,
            "duplicate_steps": log.duplicates,
            "starts": len(log.starts),
            "typical_step_seconds": log.typical("step_seconds"),
            "against": [record(RATIO_COLUMNS, ratio) for ratio in self.against],
            "steps": [record(STEP_COLUMNS, step) for step in log.steps],
            "serving": [record(SERVING_COLUMNS, window) for window in log.serving],
            "faults": [record(FAULT_COLUMNS, fault) for fault in log.faults],
            "metrics": log.metrics,
        }

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: the steps, or the windows of serving."""
        if self.log.steps:
            return [flat(STEP_COLUMNS, step) for step in self.log.steps]
        return [flat(SERVING_COLUMNS, window) for window in self.log.serving]

    def blocks(self) -> list[Block]:
        """For people."""
        log = self.log
        out: list[Block] = [Text(self._head())]
        if log.steps:
            out.append(self._steps())
        if log.serving:
            out.append(self._serving())
        if self.against:
            out.append(table(RATIO_COLUMNS, self.against, title="Against the prediction"))
        if log.faults:
            out.append(table(FAULT_COLUMNS, log.faults, title="Faults"))
        if log.metrics:
            out.append(self._metrics())
        if log.unread:
            out.append(
                Text(
                    f"{plural(log.unread, 'line')} of {log.format} {'lacks' if log.unread == 1 else 'lack'} what "
                    "such lines say: cut, or of a release whose format has changed"
                )
            )
        return out

    def _head(self) -> str:
        log = self.log
        lines = plural(log.lines, "line")
        if log.format is None:
            what = f"no step and no window of a format known in {lines}"
            return f"{self.source}: {what}; {plural(len(log.faults), 'fault')}"
        parts = [
            plural(len(log.steps), "step") if log.steps else "",
            f"{plural(len(log.starts), 'start')}" if len(log.starts) > 1 else "",
            plural(len(log.serving), "window") + " of serving" if log.serving else "",
            plural(len(log.metrics), "metric") if log.metrics else "",
            plural(len(log.faults), "fault"),
        ]
        return f"{self.source}: {log.format}, {lines}; {', '.join(filter(None, parts))}"

    def _steps(self) -> Table:
        rows = []
        for column in STEP_COLUMNS[1:]:
            values = [value for step in self.log.steps if (value := getattr(step, column.key)) is not None]
            if not values:
                continue
            settled = self.log.settled(column.key)
            rows.append(
                [column.title(self), f"{median(settled):.4g}", f"{min(settled):.4g}", f"{max(settled):.4g}",
                 f"{values[-1]:.4g}", f"{len(values):,}"]
            )  # fmt: skip
        title = f"Steps, without the first {WARM_UP} of each start"
        return Table(["figure", "median", "least", "most", "last", "steps"], rows, frozenset({"figure"}), title=title)

    def _serving(self) -> Table:
        rows = []
        for column in SERVING_COLUMNS:
            values = [value for window in self.log.serving if (value := getattr(window, column.key)) is not None]
            if values:
                rows.append([column.title(self), f"{median(values):.4g}", f"{max(values):.4g}", f"{len(values):,}"])
        return Table(["figure", "median", "most", "windows"], rows, frozenset({"figure"}), title="Serving")

    def _metrics(self) -> Table:
        metrics = self.log.metrics
        rows = [[name, f"{value:.6g}"] for name, value in list(metrics.items())[:MAX_METRICS_SHOWN]]
        more = len(metrics) - len(rows)
        title = f"Metrics (the first {len(rows)} of {len(metrics):,}; -o json has all)" if more else "Metrics"
        return Table(["metric", "value"], rows, frozenset({"metric"}), title=title)
