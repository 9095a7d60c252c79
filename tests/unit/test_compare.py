"""Comparisons: how many of each chip, how they rank, what is picked and what is said."""

from dataclasses import replace
from datetime import date

import pytest

from chipwise.catalog import load
from chipwise.catalog.calibration import load_calibration
from chipwise.compare import Candidate, Terms, compare
from chipwise.compare.decision import pick_of, runner_up, score
from chipwise.compare.terms import at_least, ladder
from chipwise.compare.training.comparer import TrainingComparer
from chipwise.compare.training.flips import flips
from chipwise.compare.training.row import TrainingRow
from chipwise.errors import DoesNotFit, InputError, NoLayout, Refusal, UnknownName
from chipwise.knowledge import Knowledge
from chipwise.predict.setup import named_stack
from chipwise.units import format_seconds
from chipwise.workload import load_workload

DAY = date(2026, 9, 1)
CHIPS = load().chips


def job(model="llama-3.1-8b", batch=256, sequence=4096, **more):
    return load_workload(overrides={"model": model, "steps": 1000, "global_batch": batch, "sequence": sequence, **more})


def on(text, work=None, **terms):
    return compare(
        work or job(),
        [Candidate.read(t) for t in text.split(",")],
        Knowledge(load_calibration(bench=False), today=DAY),
        Terms(**terms),
    )


@pytest.fixture(scope="module")
def several():
    return on("h100,h200,b200,v5p,mi300x,gb300")


def test_rows_are_ranked_by_cost_and_those_without_a_price_come_last(several):
    priced = [r.ondemand.usd.value for r in several.rows if r.ondemand]
    assert priced == sorted(priced) and 0 < len(priced) < len(several.rows)
    assert all(r.ondemand is None for r in several.rows[len(priced) :])


@pytest.mark.parametrize("objective", ["time", "energy"])
def test_rows_are_ranked_by_the_objective(objective):
    found = on("h100,b200,v5p,gb300", objective=objective)
    values = [r.by(objective).value for r in found.rows]
    assert values == sorted(values) and found.pick is found.rows[0]


def test_equal_counts_unless_said(several):
    assert {r.accelerators.count for r in several.rows} == {64}
    assert any("assumed" in a and "64 chips" in a for a in several.assumptions)


def test_a_count_given_with_the_chip_wins_over_the_common_one():
    found = on("h100:16,h200", chips=32)
    assert {r.accelerators.count for r in found.rows} == {16, 32}


def test_the_words_name_the_pick_the_runner_up_and_a_flip(several):
    second = runner_up(several.rows, several.pick, "cost")
    assert str(several.pick.accelerators) in several.words.pick
    assert str(second.accelerators) in several.words.why
    assert several.flips and several.flips[0].words in several.words.flip


def test_bounded_evidence_is_picked_by_its_high_end():
    found = on("mi300x,h200")
    bounded = next(r for r in found.rows if r.prediction.step.evidence == "bounded")
    assert score(bounded, "cost") == bounded.ondemand.usd.high
    other = next(r for r in found.rows if r is not bounded)
    cheaper = bounded.priced(
        bounded.ondemand.price.usd_per_chip_hour * 0.99 * score(other, "cost") / bounded.ondemand.usd.value
    )
    assert cheaper.ondemand.usd.value < score(other, "cost")
    assert pick_of([cheaper, other], "cost") is other


def test_a_precision_a_chip_lacks_is_a_refusal_not_an_end():
    found = on("v100,h100")
    assert [r.kind for r in found.refused] == ["precision"] and len(found.rows) == 1


def test_a_model_that_fits_nowhere_says_the_smallest_slice_of_each_chip():
    work = job("llama-3.1-70b", 64)
    with pytest.raises(DoesNotFit, match=r"the smallest of each that hold it are h100:\d+, v5e:"):
        on("h100:2,v5e:1", work)
    with pytest.raises(DoesNotFit, match=r"the smallest that holds it is h100:\d+"):
        on("h100:2", work)


def test_a_batch_that_no_layout_divides_is_refused():
    with pytest.raises(NoLayout, match="nearest global batch"):
        on("h100:64", job("resnet-50", 7, None))


def test_a_stack_runs_only_where_it_runs():
    found = on("h100,v5p", job(stack="megatron"))
    assert [str(r.accelerators) for r in found.rows] == ["h100:64"] and found.refused[0].kind == "stack"
    with pytest.raises(UnknownName):
        named_stack(job(stack="megatrom-2"))


def test_a_deadline_is_met_by_the_high_end_at_nearly_the_least_cost():
    found = on("h100,v5p", deadline_s=6 * 3600)
    for row in found.rows:
        assert row.prediction.duration.high <= 6 * 3600
        others = [on(str(acc)) for acc in ladder(row.accelerators.chip) if 64 <= acc.count <= 2048]
        in_time = [c.rows[0] for c in others if c.rows[0].prediction.duration.high <= 6 * 3600]
        assert row.ondemand.usd.value <= 1.05 * min(other.ondemand.usd.value for other in in_time)


def test_a_deadline_nobody_meets_is_refused_with_the_fastest():
    with pytest.raises(Refusal, match=r"takes up to .* the deadline is"):
        on("h100", deadline_s=60)


def test_the_fastest_count_within_a_budget():
    found = on("h100,v5p", objective="time", budget_usd=20_000)
    for row in found.rows:
        assert row.ondemand.usd.high <= 20_000
        smaller = on(f"{row.accelerators.chip.id}:8")
        assert row.prediction.duration.value < smaller.rows[0].prediction.duration.value


def test_a_budget_too_small_is_refused_with_the_least():
    with pytest.raises(Refusal, match=r"costs .*; the budget is \$5"):
        on("h100", budget_usd=5)


def test_a_chip_without_a_price_cannot_be_budgeted():
    found = on("h100,gb300", budget_usd=50_000)
    assert [r.chip.id for r in found.refused] == ["gb300"] and "no public price" in found.refused[0].reason


def test_a_chip_priced_as_single_nodes_alone_is_refused_in_words_within_a_budget():
    found = on("h100,gh200", budget_usd=50_000)
    assert [r.chip.id for r in found.refused] == ["gh200"] and "fast fabric" in found.refused[0].unlock


def test_without_any_price_there_is_no_pick_on_cost():
    found = on("mi355x,gb300")
    assert found.pick is None and found.words.pick.startswith("No pick on cost")


@pytest.mark.parametrize(
    "terms",
    [
        {"objective": "beauty"},
        {"chips": 0},
        {"chips": 10**7},
        {"deadline_s": 0.0},
        {"deadline_s": 1e12},
        {"budget_usd": 0.0},
        {"budget_usd": -1.0},
        {"budget_usd": float("nan")},
        {"deadline_s": float("nan")},
    ],
)
def test_terms_out_of_range_are_refused(terms):
    with pytest.raises(InputError):
        Terms(**terms)


@pytest.mark.parametrize("chip", load().chips)
@pytest.mark.parametrize("n", [1, 7, 64, 300, 5000])
def test_counts_are_rounded_up_to_what_exists(chip, n):
    acc = at_least(CHIPS[chip], n)
    assert n <= acc.count
    if chip not in load().slices and n >= acc.chip.fabric.host_chips:
        assert acc.count % acc.chip.fabric.host_chips == 0


def test_a_batch_or_a_count_that_flips_is_found_by_searching_again(several):
    place = TrainingComparer(job(), Terms(), Knowledge(load_calibration(bench=False), today=DAY))
    worst = [r for r in several.rows if r.ondemand][-1]
    pretended = [r if r is worst else r.slower(1e4) for r in several.rows]  # searching again undoes that
    found = flips(place, pretended, worst)
    sizes = [round(f.size, 4) for f in found]
    assert sizes == sorted(sizes) and {"batch", "chips", "price", "efficiency"} == {f.kind for f in found}
    assert found[0].kind in ("batch", "chips") and found[0].after / found[0].before in (0.5, 2.0)


def test_a_row_can_be_made_slower(several):
    row: TrainingRow = several.rows[0]
    half = row.slower(2.0)
    assert half.prediction.mfu == pytest.approx(row.prediction.mfu / 2)
    assert half.ondemand.usd.value == pytest.approx(2 * row.ondemand.usd.value)
    assert replace(half, prediction=row.prediction, ondemand=row.ondemand, spot=row.spot) == row


def test_counts_named_with_every_chip_are_not_called_assumed():
    found = on("h100:16,v5e:16")
    assert "counts: as named" in found.assumptions


def test_frozen_base_weights_are_said():
    found = on("h100:8", job(batch=64, lora={"rank": 16}))
    assert any(a.startswith("LoRA of rank 16") for a in found.assumptions)


@pytest.mark.parametrize(
    "slower, faster", [("mi350x", "mi355x"), ("h100", "h200"), ("a100-40gb", "a100-80gb"), ("gb200", "gb300")]
)
def test_a_sibling_with_better_figures_is_not_slower(slower, faster):
    found = {r.accelerators.chip.id: r.prediction.step.value for r in on(f"{slower},{faster}", objective="time").rows}
    assert found[faster] <= found[slower]


def test_a_chip_that_only_serves_is_refused_for_training():
    found = on("inferentia2,h100")
    assert [(r.chip.id, "does not train" in r.reason) for r in found.refused] == [("inferentia2", True)]


def test_a_serving_replica_is_not_a_training_stack():
    with pytest.raises(UnknownName, match="megatron"):
        named_stack(job(stack="vllm"))


def test_spot_that_is_dearer_than_on_demand_is_not_shown():
    for row in compare(job(), None, Knowledge(load_calibration(bench=False), today=DAY)).rows:
        assert not (row.ondemand and row.spot) or row.spot.usd.value < row.ondemand.usd.value


def test_a_run_of_years_is_called_long():
    found = on("h100", job(steps=3_000_000), chips=8)
    assert "more than a year" in found.words.pick


def test_plain_stacks_are_assumed_for_models_that_are_not_language_models():
    found = on("h100:8,v5e:8", job("bert-large", 4096, 512))
    assert {r.prediction.stack.id for r in found.rows} == {"pytorch", "jax"}


def test_rows_that_take_20_times_the_best_share_a_line():
    found = on("h100:64,h200:64,h100:2", objective="time")
    text = str(found)
    slow = found.rows[-1]
    assert f"1 more: --all (1 above 20x the best: h100:2 at {format_seconds(slow.prediction.duration.value)})" in text
    assert len(found.to_dict()["rows"]) == 3 and "above 20x" not in str(on("h100:64,h200:64", objective="time"))


def test_a_small_share_of_the_budget_is_not_called_none():
    assert "under 1 % of the budget" in on("h100", budget_usd=1e9, objective="cost").words.pick


def test_a_batch_too_small_for_a_count_that_nobody_named_is_answered_by_one_that_does():
    small = load_workload(
        "model: llama-3.2-1b\ntrain: {steps: 10, global_batch: 16, sequence: 2048, stack: fsdp, lora: {rank: 8}}"
    )
    with pytest.raises(Refusal, match=r"no count was named: `--chips 16` would do; the nearest global batch"):
        compare(small, [Candidate.read("h100")])
    assert compare(small, [Candidate.read("h100")], terms=Terms(chips=16)).rows[0].accelerators.count == 16
    with pytest.raises(Refusal) as named:
        compare(small, [Candidate.read("h100")], terms=Terms(chips=64))
    assert "--chips" not in str(named.value)
