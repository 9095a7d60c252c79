"""The work that is paid for, whatever the terms: how many chips for how long, what it keeps, writes and sends."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf

from chipwise.catalog import Accelerators
from chipwise.catalog.economics import Economics, servers
from chipwise.compare.serving.row import ServingRow
from chipwise.compare.training.row import TrainingRow
from chipwise.cost.checkpoint import state
from chipwise.cost.onprem import HOURS_MONTH, overhead_w
from chipwise.cost.sampling import Input
from chipwise.errors import InputError
from chipwise.units import HOUR
from chipwise.workload.model import PICTURES, STORED_BYTES
from chipwise.workload.params import count

MONTH = HOURS_MONTH * HOUR
TOKENS_PROCESSED, TOKENS_OUT = "1M tokens in and out", "1M tokens out"  # of a service: prompts and answers, answers


@dataclass(frozen=True, slots=True)
class Case:
    """Work on chips. Bytes and seconds; `scale` is the factor that the prediction's range puts on time or on chips."""

    basis: str  # "run", "job" or "month"
    accelerators: Accelerators
    seconds: float  # of the run or the job at the median; of a month
    scale: Input
    chip_w: float  # mean watts of one chip
    replica_chips: int  # that stop together where one stops; all of a training run
    state_bytes: float  # of a checkpoint; 0: nothing is lost but the answers under way
    kept_bytes: float  # stored beside checkpoints and training data
    dataset: tuple[str, float]  # the assumption that says how large one item is, and how many there are
    sent: tuple[str, float]  # the assumption that says how large one item is, and how many are sent out
    sent_bytes: float  # beside those
    units: tuple[tuple[str, float], ...]  # (name, how many of it the total pays for)
    evidence: str
    because: str
    notes: tuple[str, ...]

    @property
    def chips(self) -> int:
        """All chips."""
        return self.accelerators.count

    @property
    def hosts(self) -> int:
        """Hosts that write checkpoints."""
        return max(1, ceil(self.chips / self.accelerators.chip.fabric.host_chips))

    def watts(self, know: Economics) -> float:
        """Watts of a chip with its share of the server around it."""
        server = servers().get(self.accelerators.chip.id)
        if server is None:
            return self.chip_w * know.value("server_overhead")
        return self.chip_w + overhead_w(self.accelerators.chip, server) / server.chips


def of_training(row: TrainingRow, epochs: float | None = None) -> Case:
    """A training run."""
    if epochs is not None and not 0 < epochs < inf:
        raise InputError("epochs", epochs, "more than 0")
    p = row.prediction
    t, model = p.workload.train, p.workload.model
    pictures = t.samples_unit in PICTURES
    items, unit = (t.samples, f"1,000 {t.samples_unit}") if pictures else (t.tokens, "1M tokens")
    each = (f"{p.workload.unit[:-1]}_bytes", items / (epochs or 1))
    units = [
        ("run", 1.0),
        *([("epoch", float(epochs))] if epochs else []),
        ("step", float(t.steps)),
        (unit, items / (1e3 if pictures else 1e6)),
    ]
    held = state(p.workload)
    d = p.duration
    notes = (
        []
        if epochs
        else ["training data: every item is read once (--epochs was not given), and kept for the length of the run"]
    )
    adapters = " (adapters alone; the base weights are there already)" if t.lora_rank else ""
    if model.video:
        notes.append(_videos("stored", "video_bytes"))
    notes.append(f"sent out: the weights{adapters} of {model.name}, once, at the end of the run")
    return Case(
        "run",
        row.accelerators,
        d.value,
        Input("run_time", 1.0, d.low / d.value, d.high / d.value),
        p.watts,
        row.accelerators.count,
        held.total,
        0.0,
        each,
        ("response_bytes_token", 0.0),
        held.weights,
        tuple(units),
        p.step.evidence,
        p.step.because,
        tuple(notes),
    )


def of_service(row: ServingRow) -> Case:
    """A service over a month, or an offline job."""
    work = row.served.service.target.workload
    job, serve = row.demand.kind == "job", work.serve
    seconds = row.seconds.value if job else MONTH
    units, requests = row.unit_rate.value * seconds, row.request_rate.value * seconds
    if job and not serve.requests:
        raise InputError("serve.offline.requests", 0, "a number of requests: a job without one has no cost")
    weights = count(work.model).total * STORED_BYTES[serve.precision]
    per = [("job", 1.0)] if job else [("hour", HOURS_MONTH), ("month", 1.0)]
    if row.writes:
        per += [(TOKENS_PROCESSED, units * row.processed_per_written / 1e6), (TOKENS_OUT, units / 1e6)]
    per.append(("1,000 inferences", requests / 1e3))
    sent, notes = _sent(row, units, requests)
    if job:
        e = row.seconds
        scale = Input("run_time", 1.0, e.low / e.value, e.high / e.value)
    else:
        scale, said = _needed(row)
        notes += said
        notes.append("a month of 730.5 h with the whole fleet on; the demand is that of every hour")
    chip_w = row.joules.value * row.unit_rate.value / row.accelerators.count
    return Case(
        "job" if job else "month",
        row.accelerators,
        seconds,
        scale,
        chip_w,
        row.split.chips,
        0.0,
        weights,
        ("token_bytes", 0.0),
        sent,
        0.0,
        tuple(per),
        row.load.evidence,
        row.load.because,
        tuple(notes),
    )


def _sent(row: ServingRow, units: float, requests: float) -> tuple[tuple[str, float], list[str]]:
    model = row.served.service.target.workload.model
    if row.writes:
        return ("response_bytes_token", units), []
    if model.denoises:
        name = f"response_bytes_{model.picture_unit[:-1]}"
        return (name, requests), [_videos("sent out", name)] if model.video else []
    return ("response_bytes_token", 0.0), ["sent out: answers of a model that writes no text are taken as nothing"]


def _videos(where: str, assumption: str) -> str:
    return f"{where}: the bytes of a video are assumed for compressed ones of some seconds (--set {assumption}=BYTES)"


def _needed(row: ServingRow) -> tuple[Input, list[str]]:
    """How many more or fewer chips the ends of the capacity would take."""
    quote = row.ondemand or row.spot
    if quote is None:
        return Input("chips_needed", 1.0, 1.0, 1.0), ["the range of the chips needed is not known without a price"]
    usd = quote.usd
    low, high = usd.low / usd.value, usd.high / usd.value
    if high == inf:
        return Input("chips_needed", 1.0, low, 1 / low), [
            "by the low end of its range a replica sustains nothing: the most chips needed mirror the fewest"
        ]
    return Input("chips_needed", 1.0, low, high), []
