"""What a report says: the pick, why, what flips it, ranges, bills, break-even, evidence and every assumption."""

import csv
import re
from dataclasses import replace
from pathlib import Path

import pytest
from report_cases import DAY, REPORTS, assumptions, bills, fleet, served, service, trained, training
from report_fleet import fleet_answer, infeasible

from chipwise.catalog.calibration import load_calibration
from chipwise.cost import state_cost
from chipwise.cost.statement import ONDEMAND, OWNED
from chipwise.knowledge import Knowledge
from chipwise.present.blocks import Link, Table
from chipwise.report.comparison import comparison_report
from chipwise.report.costs import standing
from chipwise.report.fleet import fleet_report
from chipwise.report.parts import Figure, Points, Prose
from chipwise.units import format_money, format_seconds
from chipwise.validate.kept import kept_scores

ROOT = Path(__file__).resolve().parents[2]


def words(report):
    """All that a report says, figures included."""
    d = report.decision
    out = [report.title, report.about, d.headline, d.summary]
    out += [text for tile in d.tiles for text in (tile.label, tile.value, tile.range, tile.note)]
    out += [text for answer in d.answers for text in (answer.title, *answer.items)]
    for section in report.sections:
        out.append(section.title)
        for part in section.parts:
            match part:
                case Prose():
                    out += [part.lead, part.words]
                case Points():
                    out += [part.title, *part.items]
                case Table():
                    out += [part.title, *part.headers, *part.notes]
                    out += [cell.words if isinstance(cell, Link) else cell for row in part.rows for cell in row]
                case Figure():
                    out += [part.caption, part.description]
    return "\n".join(out)


def section(report, name):
    return next(s for s in report.sections if s.id == name)


def test_the_decision_has_the_pick_its_cost_and_time_with_ranges_and_its_evidence():
    found, report = trained(), training()
    pick, d = found.pick, report.decision
    bill, rent = bills()[0].by(ONDEMAND), format_money(pick.ondemand.usd.value)
    assert d.headline.startswith("Pick 64 ×") and format_money(bill.total) in d.summary and rent in d.summary
    tiles = {tile.label: tile for tile in d.tiles}
    assert tiles["Cost on demand"].value == format_money(bill.total)
    assert tiles["Cost on demand"].range == f"{format_money(bill.usd.p10)} to {format_money(bill.usd.p90)}"
    assert tiles["Cost on demand"].note.endswith(f"rented chips alone: {rent}")
    assert (
        tiles["Time to train"].value == format_seconds(pick.prediction.duration.value)
        and " to " in tiles["Time to train"].range
    )
    assert tiles["Evidence"].value == pick.prediction.step.evidence
    answers = {answer.title: answer.items for answer in d.answers}
    assert answers["Why"][0].endswith(found.words.why.removeprefix("It costs ")) and any(
        found.flips[0].words in item for item in answers["What would change this"]
    )
    assert d.figure is not None


def page_one(report):
    d = report.decision
    tiles = [text for tile in d.tiles for text in (tile.label, tile.value, tile.range, tile.note)]
    answers = [text for answer in d.answers for text in (answer.title, *answer.items)]
    return "\n".join([d.headline, d.summary, *tiles, *answers, d.figure.caption, d.figure.description])


@pytest.mark.parametrize("report", [training, service, lambda: comparison_report(trained())])
def test_no_layout_is_on_the_first_page(report):
    assert not re.search(r"\b(dp|tp|pp|fsdp|zero|mbs)=", page_one(report()))


def test_on_demand_and_energy_have_one_meaning_in_a_report():
    report, pick = training(), bills()[0]
    costs = [tile for tile in report.decision.tiles if "on demand" in tile.label.lower()]
    assert [tile.value for tile in costs] == [format_money(pick.by(ONDEMAND).total)]
    headers = [h for s in report.sections for part in s.parts if isinstance(part, Table) for h in part.headers]
    assert "chips on demand" in headers and not any("kWh" in header for header in headers)
    assert [header for header in headers if "Wh" in header] == ["MWh at the meter"]
    assert "Rented chips on demand" in report.decision.figure.caption


def test_the_place_of_the_pick_among_all_bills_is_explained():
    pick, other = bills()
    every = [option for s in (pick, other) for option in s.options]
    mine = pick.by(ONDEMAND)
    lower = [option for option in every if option.total < mine.total]
    points = standing((pick, other))
    assert lower and f"number {len(lower) + 1} of {len(every)} options" in points[0]
    assert all(any(point.startswith(f"{option.pricing}: ") for point in points[1:]) for option in lower)
    assert all(format_money(option.total) in "".join(points) for option in lower)
    assert any("taken away" in point for point in points) == any(option.pricing == "spot" for option in lower)
    first = replace(pick, options=(mine,))
    assert standing((first,)) == (
        "With every cost counted it is the cheapest of 1 options: 1 set of chips by every pricing model with a price.",
    )
    assert {a.title: a.items for a in training().decision.answers}["Its place among all options"] == points


def test_every_chip_compared_is_in_the_table_and_every_refusal_has_its_reason():
    found, said = trained(), words(training())
    (table,) = (
        p for p in section(training(), "comparison").parts if isinstance(p, Table) and p.title.startswith("All chips")
    )
    assert [row[0] for row in table.rows] == [str(r.accelerators) for r in found.rows]
    assert table.strong == {found.rows.index(found.pick)}
    assert found.refused and all(r.reason in said for r in found.refused)


def test_a_bill_adds_up_and_names_whose_price_it_is():
    pick = bills()[0]
    (table,) = (p for p in section(training(), "cost").parts if isinstance(p, Table) and p.title.startswith("The bill"))
    assert [row[0] for row in table.rows] == [t.pricing for t in pick.options]
    for row, term in zip(table.rows, pick.options, strict=True):
        assert (
            format_money(term.total) in row and f"{format_money(term.usd.p10)} to {format_money(term.usd.p90)}" in row
        )
    assert all(m.reason in words(training()) for m in pick.missing)


def test_the_break_even_chart_has_the_owned_curve_and_the_clouds():
    purchase = bills()[0].purchase
    assert purchase is not None
    figure = next(p for p in section(training(), "break-even").parts if isinstance(p, Figure))
    assert f"{purchase.curve[-1][1]:.2f}" in figure.description and "break-even at" in figure.description


def test_chips_that_nobody_sells_say_so_instead():
    tpu = next(r for r in trained().rows if r.accelerators.chip.id == "v5p")
    bill = state_cost(tpu, assumptions())
    report = comparison_report(trained(), (bill,))
    assert bill.purchase is None and bill.by(OWNED) is None
    assert "No break-even of owning." in words(report) and "Google Cloud alone" in words(report)


def test_every_assumption_is_printed_with_its_source_and_date():
    said = words(training())
    assert all(a in said for a in trained().assumptions)
    for used in bills()[0].used:
        assert used.name in said and used.source in said and used.date in said
    offers = [q.price.offer for r in trained().rows for q in (r.ondemand, r.spot) if q]
    assert all(o.source in said and o.date in said for o in offers)


def test_stale_prices_are_marked_wherever_they_are_used():
    stale = [r for r in trained().rows if r.ondemand and r.ondemand.price.stale]
    assert stale
    said = words(training())
    assert all(
        f"{format_money(r.ondemand.usd.value)}*" in said and f"{r.ondemand.price.offer.date} stale" in said
        for r in stale
    )


@pytest.mark.parametrize("kind, report", [("training", training), ("inference", service)])
def test_coverage_is_that_of_the_kept_scores(kind, report):
    whole = next(s for s in kept_scores() if s.kind == kind and s.group == "all")
    said = words(report())
    assert (
        f"{whole.figures:,}" in said
        and f"{whole.covers90 * 100:.1f} %" in said
        and f"{whole.median_error * 100:.1f} %" in said
    )


def test_scores_of_another_calibration_are_said_to_be():
    calibration = load_calibration(bench=False)
    old = replace(calibration, training=replace(calibration.training, date="1999-01-01"))
    knowledge = replace(trained().comparer.knowledge, calibration=old)
    other = replace(trained(), comparer=replace(trained().comparer, knowledge=knowledge))
    assert "Not the same calibration." in words(comparison_report(other))
    assert "Not the same calibration." not in words(training())


def test_kept_scores_are_those_of_the_scoreboard_and_of_the_shipped_calibration():
    board = (ROOT / "validation" / "SCOREBOARD.md").read_text(encoding="utf-8")
    rows = list(
        csv.DictReader((ROOT / "src/chipwise/validate/data/scores.csv").read_text(encoding="utf-8").splitlines())
    )
    assert {r["calibration"] for r in rows} == {load_calibration(bench=False).training.date} and len(rows) == len(
        kept_scores()
    )
    for s in kept_scores():
        if s.group == "chip" and s.kind == "training":
            assert f"| {s.name} | " in board and f"{s.covers90 * 100:.1f} % |" in board


def test_without_bills_there_are_fewer_sections_and_no_pick_is_said():
    bare = comparison_report(trained())
    assert [s.id for s in bare.sections] == ["comparison", "trade-off", "sensitivity", "evidence", "assumptions"]
    unpriced = replace(
        trained(), pick=None, rows=tuple(replace(r, ondemand=None, spot=None) for r in trained().rows), flips=()
    )
    report = comparison_report(unpriced)
    assert report.decision.headline == "No pick: no public price" and "nothing to weigh" in words(report)


@pytest.mark.parametrize("objective", ["time", "energy"])
def test_rows_are_drawn_by_what_they_are_ranked_by(objective):
    found = replace(trained(), terms=replace(trained().terms, objective=objective))
    assert {"time": "Time to train", "energy": "Energy of the chips"}[objective] in comparison_report(found).figures[
        0
    ].caption
    again = replace(served(), terms=replace(served().terms, objective=objective))
    assert {"time": "Time", "energy": "Energy"}[objective] in comparison_report(again).figures[0].caption


def test_a_service_is_costed_by_the_hour_and_the_million():
    found, report = served(), service()
    said = words(report)
    assert (
        f"{format_money(found.pick.ondemand.usd.value)} an hour" in said and "Rented chips for a million tokens" in said
    )
    assert (
        "ttft p99" in said
        and found.words.why.removeprefix("It costs ") in said
        and all(a in said for a in found.assumptions)
    )


def test_a_fleet_plan_shows_orders_periods_alternatives_limits_and_sensitivity():
    answer, report = fleet_answer(), fleet()
    plan, said = answer.plan, words(report)
    assert format_money(plan.usd) in report.decision.headline and f"within {plan.gap * 100:.2f} %" in said
    assert all(p.name in said for p in plan.problem.periods)
    assert all(s.words in said for s in answer.shadows) and "GPU only" in said and "demand +20 %" in said
    assert all(kind in said for kind in plan.by_kind()) and "chat <b>&" in said
    assert {"fig-plan", "fig-capacity", "fig-paid", "fig-alternatives", "fig-sensitivity"} == {
        f.name for f in report.figures
    }


def test_a_demand_that_no_plan_meets_says_what_has_to_give_way():
    report = fleet_report("demand", infeasible(), Knowledge(today=DAY))
    assert report.decision.headline == "No plan meets this demand" and "Raise the quota of v5p by 12 units." in words(
        report
    )
    assert "The fewest constraints" in report.decision.summary
    late = replace(infeasible(), relax=tuple(replace(r, proved=False) for r in infeasible().relax))
    assert "The time ran out: fewer may do" in fleet_report("demand", late, Knowledge(today=DAY)).decision.summary


@pytest.mark.parametrize("name", REPORTS)
def test_figures_and_sections_have_names_of_their_own(name):
    report = REPORTS[name]()
    names = [f.name for f in report.figures] + [s.id for s in report.sections]
    assert len(names) == len(set(names))
