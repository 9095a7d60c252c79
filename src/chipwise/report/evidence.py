"""What the numbers rest on: kinds of evidence, how often intervals held on published results, every assumption."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chipwise.predict.estimate import Estimate
from chipwise.present.blocks import Link, Table
from chipwise.present.columns import Column, table
from chipwise.present.numbers import percent
from chipwise.prices import STALE_DAYS, Price
from chipwise.report.parts import EVIDENCE, Part, Points, Prose, Section
from chipwise.validate.kept import KeptScore, kept_scores

METRICS = {"ttft": "time to first token", "tpot": "time per token", "throughput": "throughput"}
INTERVALS = (
    "Every time is a value with a 90 % interval: in nine of ten cases the true value should lie inside. "
    "Intervals are quantiles of what the model missed on published results it was not calibrated on."
)
SCORES: list[Column[KeptScore]] = [
    Column("", None, "published results", lambda s: _scored(s), words=True),
    Column("", None, "figures", lambda s: f"{s.figures:,}"),
    Column("", None, "median error", lambda s: percent(s.median_error, 1)),
    Column("", None, "bias", lambda s: f"{s.bias * 100:+.1f} %".replace("-", "−")),
    Column("", None, "90 % interval held", lambda s: percent(s.covers90, 1)),
]
PRICES: list[Column[tuple[str, Price]]] = [  # of chips by their name
    Column("", None, "chips", lambda r: r[0], words=True),
    Column("", None, "pricing", lambda r: "spot" if r[1].spot else "on demand", words=True),
    Column("", None, "cloud", lambda r: r[1].offer.cloud, words=True),
    Column("", None, "region", lambda r: r[1].offer.region, words=True),
    Column("", None, "instance", lambda r: r[1].offer.instance, words=True),
    Column("", None, "$/chip-h", lambda r: f"${r[1].usd_per_chip_hour:.2f}"),
    Column("", None, "dated", lambda r: f"{r[1].offer.date} stale" if r[1].stale else r[1].offer.date, words=True),
    Column("", None, "source", lambda r: Link(r[1].offer.source, r[1].offer.source), words=True),
]
INTERVAL_SOURCES: list[Column[tuple[tuple[str, str], list[str]]]] = [  # evidence and because, and the chips alike
    Column("", None, "chips", lambda r: ", ".join(r[1]), words=True),
    Column("", None, "evidence", lambda r: r[0][0], words=True),
    Column("", None, "because", lambda r: r[0][1], words=True),
]


def evidence_section(
    kind: str, calibration: str, families: Sequence[str], chips: Sequence[str], rows: Iterable[tuple[str, Estimate]]
) -> Section:
    """Confidence in the numbers. `kind` is "training" or "inference"; rows are the answers by name."""
    scores, found = [s for s in kept_scores() if s.kind == kind], list(rows)
    parts: list[Part] = [
        Prose(INTERVALS),
        *coverage(kind, calibration),
        _scores(scores, families, chips, kind),
        meanings(e for _, e in found),
    ]
    alike: dict[tuple[str, str], list[str]] = {}
    for name, e in found:
        alike.setdefault((e.evidence, e.because or EVIDENCE.get(e.evidence, "")), []).append(name)
    parts.append(table(INTERVAL_SOURCES, list(alike.items()), title="Where each interval comes from"))
    return Section("evidence", "Evidence and error bars", tuple(parts))


def coverage(kind: str, calibration: str) -> tuple[Prose, ...]:
    """How often intervals held on published results of a kind, and whether that was with the same calibration."""
    scores = [s for s in kept_scores() if s.kind == kind]
    whole = next(s for s in scores if s.group == "all")
    left = next(s for s in scores if s.group == "left out")
    what = "training steps" if kind == "training" else "figures of served models"
    said = Prose(
        f"On {whole.figures:,} published {what} the interval held {percent(whole.covers90, 1)} of the time, "
        f"with a median error of {percent(whole.median_error, 1)}; with the whole source of a result left out "
        f"of the calibration it held {percent(left.covers90, 1)} of the time."
    )
    if whole.calibration == calibration:
        return (said,)
    return said, Prose(
        f"These scores are of the calibration of {whole.calibration}; the one in use here, of "
        f"{calibration}, has not been scored.",
        "Not the same calibration.",
    )


def meanings(found: Iterable[Estimate]) -> Points:
    """What the kinds of evidence mean that occur."""
    seen = {e.evidence for e in found}
    said = tuple(f"{name}: {words}" for name, words in EVIDENCE.items() if name in seen)
    return Points("What the evidence means here", said)


def _scores(scores: Sequence[KeptScore], families: Sequence[str], chips: Sequence[str], kind: str) -> Table:
    wanted = [("all", "")] + [("family", name) for name in families] + [("chip", name) for name in chips]
    if kind == "inference":
        wanted[1:1] = [("metric", name) for name in METRICS]
    by = {(s.group, s.name): s for s in scores}
    rows = [by[key] for key in wanted if key in by]
    unseen = [name for name in chips if ("chip", name) not in by]
    notes = (
        "Bias is the mean of log(predicted / published): below zero, predictions are too short.",
        *(
            (f"No published result on {', '.join(unseen)}: the wider interval of what is unknown is used.",)
            if unseen
            else ()
        ),
    )
    return table(SCORES, rows, title="How far predictions were from published results", notes=notes)


def _scored(s: KeptScore) -> str:
    named = {"all": "all", "family": f"all {s.name.upper()}s", "metric": METRICS.get(s.name, s.name)}
    return named.get(s.group, s.name)


def stale_notes(stale: Iterable[bool]) -> tuple[str, ...]:
    """How many of the prices of a table are old, if any."""
    each = list(stale)
    return (f"Stale prices are more than {STALE_DAYS} days old: {sum(each)} of {len(each)}.",) if any(each) else ()


def assumptions_section(
    prices: Sequence[tuple[str, Price]], assumptions: Sequence[str], more: Sequence[Part] = ()
) -> Section:
    """Everything assumed, with sources and dates."""
    used = table(PRICES, prices, title="Prices used", notes=stale_notes(price.stale for _, price in prices))
    return Section(
        "assumptions",
        "Assumptions and sources",
        (Points("Assumed in this report", tuple(assumptions)), *([used] if prices else []), *more),
    )
