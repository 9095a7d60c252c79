"""chipwise compare: chips side by side on one workload."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.cli.options import (
    NO_FLAGS,
    BudgetOpt,
    ByOpt,
    ChipsOpt,
    ComparedOpt,
    DeadlineOpt,
    EvidenceOpt,
    Flags,
    FxOpt,
    OutFile,
    PricesOpt,
    TableJsonCsv,
    WorkloadArg,
    with_any_flags,
)

if TYPE_CHECKING:
    from chipwise.compare import Candidate, Comparison, Terms, TrainingRow
    from chipwise.present.blocks import Block, Table
    from chipwise.prices import Quote

EXAMPLES = """\b
Examples:
  chipwise compare examples/llama-3.1-8b-pretrain.yaml
  chipwise compare examples/llama-3.1-8b-pretrain.yaml --on h100,b200,v5p --deadline 30d
  chipwise compare llama-3.1-70b --tokens 1T --batch 1024 --sequence 8192 --on h200:512,v6e:512
  chipwise compare examples/llama-3.1-8b-pretrain.yaml --on h100:64,v5p:64,v6e:64 --evidence auto
  chipwise compare examples/mixtral-8x7b-pretrain.yaml --budget 2M --by time -o json --out run.json
  chipwise compare examples/llama-3.1-70b-serve.yaml --on h100,h200:32,v6e
"""


@with_any_flags
def compare(
    workload: WorkloadArg,
    on: ComparedOpt = None,
    chips: ChipsOpt = None,
    deadline: DeadlineOpt = None,
    budget: BudgetOpt = None,
    by: ByOpt = None,
    flags: Flags = NO_FLAGS,
    evidence: EvidenceOpt = "modelled",
    prices: PricesOpt = None,
    fx: FxOpt = None,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Compare chips on a workload, and say what to pick.

    For each chip: its best layout, step time with a 90 % interval, time to train, energy and cost. Then what to pick,
    why, and what would flip the decision. Of a model that is served: the cheapest chips that carry its requests within
    the SLO, and what they cost an hour and a million tokens.
    """
    from chipwise.catalog.calibration import in_use
    from chipwise.cli import compare_serving, records
    from chipwise.cli.evidence import known_evidence, mixing
    from chipwise.cli.pricing import book_of
    from chipwise.cli.workloads import read_any
    from chipwise.compare import compare as run
    from chipwise.errors import InputError
    from chipwise.present.output import emit, emit_csv, emit_json, formats
    from chipwise.present.progress import progress
    from chipwise.workload import Workload

    formats(output, "table", "json", "csv")
    known_evidence(evidence)
    candidates = candidates_of(on)
    book = book_of(prices, fx)
    work = read_any(workload, flags)
    if not isinstance(work, Workload):
        if evidence == "compiled":
            raise InputError("--evidence", evidence, "modelled: services are simulated, not compiled")
        compare_serving.show(work, candidates, terms_of(chips, deadline, budget, by or "cost"), book, output, out)
        return
    terms = terms_of(chips, deadline, budget, by)
    with progress("comparing") as shown:
        found = run(work, candidates, in_use(), terms, progress=shown, change=mixing(evidence, in_use()), book=book)
    if output == "json":
        emit_json(records.comparison(found), out)
    elif output == "csv":
        emit_csv(records.comparison_rows(found), out)
    else:
        emit(blocks(found), out)


def candidates_of(on: str | None) -> list[Candidate] | None:
    """The chips named in `--on`; None where none are: all of the catalog."""
    from chipwise.compare import Candidate
    from chipwise.errors import InputError

    if on is None:
        return None
    names = [name for name in on.split(",") if name.strip()]
    if not names:
        raise InputError("--on", on, "chips such as h100,v5p:128")
    return [Candidate.read(name) for name in dict.fromkeys(name.strip() for name in names)]


def terms_of(chips: str | None, deadline: str | None, budget: str | None, by: str | None) -> Terms:
    """What `--chips`, `--deadline`, `--budget` and `--by` ask for: at most one of the first three."""
    from chipwise.compare import OBJECTIVES, Terms
    from chipwise.errors import InputError
    from chipwise.units import parse_count, parse_duration, parse_money

    given = {"--chips": chips, "--deadline": deadline, "--budget": budget}
    named = [(flag, value) for flag, value in given.items() if value is not None]
    if len(named) > 1:
        raise InputError(*named[1], f"no other limit beside {named[0][0]}")
    if by is not None and by not in OBJECTIVES:
        raise InputError("--by", by, f"one of {', '.join(OBJECTIVES)}")
    count = None if chips is None else parse_count(chips, "--chips")
    if count is not None and not isinstance(count, int):
        raise InputError("--chips", chips, "a whole number of chips from 1 to 1,000,000")
    return Terms(
        by or ("time" if budget is not None else "cost"),
        count,
        None if deadline is None else parse_duration(deadline, "--deadline"),
        None if budget is None else parse_money(budget, "--budget"),
    )


def blocks(c: Comparison) -> list[Block]:
    """A comparison for people."""
    from chipwise.cli.words import refusals
    from chipwise.present.blocks import Text
    from chipwise.units import format_count
    from chipwise.workload import metrics_that_matter

    t = c.workload.train
    run = (
        f"{format_count(t.samples)} images"
        if t.samples_unit == "images"
        else f"{format_count(t.tokens)} tokens, sequences of {t.sequence:,}"
    )
    kind = f"{t.precision}, LoRA of rank {t.lora_rank}" if t.lora_rank else t.precision
    out: list[Block] = [
        Text(f"{c.workload.name}: {run}, global batch {t.global_batch:,}, {kind}; by {c.terms.objective}"),
        _table(c),
    ]
    out += [Text("Decision", True), Text(c.words.pick), Text(c.words.why), Text(c.words.flip)]
    if c.refused:
        out.append(Text("Refused", True))
        out += [Text(f"  {line}") for line in refusals(c.refused)]
    out += [Text("What decides this workload", True), *(Text(f"  {m}") for m in metrics_that_matter(c.workload))]
    return [*out, Text("Assumptions", True), *(Text(f"  {a}") for a in c.assumptions)]


def _table(c: Comparison) -> Table:
    from chipwise.present.blocks import Table

    rate = "images/s/chip" if c.workload.train.samples_unit == "images" else "tokens/s/chip"
    headers = ["#", "chips", "layout", "step", "90 %", rate, "MFU", "time", "kWh", "on demand", "spot", "evidence"]
    rows = [[str(i + 1), *_cells(row)] for i, row in enumerate(c.rows)]
    picked = frozenset(i for i, row in enumerate(c.rows) if row is c.pick)
    return Table(
        headers,
        rows,
        frozenset({"chips", "layout", "evidence"}),
        picked,
        under=("layout",),
        drop=("kWh", "spot", rate, "90 %", "MFU"),
    )


def _cells(row: TrainingRow) -> list[str]:
    from chipwise.units import format_seconds

    p, rate = row.prediction, row.tokens_per_s_per_chip.value
    low, high = p.step.low / p.step.value - 1, p.step.high / p.step.value - 1
    return [
        str(row.accelerators),
        str(p.layout),
        format_seconds(p.step.value),
        f"{low * 100:+.0f}/{high * 100:+.0f}%",
        f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}",
        f"{p.mfu * 100:.0f}%",
        format_seconds(p.duration.value),
        f"{p.kwh.value:,.0f}" if p.kwh.value >= 100 else f"{p.kwh.value:.3g}",
        _dollars(row.ondemand, "no public price"),
        _dollars(row.spot, "-"),
        p.step.evidence,
    ]


def _dollars(q: Quote | None, missing: str) -> str:
    from chipwise.units import format_money

    if q is None:
        return missing
    return format_money(q.usd.value) + ("*" if q.price.stale else "")
