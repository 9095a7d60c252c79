"""Scores as every face shows them: a summary's columns, declared once for the terminal and the Markdown page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from chipwise.present.blocks import Block, Table, Text, section
from chipwise.present.columns import Column, table

TPU_PARTS = {
    "tpu_products_over_1024": "tpu products over 1024^3",
    "tpu_products_to_1024": "tpu products to 1024^3",
    "tpu_memory": "tpu memory",
    "tpu_collectives": "tpu collectives",
    "tpu_over_slices": "tpu over slices",
}
TRAINED = [
    "A training row in the calibration is scored by the refit that left its group (source, model, chip) out;",
    "kernel rows by the calibration they are part of, and with their source left out.",
]
KERNELS = [
    "Kernels are scored by the calibration they are part of, and with their whole source left out of coefficients and",
    "intervals alike. overhead: a product narrower than 128 either way, or work predicted to take under 50 us.",
]
COMPILED = [
    "TPU training rows by the schedules XLA made of their programs. Nothing is fitted to training",
    "rows; a row's interval comes from the errors of other groups (source, model, chip).",
]
SERVED = [
    "Figures of inference rows are scored by the refit that left their model out, and by the one that left their",
    "source out: a repository, or a campaign of closed-loop runs (one model, precision, system and stack).",
]
NEAREST = "By what else is published: the nearest figures that are left when the source is left out"
WHOLE = [
    "What else is published near a serving figure, and how far predictions were off: its whole repository left out of",
    "the fit and of the widths, and in turn all figures of its load, stack, chip, design and vendor.",
]
LATER = [
    "Figures of repositories that were gathered after all priors were set, scored in the same way; all rounds of a",
    "benchmark such as MLPerf are left out together.",
]
WINNERS = [
    "Pairs of a GPU and a TPU that trained the same model, tokens/s a chip at least 10 % apart: how often the chip",
    "that is predicted to be faster is, and what is lost where it isn't.",
]
OPENED = [
    "Runs of services to which requests came by themselves, each replayed: as many requests at the same rate, to a",
    "replica set up alike. Scored by the refit that left their model out; their source left out, nothing is known of",
    "first tokens under such loads.",
]
EDGE = [
    "Edge rows are scored by the refit that left their pair of model and device out, and by those that left their",
    "whole device, model or source out. Energy is that of the whole system at the wall, a sample.",
]


class Group(NamedTuple):
    """Rows that were scored together, and their summary."""

    name: str
    summary: Mapping[str, Any]


def _share(key: str, sign: str = "") -> Any:
    def show(group: Group) -> str:
        value = group.summary[key]
        return "-" if value is None else f"{value * 100:{sign}.1f} %"

    return show


GROUPS: list[Column[Group]] = [
    Column("name", lambda g: g.name, "rows", words=True, help="rows that were scored together"),
    Column("eligible", lambda g: g.summary["eligible"], "eligible", help="rows that say enough"),
    Column("predicted", lambda g: g.summary["predicted"], "predicted", help="rows that were predicted"),
    Column("median_ape", lambda g: g.summary["median_ape"], "median error", _share("median_ape"), help="a fraction"),
    Column("mape", lambda g: g.summary["mape"], "mean error", _share("mape"), help="a fraction"),
    Column("bias", lambda g: g.summary["bias"], "bias", _share("bias", "+"), help="mean log(predicted / observed)"),
    Column(
        "coverage90",
        lambda g: g.summary["coverage90"],
        "90 % interval covers",
        _share("coverage90"),
        help="share inside the 90 % interval",
    ),
]


DISTANCE: list[Column[Group]] = [
    *GROUPS,
    Column("low", lambda g: g.summary["low"], "low end", _share("low", "+"), help="median, from the value"),
    Column("high", lambda g: g.summary["high"], "high end", _share("high", "+"), help="median, from the value"),
]


WINNER: list[Column[Group]] = [
    Column("name", lambda g: g.name, "pairs of", words=True, help="pairs that were counted together"),
    Column("pairs", lambda g: g.summary["pairs"], "pairs", help="clear pairs"),
    Column("right", lambda g: g.summary["right"], "right", help="whose winner was right"),
    Column("share_right", lambda g: g.summary["share_right"], "share", _share("share_right"), help="a fraction"),
    Column("median_lost", lambda g: g.summary["median_lost"], "lost where wrong", _share("median_lost"), help="median"),
    Column("most_lost", lambda g: g.summary["most_lost"], "at most", _share("most_lost"), help="a fraction"),
]


def winner_table(scores: Mapping[str, Any]) -> list[Block]:
    """Whether predictions choose between GPU and TPU rightly."""
    pairs = scores.get("winners", {})
    return [table(WINNER, [Group(*pair) for pair in pairs.items()])] if pairs else []


def distances(pairs: Mapping[str, Mapping[str, Any]], title: str) -> Table:
    """A table of serving figures by metric and distance, with the interval that is typical there."""
    return table(DISTANCE, [Group(name.replace("/", ", "), some) for name, some in pairs.items()], title=title)


def groups(pairs: Iterable[tuple[str, Mapping[str, Any]]], title: str = "") -> Table:
    """A table of groups of rows with their scores."""
    return table(GROUPS, [Group(*pair) for pair in pairs], title=title)


def part(title: str, scores: Mapping[str, Any]) -> list[Block]:
    """The scores of one kind of rows: in all and by their fields, and with each row's source left out."""
    left = scores["leave_one_source_out"]
    also = {kind: scores[f"leave_{kind}_out"] for kind in ("device", "model") if f"leave_{kind}_out" in scores}
    rows = [(title + (", pair left out" if also else ""), scores["summary"])]
    rows += [(f"{title}, {kind} left out", some["summary"]) for kind, some in also.items()]
    rows += [(title + ", source left out", left["summary"])]
    if "over_20us" in scores:
        rows.insert(1, ("over 20 us", scores["over_20us"]))
    rows += [(title, scores[name]) for name, title in TPU_PARTS.items() if name in scores]
    kinds = [key for key in ("by_mode", "by_metric", "by_family") if key in scores]
    rows += [(name.replace("_", " "), some) for key in kinds for name, some in scores[key].items()]
    rows += [
        (f"{name}, {kind} left out", some) for kind, part in also.items() for name, some in part["by_family"].items()
    ]
    rows += [(name.replace("_", " ") + ", source left out", some) for key in kinds for name, some in left[key].items()]
    return [
        groups(rows),
        *([distances(scores["by_distance"], NEAREST)] if "by_distance" in scores else []),
        groups(scores["by_chip"].items(), "By chip"),
        groups(scores["by_source"].items(), "By source"),
        groups(left["by_source"].items(), "By source, that source left out"),
        *refusals(scores),
    ]


def refusals(scores: Mapping[str, Any]) -> list[Block]:
    """Why rows were refused, and how many."""
    return section("Refused", [f"{count} x {reason}" for reason, count in scores["refusals"].items()])


def published_blocks(scores: Mapping[str, Any]) -> list[Block]:
    """Published rows, scored."""
    left = sum(scores["not_eligible"].values())
    head = f"Calibration of {scores['calibration']}; {scores['rows_read']:,} rows read, {left:,} not eligible."
    compiled = scores.get("evidence") == "compiled"
    edge = any(row["kind"] == "edge" for row in scores["rows"][:1])
    kernels = any(row["kind"] == "kernel" for row in scores["rows"][:1])
    served = "by_metric" in scores and "inference" not in scores and not kernels
    apart = all(row["kind"] == "later" for row in scores["rows"]) and served
    opened = any(row["kind"] == "open" for row in scores["rows"]) and served and "open_loop" not in scores
    words = (
        OPENED
        if opened
        else EDGE
        if edge
        else LATER
        if apart
        else SERVED
        if served
        else COMPILED
        if compiled
        else KERNELS
        if kernels
        else TRAINED
    )
    out: list[Block] = [*map(Text, (head, *words, "")), *part("All", scores)]
    if "winners" in scores:
        out += [*section("GPU or TPU", WINNERS), Text(""), *winner_table(scores)]
    memory = scores.get("memory", {})
    if memory.get("mean_difference") is not None:
        line = (
            f"our bookkeeping is {memory['mean_difference'] * 100:.1f} % from the compiler's own on average (median "
            f"{memory['median_difference'] * 100:.1f} %), over {memory['programs']} programs"
        )
        out += section("Memory", [line])
    if "inference" in scores:
        out += [*section("Inference", SERVED), Text(""), *part("All figures", scores["inference"])]
    if "open_loop" in scores:
        out += [*section("Open loads", OPENED), Text(""), *part("All latencies", scores["open_loop"])]
    if "later" in scores:
        out += [*section("Inference, gathered later", LATER), Text(""), *part("All figures", scores["later"])]
    if "left_out_whole" in scores:
        out += [*section("Serving by distance", WHOLE), Text(""), distances(scores["left_out_whole"], "")]
    for name, title in (("edge", "Edge"), ("energy", "Energy of edge inference")):
        if name in scores:
            out += [*section(title, EDGE if name == "edge" else []), Text(""), *part(f"All {name} rows", scores[name])]
    if "kernels" in scores and scores["kernels"]["summary"] != scores["summary"]:
        out += [*section("Kernels", KERNELS), Text(""), *part("All kernels", scores["kernels"])]
    return out


def measured_blocks(scores: Mapping[str, Any]) -> list[Block]:
    """Flat rows of a measured chip, scored by kind."""
    head = (
        f"{scores['chip']} as measured with {scores['framework']} on {scores['calibration']} "
        f"({scores['source']}); {scores['rows_read']:,} rows read."
    )
    return [Text(head), Text(""), groups([("All", scores["summary"]), *scores["by_kind"].items()]), *refusals(scores)]


def scoreboard(scores: Mapping[str, Any]) -> str:
    """The committed page: training steps and kernels, cross-validated and with the source left out."""
    lines = [
        "# Scoreboard",
        "",
        f"Generated by `make scoreboard` (`chipwise validate`), calibration of {scores['calibration']}.",
        "",
        "Errors are |predicted / observed - 1|; bias is the mean of log(predicted / observed). A training "
        "row in the calibration is scored by the refit that left its group (source, model, chip) out; kernel "
        "rows by the calibration they are part of. *Source left out* refits everything without the row's whole "
        "source: the figure to expect on kernels of a new source.",
        "",
        "## Training steps",
        "",
        *_markdown(part("All", scores)),
    ]
    if "winners" in scores:
        lines += ["", "## GPU or TPU", "", " ".join(WINNERS), "", *_markdown(winner_table(scores))]
    if "inference" in scores:
        lines += ["", "## Inference", "", " ".join(SERVED), "", *_markdown(part("All figures", scores["inference"]))]
    if "open_loop" in scores:
        blocks = part("All latencies", scores["open_loop"])
        lines += ["", "## Open loads", "", " ".join(OPENED), "", *_markdown(blocks)]
    if "later" in scores:
        blocks = part("All figures", scores["later"])
        lines += ["", "## Inference, gathered later", "", " ".join(LATER), "", *_markdown(blocks)]
    if "left_out_whole" in scores:
        blocks = [distances(scores["left_out_whole"], "")]
        lines += ["", "## Serving by distance", "", " ".join(WHOLE), "", *_markdown(blocks)]
    if "kernels" in scores:
        lines += ["", "## Kernels", "", " ".join(KERNELS), "", *_markdown(part("All kernels", scores["kernels"]))]
    return "\n".join(lines) + "\n"


def _markdown(blocks: Iterable[Block]) -> list[str]:
    """Blocks as Markdown: headings of the third level, tables, lists."""
    lines: list[str] = []
    for block in blocks:
        if isinstance(block, Text):
            lines += ["", f"### {block.words}", ""] if block.heading else [f"- {block.words.strip()}"]
            continue
        lines += ["", f"### {block.title}", ""] if block.title else []
        rows = ["| " + " | ".join(map(str, row)) + " |" for row in (block.headers, *block.rows)]
        rule = "|" + "".join("---|" if header in block.left else "---:|" for header in block.headers)
        lines += [rows[0], rule, *rows[1:]]
    return lines
