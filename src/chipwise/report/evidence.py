"""What the numbers rest on: kinds of evidence, how often intervals held on published results, every assumption."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chipwise.predict.estimate import Estimate
from chipwise.present.blocks import Cell, Link, Table
from chipwise.present.numbers import percent
from chipwise.prices import STALE_DAYS, Price
from chipwise.report.parts import EVIDENCE, Part, Points, Prose, Section
from chipwise.validate.kept import KeptScore, kept_scores

METRICS = {"ttft": "time to first token", "tpot": "time per token", "throughput": "throughput"}
INTERVALS = (
    "Every time is a value with a 90 % interval: in nine of ten cases the true value should lie inside. "
    "Intervals are quantiles of what the model missed on published results it was not calibrated on."
)
HEADERS = ("published results", "figures", "median error", "bias", "90 % interval held")


def evidence_section(
    kind: str, calibration: str, families: Sequence[str], chips: Sequence[str], rows: Iterable[tuple[str, Estimate]]
) -> Section:
    """How sure the numbers are. `kind` is "training" or "inference"; rows are the answers by name."""
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
    headers = ("chips", "evidence", "because")
    parts.append(
        Table(
            headers,
            tuple((", ".join(names), *why) for why, names in alike.items()),
            left=frozenset(headers),
            title="Where each interval comes from",
        )
    )
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
    rows = [_score_row(by[key]) for key in wanted if key in by]
    unseen = [name for name in chips if ("chip", name) not in by]
    notes = (
        "Bias is the mean of log(predicted / published): below zero, predictions are too short.",
        *(
            (f"No published result on {', '.join(unseen)}: the wider interval of what is unknown is used.",)
            if unseen
            else ()
        ),
    )
    return Table(
        HEADERS,
        tuple(rows),
        left=frozenset({HEADERS[0]}),
        title="How far predictions were from published results",
        notes=notes,
    )


def _score_row(s: KeptScore) -> tuple[str, ...]:
    named = {"all": "all", "family": f"all {s.name.upper()}s", "metric": METRICS.get(s.name, s.name)}
    name = named.get(s.group, s.name)
    return (
        name,
        f"{s.figures:,}",
        percent(s.median_error, 1),
        f"{s.bias * 100:+.1f} %".replace("-", "−"),
        percent(s.covers90, 1),
    )


def price_table(prices: Sequence[tuple[str, Price]]) -> Table:
    """Every price used: whose, where, how old, from which source."""
    rows: list[tuple[Cell, ...]] = []
    for name, p in prices:
        o = p.offer
        age = f"{o.date} stale" if p.stale else o.date
        rows.append(
            (
                name,
                "spot" if p.spot else "on demand",
                o.cloud,
                o.region,
                o.instance,
                f"${p.usd_per_chip_hour:.2f}",
                age,
                Link(o.source, o.source),
            )
        )
    stale = sum(p.stale for _, p in prices)
    notes = (f"Stale prices are more than {STALE_DAYS} days old: {stale} of {len(prices)}.",) if stale else ()
    words = ("chips", "pricing", "cloud", "region", "instance", "dated", "source")
    return Table(
        ("chips", "pricing", "cloud", "region", "instance", "$/chip-h", "dated", "source"),
        tuple(rows),
        left=frozenset(words),
        title="Prices used",
        notes=notes,
    )


def assumptions_section(
    prices: Sequence[tuple[str, Price]], assumptions: Sequence[str], more: Sequence[Part] = ()
) -> Section:
    """Everything assumed, with sources and dates."""
    return Section(
        "assumptions",
        "Assumptions and sources",
        (Points("Assumed in this report", tuple(assumptions)), *([price_table(prices)] if prices else []), *more),
    )
