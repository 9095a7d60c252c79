"""Options: every variant in every pool, timed, priced and stretched, or refused with why."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest

from chipwise.catalog.economics import economics
from chipwise.errors import Refusal
from chipwise.predict.estimate import Estimate
from chipwise.route.estimates import Estimator, admit, estimator
from chipwise.route.estimates.stretch import stretched
from chipwise.route.job import Checkpoint, Constraints, Data, Job
from chipwise.route.load.jobs import jobs_of
from chipwise.route.option import Infeasible, Option
from chipwise.route.pool import Pool

NOW = 1_800_000_000.0
ROOT = Path(__file__).parents[2]
H100 = Pool(
    "h100", "slurm", "h100", "gpu", 64, 8, usd_per_chip_hour=3.0, region="us-east1", watts_chip=1000, cloud="gcp"
)
V5E = Pool(
    "v5e",
    "slurm",
    "v5e",
    "tpu",
    64,
    shapes=((4, "2x2"), (8, "2x4"), (16, "4x4"), (64, "8x8")),
    usd_per_chip_hour=1.2,
    region="us-central1",
    watts_chip=200,
    cloud="gcp",
)
SPOT = replace(V5E, name="spot", terms="spot", interruptions=0.05, usd_per_chip_hour=0.4)
CPU = Pool("cpu", "local", "cpu", "cpu", 2)
POOLS = (H100, V5E, SPOT, CPU)


def job(**keys: Any) -> Job:
    raw = {
        "name": "run",
        "workload": str(ROOT / "examples/bert-large-pretrain.yaml"),
        "command": ["a"],
        "chips": 8,
        "checkpoint": {"every": "1h", "restart": "5min"},
        **keys,
    }
    [made] = jobs_of({key: value for key, value in raw.items() if value is not None}, ROOT, NOW)
    return made


def plain(**keys: Any) -> Job:
    return job(
        workload=None, **{"estimates": {"h100": "1h", "tpu": "2h", "spot": "3h", "cpu": "10h"}, "chips": 1, **keys}
    )


@pytest.fixture(scope="module")
def using() -> Estimator:
    return estimator()


def by_pool(found: tuple[list[Option], list[Infeasible]]) -> tuple[dict[str, Option], dict[str, str]]:
    options, infeasible = found
    return {o.pool: o for o in options}, {u.pool: u.reason for u in infeasible}


def test_given_times_count_by_the_closest_match(using: Estimator) -> None:
    options, infeasible = by_pool(using.options(plain(), POOLS))
    assert {name: round(o.seconds.low) for name, o in options.items()} == {
        "h100": 3600,
        "v5e": 7200,
        "spot": 10_800,
        "cpu": 36_000,
    }
    assert not infeasible and options["h100"].seconds.evidence == "given" and options["h100"].note == "given for h100"


def test_whole_units_and_slices_are_paid_for(using: Estimator) -> None:
    options, _ = by_pool(using.options(plain(chips=3), POOLS[:2]))
    assert (options["h100"].chips, options["h100"].usd_hour, options["h100"].watts) == (8, 24.0, 8000)
    assert (options["v5e"].chips, options["v5e"].topology, options["v5e"].usd_hour) == (4, "2x2", pytest.approx(4.8))


def test_given_watts_count_for_the_whole_job(using: Estimator) -> None:
    options, _ = by_pool(using.options(plain(estimates={"h100": {"time": "1h", "watts": 321}}), POOLS))
    assert options["h100"].watts == 321


def test_every_pool_without_an_option_has_its_reason(using: Estimator) -> None:
    made = plain(estimates={"gpu": "1h"}, variants={"gpu": {"chips": 128}})
    options, infeasible = by_pool(using.options(made, POOLS))
    assert not options and set(infeasible) == {"h100", "v5e", "spot", "cpu"}
    assert "128 chips don't fit: the pool has 64" in infeasible["h100"] and "no variant is for tpu" in infeasible["v5e"]


@pytest.mark.parametrize(
    ("constraints", "left", "why"),
    [
        ({"chips": ["h100"]}, {"h100"}, "constraints.chips allow h100 alone"),
        ({"pools": ["spot"]}, {"spot"}, "constraints.pools allow spot alone"),
        ({"regions": ["us-central1"]}, {"v5e", "spot"}, "constraints.regions allow us-central1 alone"),
        ({"spot": False}, {"h100", "v5e", "cpu"}, "no spot chips"),
        ({"data": {"regions": ["us-east1"]}}, {"h100"}, "its data lie in us-east1"),
    ],
)
def test_constraints_leave_pools_out_and_say_so(using: Estimator, constraints: Any, left: set[str], why: str) -> None:
    options, infeasible = by_pool(using.options(plain(constraints=constraints), POOLS))
    assert set(options) == left and set(infeasible) == {p.name for p in POOLS} - left
    assert all(why in reason for reason in infeasible.values())


def test_data_that_may_move_cost_their_egress(using: Estimator) -> None:
    data = Data(("us-central1",), 1e12, True)
    options, _ = by_pool(using.options(replace(plain(), constraints=Constraints(data=data)), POOLS))
    assert options["v5e"].usd_once == 0
    assert options["h100"].usd_once == pytest.approx(1000 * economics().value("egress_usd_gb", "gcp"))
    assert "moved from us-central1" in options["h100"].note
    assert options["h100"].usd > options["h100"].usd_once > 0


def test_a_variant_may_be_for_some_chips_alone(using: Estimator) -> None:
    made = plain(estimates={"gpu": "1h", "tpu": "1h"}, variants={"gpu": {"on": ["a100"]}, "tpu": {}})
    options, infeasible = by_pool(using.options(made, POOLS))
    assert set(options) == {"v5e", "spot"} and "runs on a100" in infeasible["h100"]


def test_kubernetes_needs_an_image(using: Estimator) -> None:
    cluster = replace(H100, backend="kubernetes")
    _, infeasible = by_pool(using.options(plain(), [cluster]))
    assert "no image" in infeasible["h100"]
    assert using.options(plain(image="train:1"), [cluster])[0]
    assert Estimator().options(plain(), [cluster])[0]  # a simulation launches nothing


@pytest.mark.parametrize(
    ("backend", "none", "some", "words"),
    [
        *(
            (
                backend,
                {},
                {"secrets": "HF_TOKEN"},
                f"secrets: [HF_TOKEN] in its address, or under backends.{backend}, of the pools file",
            )
            for backend in ("local", "slurm", "ray")
        ),
        ("local", {"secrets": "HF_TOKEN_OTHER,OTHER"}, {"secrets": "OTHER,HF_TOKEN"}, "may not hand HF_TOKEN to jobs"),
        (
            "kubernetes",
            {"secrets": "HF_TOKEN"},
            {"secret": "keys"},
            "secret: NAME in its address, or under backends.kubernetes",
        ),
    ],
)
def test_a_pool_that_may_not_hand_over_a_secret_says_what_would_allow_it(
    backend: str, none: Any, some: Any, words: str
) -> None:
    asking = jobs_of(
        {"name": "x", "command": ["true"], "secrets": ["HF_TOKEN"], "image": "i", "estimates": {"cpu": "1h"}},
        Path(),
        0.0,
    )[0]
    without, with_it = (Pool("p", backend, "cpu", "cpu", 1, address=tuple(keys.items())) for keys in (none, some))
    with pytest.raises(Refusal) as refusal:
        admit(asking, *estimator().options(asking, [without]), 0.0)
    assert words in str(refusal.value) and "HF_TOKEN" in str(refusal.value)
    assert (
        estimator().options(asking, [with_it])[0] and Estimator().options(asking, [without])[0]
    )  # simulated, it needs none


def test_the_power_cap_and_the_longest_run_of_a_pool_are_kept(using: Estimator) -> None:
    _, infeasible = by_pool(using.options(plain(chips=8), [replace(H100, power_cap=5000)]))
    assert "draw 8.0 kW, the pool may draw 5.0 kW" in infeasible["h100"]
    _, infeasible = by_pool(using.options(plain(chips=8), [replace(H100, max_seconds=60)]))
    assert "the pool allows 60.0 s" in infeasible["h100"]


def test_a_workload_is_predicted_in_every_pool_with_its_evidence(using: Estimator) -> None:
    options, infeasible = by_pool(using.options(job(), POOLS))
    assert set(options) == {"h100", "v5e", "spot"} and set(infeasible) == {"cpu"}
    for option in options.values():
        assert option.seconds.low < option.seconds.value < option.seconds.high and option.layout
        assert option.seconds.evidence in ("modelled", "bounded", "compiled") and option.seconds.because
    assert options["h100"].seconds.value < options["v5e"].seconds.value < options["spot"].seconds.value
    assert options["h100"].watts < 8 * 1000  # it waits for wires now and then


def test_batch_precision_and_layout_of_a_variant_are_what_is_timed(using: Estimator) -> None:
    usual = by_pool(using.options(job(), [H100]))[0]["h100"]
    split = by_pool(using.options(job(variants={"gpu": {"layout": "dp=8,mbs=1,recompute=full"}}), [H100]))[0]["h100"]
    slow = by_pool(using.options(job(variants={"gpu": {"precision": "fp32"}}), [H100]))[0]["h100"]
    assert "recompute=full" in split.layout and split.seconds.value > usual.seconds.value < slow.seconds.value


def test_what_does_not_fit_or_split_is_refused_with_what_would_unlock_it(using: Estimator) -> None:
    big = job(workload=str(ROOT / "examples/gpt3-175b-pretrain.yaml"))
    options, infeasible = using.options(big, POOLS)
    assert not options and any("does not fit" in u.reason and "smallest that holds it" in u.unlock for u in infeasible)
    odd = using.options(job(variants={"gpu": {"layout": "tp=3"}}), [H100])[1][0]
    assert "tp=3" in odd.reason


def test_a_precision_that_the_chip_lacks_is_refused(using: Estimator) -> None:
    made = job(
        workload=str(ROOT / "examples/llama-3.1-8b-pretrain.yaml"),
        chips=64,
        variants={"tpu": {"precision": "fp4"}, "gpu": {}},
    )
    options, infeasible = by_pool(using.options(made, POOLS))
    assert "h100" in options and "fp4" in infeasible["v5e"]


def test_a_stack_for_gpus_is_refused_on_tpus(using: Estimator) -> None:
    _, infeasible = by_pool(using.options(job(workload=str(ROOT / "examples/small-decoder.yaml")), POOLS))
    assert "does not run on v5e" in infeasible["v5e"]


def test_an_offline_set_of_requests_has_an_end(using: Estimator) -> None:
    made = job(workload=str(ROOT / "examples/llama-3.1-8b-offline.yaml"), chips=8)
    options, _ = by_pool(using.options(made, [H100]))
    assert 600 < options["h100"].seconds.value < 36_000 and "x 8" in options["h100"].layout


def test_predictions_are_made_once(using: Estimator) -> None:
    fresh = Estimator()
    first = fresh.options(job(), POOLS)
    known = dict(fresh.predictor.cache)
    again = fresh.options(job(name="other", owner="ada", budget=1e9), POOLS)
    assert fresh.predictor.cache == known and [o.seconds for o in first[0]] == [o.seconds for o in again[0]]


WORK = Estimate(36_000.0, 30_000.0, 50_000.0, "modelled")


def test_checkpoints_make_interruptions_cheaper() -> None:
    know, keeps, starts_over = economics(), Checkpoint(True, 600.0, "", 60.0), Checkpoint(False, inf, "", 60.0)
    with_them = stretched(WORK, SPOT, 8, keeps, 5.0, know).seconds
    without = stretched(WORK, SPOT, 8, starts_over, 5.0, know).seconds
    assert with_them and without and WORK.value < with_them.value < without.value
    assert without.high > with_them.high > WORK.high and without.low == WORK.low < with_them.low


def test_a_run_that_is_always_interrupted_never_ends(using: Estimator) -> None:
    stormy = replace(SPOT, interruptions=100.0)
    assert stretched(WORK, stormy, 8, Checkpoint(), 0.0, economics()).seconds is None
    _, infeasible = by_pool(using.options(plain(checkpoint=None), [stormy]))
    assert "never ends" in infeasible["spot"]


def test_a_job_that_fits_nowhere_is_refused_with_the_reason_per_pool(using: Estimator) -> None:
    made = plain(constraints={"chips": ["v5p"]})
    with pytest.raises(Refusal) as caught:
        admit(made, *using.options(made, POOLS), NOW)
    said = str(caught.value)
    assert "can't run in any pool" in said and all(f"{p.name}: " in said for p in POOLS) and "\n" not in said


def test_a_job_over_its_budget_everywhere_is_refused_and_somewhere_noted(using: Estimator) -> None:
    made = plain(budget=10.0, estimates={"h100": "1h", "tpu": "2h"}, constraints={"pools": ["h100", "v5e"]})
    options, infeasible = using.options(made, POOLS)
    assert admit(made, options, infeasible, NOW).warnings == ()
    assert any("over the budget of $10.00" in o.note for o in options if o.pool == "h100")
    poor = replace(made, budget=0.5)
    with pytest.raises(Refusal, match=r"costs more than its budget of \$0\.50 in every pool"):
        admit(poor, *using.options(poor, POOLS), NOW)


def test_a_deadline_out_of_reach_is_admitted_with_a_warning(using: Estimator) -> None:
    made = plain(deadline="10min")
    admitted = admit(made, *using.options(made, POOLS), NOW)
    assert len(admitted.warnings) == 1 and "no pool finishes it by" in admitted.warnings[0]
    risky = plain(deadline="65min", estimates={"h100": {"time": "1h", "high": "2h"}})
    assert "may be missed" in admit(risky, *using.options(risky, POOLS), NOW).warnings[0]
    calm = plain(deadline="1d")
    assert not admit(calm, *using.options(calm, POOLS), NOW).warnings
