"""Comparisons of services: how many replicas of each chip, what they cost, what is picked and what is refused."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from chipwise.catalog import Accelerators, Offer, load
from chipwise.catalog.calibration import load_calibration
from chipwise.compare import Candidate, Terms, compare
from chipwise.compare.decision import pick_of, runner_up
from chipwise.compare.serving.comparer import ServingComparer
from chipwise.compare.serving.fleet import held, rent, slices
from chipwise.compare.serving.row import OPEN_USE, Demand, demand_of
from chipwise.errors import InputError, Refusal, UnknownName
from chipwise.knowledge import Knowledge
from chipwise.predict.estimate import Distance
from chipwise.prices import listed, sold
from chipwise.serving.capacity import holds
from chipwise.workload import load_serving

DAY = date(2026, 9, 1)
CHIPS = load().chips
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def job(rate=20, model="llama-3.1-8b", **more):
    serve = {"input": 800, "output": 200, "arrival": {"rate": rate}, "slo": {"ttft": "2s", "tpot": "40ms"}, **more}
    return load_serving(overrides={"model": model, "serve": {k: v for k, v in serve.items() if v is not None}})


def on(text, work=None, **terms):
    return compare(
        work or job(),
        [Candidate.read(t) for t in text.split(",")],
        Knowledge(load_calibration(bench=False), today=DAY),
        Terms(**terms),
    )


@pytest.fixture(scope="module")
def several():
    return on("h100,h200,b200,l40s,v5e,gb300,t4")


@pytest.mark.thorough
def test_rows_are_ranked_by_cost_an_hour_and_those_without_a_price_come_last(several):
    priced = [r.ondemand.usd.value for r in several.rows if r.ondemand]
    assert priced == sorted(priced) and 0 < len(priced) < len(several.rows)
    assert all(r.ondemand is None for r in several.rows[len(priced) :])


def test_every_row_holds_the_slo_at_the_demand(several):
    for row in several.rows:
        assert holds(row.served) and row.headroom.value >= 0
        assert row.headroom.low <= row.headroom.value <= row.headroom.high
        assert row.request_rate.value == pytest.approx(20, rel=0.1)


def test_chips_hold_their_replicas(several):
    for row in several.rows:
        acc = row.accelerators
        assert acc.count >= row.fleet.replicas * row.split.chips
        legal = load().slices.get(acc.chip.id)
        assert legal is None or acc.count // acc.slices in legal.chip_counts()


def test_cost_per_million_tokens_is_the_hour_over_its_tokens(several):
    row = several.rows[0]
    usd = row.per_million(row.ondemand).value
    assert usd == pytest.approx(row.ondemand.usd.value / (row.unit_rate.value * 3600) * 1e6)


@pytest.mark.parametrize("chip", ["h100", "l40s", "v5e"])
def test_a_doubled_rate_never_needs_fewer_chips(chip):
    counts = [on(chip, job(rate)).rows[0].accelerators.count for rate in (5, 10, 20, 40, 80)]
    assert counts == sorted(counts) and counts[-1] > counts[0]


def test_a_row_does_not_depend_on_the_chips_beside_it(several):
    row = next(r for r in several.rows if r.accelerators.chip.id == "h200")
    alone = on("h200").rows[0]
    assert (alone.accelerators, alone.load) == (row.accelerators, row.load)


def test_a_cheaper_offer_changes_the_pick(several):
    second = runner_up(several.rows, several.pick, "cost")
    flip = next(f for f in several.flips if f.kind == "price")
    assert flip.winner == str(second.accelerators) and flip.after < flip.before
    cheaper = [r.priced(flip.after) if r is second else r for r in several.rows]
    assert pick_of(cheaper, "cost").accelerators == second.accelerators


def test_a_looser_slo_never_needs_more_chips(several):
    assert several.relaxed is not None and several.relaxed.looser.seconds == 2 * several.relaxed.bound.seconds
    same = several.relaxed.same
    assert same is None or same.ondemand.usd.value <= several.pick.ondemand.usd.value


def test_the_words_name_the_pick_and_the_runner_up(several):
    second = runner_up(several.rows, several.pick, "cost")
    assert str(several.pick.accelerators) in several.words.pick and str(several.pick.split) in several.words.pick
    assert str(second.accelerators) in several.words.why


def test_a_fixed_count_is_evaluated_and_refused_above_its_capacity():
    found = on("h100:8,h200:1", job(100))
    assert [(str(r.accelerators), r.kind) for r in found.refused] == [("h200:1", "slo")]
    short = found.refused[0]
    assert (
        "sustains" in short.reason and "of the 100 requests/s" in short.reason and short.unlock == "more chips would do"
    )
    assert str(found.rows[0].accelerators) == "h100:8"
    with pytest.raises(Refusal, match=r"h200:1 sustains .* of the 100 requests/s"):
        on("h200:1", job(100))


def test_what_a_row_takes_is_not_refused_as_a_named_count(several):
    for row in several.rows[:3]:
        again = on(str(row.accelerators)).rows[0]
        assert again.accelerators == row.accelerators and again.load.value >= 20


def test_counts_named_are_kept():
    found = on("h100:8,h200:4")
    assert {str(r.accelerators) for r in found.rows} == {"h100:8", "h200:4"}
    assert "counts: as named" in found.assumptions
    assert {r.accelerators.count for r in on("h100,h200", chips=8).rows} == {8}


def test_an_slo_no_load_keeps_is_refused_with_the_nearest():
    with pytest.raises(Refusal, match="tpot p99 of 1 ms can't be met: the nearest is"):
        on("l4", job(slo={"tpot": "1ms"}))
    with pytest.raises(Refusal, match=r"none of the 2 chips compared can serve .*the nearest: on h200"):
        on("l4,h200", job(slo={"tpot": "1ms"}))


def test_a_model_too_large_for_any_replica_is_refused_for_memory():
    found = on("p4,h100", job(1, "llama-3.1-405b", slo={"tpot": "200ms"}))
    assert [(r.chip.id, r.kind) for r in found.refused] == [("p4", "memory")]


@pytest.mark.thorough
@pytest.mark.parametrize("objective", ["time", "energy"])
def test_rows_are_ranked_by_the_objective(objective):
    found = on("h100,l40s,v5e", objective=objective)
    values = [r.by(objective).value for r in found.rows]
    assert values == sorted(values)
    cheap = {r.accelerators.chip.id: r for r in on("h100,l40s,v5e").rows}
    for row in found.rows:
        assert row.by(objective).value <= cheap[row.accelerators.chip.id].by(objective).value * 1.02


def test_a_budget_is_dollars_an_hour():
    found = on("h100,h200,b200,gb300", budget_usd=5.8)
    assert all(r.ondemand.usd.value <= 5.8 for r in found.rows)
    reasons = {r.chip.id: r.reason for r in found.refused}
    assert "an hour" in reasons["b200"] and "no public price" in reasons["gb300"]


def test_only_an_offline_job_has_a_deadline():
    with pytest.raises(InputError, match="a service has no end"):
        on("h100", deadline_s=3600)
    batch = job(arrival=None, slo=None, offline={"requests": "1M", "deadline": "6h"})
    slow, fast = on("h100", batch).rows[0], on("h100", batch, deadline_s=3600).rows[0]
    assert slow.seconds.value <= 6 * 3600 and fast.seconds.value <= 3600
    assert fast.accelerators.count > slow.accelerators.count


def test_an_offline_job_without_a_deadline_costs_by_the_token():
    found = on("h100,l4", job(arrival=None, slo=None, offline={"requests": "1M"}))
    assert found.comparer.demand == Demand("job", 0.0) and all(r.headroom is None for r in found.rows)
    costs = [r.per_million(r.ondemand).value for r in found.rows]
    assert costs == sorted(costs) and "a million tokens" in found.words.pick


def test_users_of_a_closed_loop_are_sustained():
    work = job(arrival={"users": 200})
    assert demand_of(work) == Demand("users", 200.0)
    row = on("h100", work).rows[0]
    assert holds(row.served) and row.load.value >= 200


@pytest.mark.parametrize("name", ["bert-serve", "llama-3.1-8b-offline", "trace-serve"])
def test_examples_compare(name):
    found = on("h100,l4,v5e", load_serving(EXAMPLES / f"{name}.yaml"))
    assert found.pick is not None and len(found.rows) == 3


def test_a_model_of_one_pass_is_paid_by_the_request():
    work = load_serving(EXAMPLES / "resnet-50-serve.yaml", {"serve.slo.e2e": {"p99": "60ms"}})
    row = on("t4", work).rows[0]
    assert not row.writes and row.unit_rate == row.request_rate
    assert 0 < row.unloaded.value <= row.served.e2e.p50.value <= 0.06


def test_a_stack_runs_only_where_it_runs():
    found = on("h100,v5e", job(stack="jetstream"))
    assert [r.kind for r in found.refused] == ["stack"] and found.rows[0].accelerators.chip.id == "v5e"
    with pytest.raises(UnknownName):
        on("h100", job(stack="megatron"))


def test_without_any_price_there_is_no_pick_on_cost():
    found = on("mi355x,gb300")
    assert found.pick is None and found.words.pick.startswith("No pick on cost")


@pytest.mark.parametrize("chip", load().chips)
@pytest.mark.parametrize("each, replicas", [(1, 1), (1, 5), (2, 3), (8, 2), (16, 3)])
def test_fleets_hold_the_replicas_and_spot_likewise(chip, each, replicas):
    for spot in (False, True):
        fleet = rent(CHIPS[chip], each, replicas, spot, DAY)
        assert fleet.replicas >= replicas and fleet.accelerators.count >= fleet.replicas * each
        assert fleet.price is None or fleet.price.spot is spot


def test_instances_of_one_chip_do_for_replicas_of_one_chip():
    fleet = rent(CHIPS["l4"], 1, 13, today=DAY)
    assert fleet.accelerators.count == fleet.replicas == 13


def test_replicas_fill_the_instances_that_are_rented():
    fleet = rent(CHIPS["h200"], 4, 3, today=DAY)
    assert fleet.accelerators.count == 16 and fleet.replicas == 4


def test_slices_exist_and_named_chips_hold_whole_replicas():
    assert str(slices(CHIPS["v5e"], 1, 1)) == "v5e:1x1"
    assert held(Candidate.read("h100:6").fixed, 4, DAY).replicas == 1
    assert held(Candidate.read("h100:2").fixed, 4, DAY).replicas == 0


def test_the_demand_of_another_size_keeps_what_replicas_sustain():
    work = job()
    market = ServingComparer.of(work, Terms(), Knowledge(load_calibration(bench=False), today=DAY))
    market.replicas(CHIPS["h100"])
    twice = market.times(2.0)
    assert twice.known is market.known and twice.demand.load == 40
    assert replace(market.demand, load=0.0).replicas(3.0) == 1


def test_without_an_slo_a_fleet_is_not_filled_to_the_brim():
    work = load_serving(overrides={"model": "resnet-50", "serve": {"arrival": {"rate": 20000}}})
    found = on("h100,l4", work)
    assert all(row.headroom.value >= 1 / OPEN_USE - 1.02 for row in found.rows)
    assert any("at most 80 % is used" in line for line in found.assumptions)


def test_a_bounded_row_nearer_than_the_runner_up_is_named():
    comparison = on("a100-80gb,gaudi2,l40s", load_serving(overrides={
        "model": "mistral-7b", "serve": {"input": 800, "output": 200, "arrival": {"rate": 10}, "slo": {"tpot": "40ms"}}
    }))  # fmt: skip
    values = [row.ondemand.usd.value for row in comparison.rows]
    pick, second = comparison.pick, runner_up(comparison.rows, comparison.pick, "cost")
    between = [r for r in comparison.rows if r is not pick and r.ondemand.usd.value < second.ondemand.usd.value]
    assert values == sorted(values)
    assert ("comes nearer by its value" in comparison.words.why) == bool(between)
    assert between and str(between[0].accelerators) in comparison.words.why


def test_a_fleet_beyond_what_its_seller_supplies_is_said():
    assert "Without a contract" not in on("h100", job(100)).words.pick
    found = on("h100", job(100_000))
    most = sold(found.pick.ondemand.price.offer)
    assert found.pick.accelerators.count > most and f"counted on for {most:,} of them" in found.words.pick


def test_named_chips_are_paid_for_in_whole_instances():
    h200 = CHIPS["h200"]
    book = listed()
    only = replace(book, offers=tuple(o for o in book.offers if o.chip_id == "h200" and o.chips == 8))
    one = held(Accelerators(h200, 1), 1, today=DAY, book=only)
    assert (one.replicas, one.idle) == (1, 7)
    assert one.usd_per_hour == pytest.approx(8 * one.price.usd_per_chip_hour)
    assert held(Accelerators(h200, 8), 1, today=DAY, book=only).idle == 0
    whole = rent(h200, 1, 1, today=DAY, book=only)
    assert one.usd_per_hour == whole.usd_per_hour


def test_a_difference_too_small_to_decide_by_is_called_so():
    work = load_serving(overrides={"model": "vit-l-16", "serve": {"arrival": {"rate": 200}}})
    book = listed()
    usd = {"h100": 2.0, "h200": 2.01}
    own = tuple(
        Offer(chip, "own", "here", "any", 1.0, price, None, "2026-08-30", "a contract", own=True)
        for chip, price in usd.items()
    )
    knowledge = Knowledge(load_calibration(bench=False), replace(book, offers=own), today=DAY)
    found = compare(work, [Candidate.read("h100"), Candidate.read("h200")], knowledge, Terms())
    assert "0.5 % less" in found.words.why and found.words.why.endswith("too near to call.")


def test_a_chip_without_published_serving_figures_is_never_a_certain_winner():
    alone = on("gaudi2", job(rate=1, slo={"tpot": "200ms"}))
    assert alone.pick.load.distance is Distance.NOBODY and not alone.pick.certain
    assert "No published serving figure of gaudi2" in alone.words.pick
    assert "enough even at the low end" not in alone.words.pick
    assert alone.to_dict()["rows"][0]["headroom"]["distance"] == "nobody"
    known = on("h100", job(rate=1, slo={"tpot": "200ms"}))
    assert known.pick.certain and "No published" not in known.words.pick
    (close, far) = ((r.load.high - r.load.low) / r.load.value for r in (known.pick, alone.pick))
    assert far > close
