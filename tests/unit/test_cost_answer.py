"""Statements of cost: their arithmetic, what is missing and why, and how inputs move them."""

from dataclasses import replace
from datetime import date

import pytest

from chipwise.catalog import Commitment, load
from chipwise.catalog.calibration import load_calibration
from chipwise.catalog.economics import economics, site, site_with
from chipwise.compare import Candidate, Terms
from chipwise.compare.serving.comparer import ServingComparer
from chipwise.compare.training.comparer import TrainingComparer
from chipwise.cost import PRICING_MODELS, CostAssumptions, chosen, state_cost
from chipwise.cost.migration import Program
from chipwise.errors import InputError, UnknownName
from chipwise.knowledge import Knowledge
from chipwise.prices import listed, price_of
from chipwise.prices.fit import counts
from chipwise.workload import load_serving, load_workload

TODAY = date(2026, 9, 1)
RUN = load_workload("model: llama-3.1-8b\ntrain: {tokens: 100B, global_batch: 512, sequence: 8192}")
CALM = {"failure_chip_hour": 0.0, "spot_per_hour": 0.0, "checkpoint_gb_s_node": 1e6, "checkpoint_gb_s_all": 1e9}


@pytest.fixture(scope="module")
def rows():
    place = TrainingComparer(RUN, Terms(), Knowledge(load_calibration(bench=False), today=TODAY))
    return {name: place.evaluate(Candidate.read(name)) for name in ("h100:64", "v5p:64", "v7x:64", "mi300x:64")}


def assumptions(book=None, know=None, today=TODAY, seed=0, **changes):
    known = Knowledge(prices=book or listed(), economics=economics().changed(know or {}), today=today, seed=seed)
    return replace(CostAssumptions(site("us-average"), known, draws=400), **changes)


def test_on_demand_without_failures_is_chip_hours_by_price(rows):
    row = rows["h100:64"]
    got = state_cost(row, assumptions(know=CALM)).by("on demand")
    price = price_of(load().chips["h100"], 64, today=TODAY)
    assert got.split.compute == pytest.approx(
        64 * row.prediction.duration.value / 3600 * price.usd_per_chip_hour, rel=1e-6
    )
    assert got.source.usd_per_chip_hour == price.usd_per_chip_hour and got.hours == pytest.approx(
        row.prediction.duration.value / 3600
    )


def test_parts_add_up_and_units_divide_the_total(rows):
    got = state_cost(rows["h100:64"], assumptions(epochs=2.0))
    for term in got.options:
        assert term.total == pytest.approx(
            sum(getattr(term.split, part) for part in ("compute", "storage", "egress", "energy", "staff", "migration"))
        )
        per = dict(term.per)
        assert per["run"] == term.total and per["epoch"] == pytest.approx(term.total / 2)
        assert per["step"] == pytest.approx(term.total / RUN.train.steps)
        assert per["1M tokens"] == pytest.approx(term.total / RUN.train.tokens * 1e6)
        assert term.usd.p10 <= term.usd.p50 <= term.usd.p90
        assert term.hours_range.p10 <= term.hours_range.p50 <= term.hours_range.p90


def test_every_kind_of_terms_is_billed_or_said_to_be_missing(rows):
    for row in rows.values():
        got = state_cost(row, assumptions())
        assert sorted([t.pricing for t in got.options] + [m.pricing for m in got.missing]) == sorted(PRICING_MODELS)
        assert all(m.reason for m in got.missing)


def test_tpus_are_not_sold_and_unpriced_chips_get_no_price(rows):
    v5p = state_cost(rows["v5p:64"], assumptions())
    assert v5p.purchase is None and any("not sold" in m.reason for m in v5p.missing)
    unpriced = replace(listed(), offers=tuple(o for o in listed().offers if o.chip_id != "v7x"), commitments=())
    row = replace(rows["v7x:64"], ondemand=None, spot=None)
    assert not state_cost(row, assumptions(book=unpriced)).options


def test_only_used_hours_are_paid_on_demand_and_all_of_a_commitment(rows):
    half, whole = (state_cost(rows["v5p:64"], assumptions(utilization=u, know=CALM)) for u in (0.5, 1.0))
    assert half.by("on demand").total == whole.by("on demand").total
    assert half.by("3 years").split.compute == pytest.approx(2 * whole.by("3 years").split.compute)
    half, whole = (state_cost(rows["h100:64"], assumptions(utilization=u, know=CALM)) for u in (0.5, 1.0))
    assert half.by("on-premises").total > whole.by("on-premises").total


def test_owned_chips_cost_their_used_chip_hour(rows):
    got = state_cost(rows["h100:64"], assumptions(utilization=0.7, know=CALM))
    term, mine = got.by("on-premises"), got.purchase.owned
    paid = term.split.compute + term.split.energy + term.split.staff
    hour = mine.usd_per_chip_hour(0.7, got.purchase.chip_w)
    assert paid == pytest.approx(64 * term.hours * hour, rel=1e-6)


def test_break_even_against_a_cloud_is_where_a_used_hour_costs_the_same(rows):
    got = state_cost(rows["h100:64"], assumptions()).purchase
    reached = [rival for rival in got.rivals if rival.utilization <= 1]
    assert reached
    for rival in reached:
        assert got.owned.usd_per_chip_hour(rival.utilization, got.chip_w) == pytest.approx(
            rival.source.usd_per_chip_hour
        )


def test_electricity_moves_what_is_owned_alone(rows):
    cheap, dear = (
        state_cost(rows["h100:64"], assumptions(site=site_with(site("us-average"), usd, None))) for usd in (0.05, 0.25)
    )
    assert dear.by("on-premises").split.energy == pytest.approx(5 * cheap.by("on-premises").split.energy)
    assert dear.by("on demand").total == cheap.by("on demand").total


def test_interruptions_make_spot_longer_and_dearer(rows):
    calm, wild = (
        state_cost(rows["h100:64"], assumptions(know={"spot_per_hour": rate})).by("spot") for rate in (0.0, 0.2)
    )
    assert wild.total > calm.total and wild.hours > calm.hours
    assert wild.expected.interruptions > calm.expected.interruptions
    assert wild.expected.interval_s < calm.expected.interval_s


def test_interruptions_without_end_leave_no_bill(rows):
    got = state_cost(rows["h100:64"], assumptions(know={"spot_per_hour": 1e4}))
    assert got.by("spot") is None and any("hardly ever end" in m.reason for m in got.missing)


def test_a_tpu_slice_is_interrupted_as_a_whole(rows):
    tpu, gpu = (
        state_cost(rows[name], assumptions(know={**CALM, "spot_per_hour": 0.01})).by("spot")
        for name in ("v5p:64", "h100:64")
    )
    assert tpu.interruptions_per_hour == pytest.approx(0.01) and gpu.interruptions_per_hour == pytest.approx(0.01 * 8)


def test_the_port_is_shared_by_runs(rows):
    program = Program("pytorch", (("cuda", 2),))
    one, ten = (state_cost(rows["v5p:64"], assumptions(program=program, runs=runs)).by("spot") for runs in (1.0, 10.0))
    # 8 weeks for PyTorch and 2 x 4 for the kernels at $6,000
    assert one.split.migration == 96_000 and ten.split.migration == 9_600
    assert any(swing.name == "migration_weeks" for swing in one.tornado)


def test_the_same_seed_gives_the_same_ranges_and_another_seed_others(rows):
    a, b, c = (state_cost(rows["h100:64"], assumptions(seed=seed)) for seed in (1, 1, 2))
    assert [t.usd for t in a.options] == [t.usd for t in b.options] != [t.usd for t in c.options]


def test_the_percentiles_of_the_draws_meet_the_analytic_ones_where_one_input_is_uncertain(rows):
    # with everything else known the total rises with the prediction's factor alone: percentiles of one are the other's
    known = {name: a.value for name, a in economics().table.items()}
    got = state_cost(rows["h100:64"], assumptions(know={**known, **CALM}, draws=100_000)).by("on demand")
    assert [swing.name for swing in got.tornado] == ["run_time"]
    assert got.usd.p50 == pytest.approx(got.total, rel=0.005)
    assert got.usd.p10 == pytest.approx(got.tornado[0].usd_low, rel=0.005)
    assert got.usd.p90 == pytest.approx(got.tornado[0].usd_high, rel=0.005)


def test_the_tornado_is_sorted_and_names_what_was_not_known(rows):
    for term in state_cost(rows["h100:64"], assumptions()).options:
        swings = [swing.swing for swing in term.tornado]
        assert swings == sorted(swings, reverse=True) and swings[0] > 0


def test_a_given_value_is_certain_and_listed_as_given(rows):
    got = state_cost(rows["h100:64"], assumptions(know={"interest": 0.05}))
    assert [a.source for a in got.used if a.name == "interest"] == ["given"]
    assert "interest" not in {swing.name for swing in got.by("on-premises").tornado}


def test_a_statement_bills_the_prices_that_the_comparison_found(rows):
    for row in rows.values():
        got = {term.pricing: term.source for term in state_cost(row, assumptions()).options}
        for pricing, quote in (("on demand", row.ondemand), ("spot", row.spot)):
            assert (quote is None) == (pricing not in got)
            assert quote is None or got[pricing].usd_per_chip_hour == quote.price.usd_per_chip_hour


def test_stale_prices_are_marked(rows):
    later = date(2027, 9, 1)
    place = TrainingComparer(RUN, Terms(), Knowledge(load_calibration(bench=False), today=later))
    row = place.priced(rows["h100:64"].accelerators, None, rows["h100:64"].prediction)
    late = state_cost(row, assumptions(today=later))
    assert all(term.source.stale for term in late.options)


def test_offers_can_be_narrowed():
    book = chosen(listed(), "gcp")
    assert {o.cloud for o in book.offers} == {"gcp"} and {c.cloud for c in book.commitments} == {"gcp"}
    one = chosen(listed(), offer="aws/us-east-1/p4d.24xlarge")
    assert {(o.cloud, o.region, o.instance) for o in one.offers} == {("aws", "us-east-1", "p4d.24xlarge")}
    assert chosen(listed()) == listed()


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"cloud": "nowhere"}, UnknownName),
        ({"cloud": "gcp", "region": "mars"}, UnknownName),
        ({"offer": "gcp"}, InputError),
        ({"offer": "gcp/us-central1/nothing"}, UnknownName),
        ({"offer": "aws/us-east-1/p4d.24xlarge", "cloud": "aws"}, InputError),
    ],
)
def test_offers_that_do_not_exist_are_refused(changes, error):
    with pytest.raises(error):
        chosen(listed(), **changes)


@pytest.mark.parametrize("changes", [{"utilization": 0.0}, {"utilization": 1.2}, {"draws": 3}, {"seed": -1}])
def test_what_makes_no_sense_is_refused(changes):
    with pytest.raises(InputError):
        assumptions(**changes)


@pytest.mark.parametrize("years", [0.0, -1.0, 21.0, float("nan")])
def test_years_that_make_no_sense_are_refused(rows, years):
    with pytest.raises(InputError):
        state_cost(rows["h100:64"], assumptions(years=years))


def test_gpus_are_rented_in_whole_instances():
    run = replace(RUN, train=replace(RUN.train, global_batch=480))
    place = TrainingComparer(
        run, Terms(), Knowledge(load_calibration(bench=False), chosen(listed(), "aws"), today=TODAY)
    )
    row = place.evaluate(Candidate.read("h100:12"))
    got = state_cost(row, assumptions(book=chosen(listed(), "aws"), know=CALM))
    term = got.by("on demand")
    # 12 chips in instances of 8 are 16 chips
    assert term.source.instance == "p5.48xlarge" and term.chip_hours == pytest.approx(16 * term.hours)
    assert any("16 chips for 12" in note for note in got.notes)


def small(name, **changes):
    run = load_workload("model: vit-b/16\ntrain: {images: 1M, global_batch: 1024}")
    row = TrainingComparer(
        run, Terms(), Knowledge(load_calibration(bench=False), changes.get("book", listed()), today=TODAY)
    ).evaluate(Candidate.read(name))
    return row, state_cost(row, assumptions(**changes))


@pytest.mark.parametrize("name", ["h100:1", "h100:2", "h200:1", "l4:1"])
def test_few_chips_rent_the_instances_that_cost_least_not_the_least_chip_hour(name):
    row, got = small(name, know=CALM)
    term, chips = got.by("on demand"), row.accelerators.count
    offers = [o for o in listed().offers_for(row.accelerators.chip.id) if counts(o, False, listed())]
    least = min(o.ondemand_usd_per_chip_hour * o.chips for o in offers if o.chips >= chips)
    assert term.split.compute == pytest.approx(least * term.hours, rel=1e-6)


def test_a_commitment_to_an_instance_is_paid_for_whole_instances():
    book = chosen(listed(), "gcp", "us-central1")
    _, got = small("a100-40gb:2", book=book, know=CALM, utilization=1.0)
    term = got.by("3 years")
    # a2-highgpu-8g has 8 chips
    assert term.source.instance == "a2-highgpu-8g" and term.source.chips == 8
    assert term.chip_hours == pytest.approx(8 * term.hours)
    assert term.split.compute == pytest.approx(8 * term.source.usd_per_chip_hour * term.hours)


def test_chip_hours_of_servers_are_those_of_all_their_chips():
    _, got = small("h100:2", know=CALM, utilization=0.5)
    term = got.by("on-premises")
    assert term.chip_hours == pytest.approx(8 * term.hours / 0.5)  # a server of 8, half of its hours used
    assert term.kwh == pytest.approx(
        term.hours * got.purchase.owned.server_w(got.purchase.owned.mean_w(2, got.purchase.chip_w)) / 1e3 * 1.56
    )


def test_owning_is_held_against_offers_that_can_hold_the_work(rows):
    got = state_cost(rows["h100:64"], assumptions()).purchase
    assert got.offers and all(rival.source.chips >= 8 for rival in got.offers if rival.pricing in ("on demand", "spot"))


def test_a_price_of_accelerators_without_their_host_is_no_price():
    run = load_workload("model: vit-b/16\ntrain: {images: 1M, global_batch: 1024, precision: fp16}")
    book = chosen(listed(), "gcp")
    row = TrainingComparer(run, Terms(), Knowledge(load_calibration(bench=False), book, today=TODAY)).evaluate(
        Candidate.read("v100:8")
    )
    why = {m.pricing: m.reason for m in state_cost(row, assumptions(book=book)).missing}
    assert "leaves the host out" in why["on demand"] and "--price v100=" in why["on demand"]


def test_clouds_of_commitments_alone_are_known_and_case_does_not_matter():
    assert not chosen(listed(), "oblivus").offers and chosen(listed(), "oblivus").commitments
    assert chosen(listed(), "AWS", "US-East-1") == chosen(listed(), "aws", "us-east-1")


def test_single_nodes_that_cannot_be_joined_are_said_to_be_that():
    _, got = small("gh200:16")
    assert any("is known to have a fast fabric" in m.reason for m in got.missing if m.pricing == "on demand")


def test_a_commitment_without_its_host_is_left_out_and_said():
    bare = Commitment("a100-40gb", "bare", "", "", 3, 0.2, None, "2026-08-01", "a list", "accelerator only; host extra")
    book = replace(listed(), commitments=(*listed().commitments, bare))
    assert small("a100-40gb:8", book=book)[1].by("3 years").source.cloud == "gcp"
    alone = small("a100-40gb:8", book=replace(listed(), commitments=(bare,)))[1]
    (why,) = [m.reason for m in alone.missing if m.pricing == "3 years"]
    assert "bare at $0.20/h of 2026-08-01: without the host" in why


def test_commitments_older_than_a_year_or_above_on_demand_are_left_out_and_said():
    _, got = small("h100:8")
    (why,) = [m.reason for m in got.missing if m.pricing == "1 year"]
    assert "oblivus at $3.62/h of 2024-02-26: older than a year" in why
    assert "aws us-east-1 at $2.97/h of 2026-09-17: of low confidence" in why and "more: not below $" in why
    dear = Commitment("h100", "dear", "", "", 1, 99.0, None, "2026-08-01", "a list")
    _, got = small("h100:8", book=replace(listed(), commitments=(dear,)))
    assert any("dear at $99.00/h" in m.reason and "on demand" in m.reason for m in got.missing if m.pricing == "1 year")
    own = replace(dear, own=True, date="2020-01-01")
    assert small("h100:8", book=replace(listed(), commitments=(own,)))[1].by("1 year").source.cloud == "dear"


def test_replicas_on_chips_that_were_asked_for_rent_what_holds_an_replica():
    work = load_serving(
        "model: llama-3.1-8b\nserve: {input: 500, output: 100, offline: {requests: 10k}, precision: fp8}"
    )
    market = ServingComparer.of(work, Terms(), Knowledge(load_calibration(bench=False), today=TODAY))
    row = market.evaluate(Candidate.read("h100:2"))
    term = state_cost(row, assumptions(know=CALM)).by("on demand")
    offers = [o for o in listed().offers_for("h100") if counts(o, False, listed())]
    least = min(o.ondemand_usd_per_chip_hour * max(2, o.chips) for o in offers)
    assert row.split.chips == 1 and term.source.chips <= 2  # not half of a larger one
    assert term.split.compute == pytest.approx(least * term.hours, rel=1e-6)


def test_an_offline_job_has_its_total_and_a_million_tokens_in_and_out():
    work = load_serving("model: llama-3.1-8b\nserve: {input: 900, output: 100, offline: {requests: 10k}}")
    market = ServingComparer.of(work, Terms(), Knowledge(load_calibration(bench=False), today=TODAY))
    row = market.evaluate(Candidate.read("h100:2"))
    term = state_cost(row, assumptions(know=CALM)).by("on demand")
    per = dict(term.per)
    assert per["job"] == term.total and "1M tokens" not in per
    assert per["1M tokens out"] == pytest.approx(term.total / (10_000 * 100) * 1e6, rel=0.02)  # lengths are drawn
    assert per["1M tokens in and out"] == pytest.approx(term.total / (10_000 * 1_000) * 1e6, rel=0.02)
    assert per["1M tokens in and out"] * row.processed_per_written == pytest.approx(per["1M tokens out"])
    assert row.per_million_processed(row.ondemand).value == pytest.approx(
        term.split.compute / term.total * per["1M tokens in and out"], rel=1e-3
    )
