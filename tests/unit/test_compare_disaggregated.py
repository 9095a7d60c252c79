"""Comparisons of services some of whose replicas do prompts alone."""

import json

import pytest

from chipwise.catalog import Accelerators, load, parse
from chipwise.catalog.calibration import load_calibration
from chipwise.cli.main import run as chipwise
from chipwise.compare import Candidate, Terms, compare
from chipwise.errors import InputError, Refusal
from chipwise.knowledge import Knowledge
from chipwise.serving.capacity import at_load, holds, together, trial_requests
from chipwise.serving.results import find_capacity
from chipwise.serving.service import serving_target
from chipwise.workload import load_serving
from chipwise.workload.load import load_workload

KNOWN = Knowledge(load_calibration(bench=False))
LONG_PROMPTS = "model: llama-3.1-8b\nserve: {{input: 4000, output: 300, arrival: {{rate: {}}}, slo: {{{}}}}}"
TIGHT = "ttft: 1s, tpot: 10ms"


def work(rate=12, slo=TIGHT):
    return load_serving(LONG_PROMPTS.format(rate, slo))


def on(text, how, of=None, **terms):
    return compare(of or work(), [Candidate.read(text)], KNOWN, Terms(disaggregate=how, **terms))


def capacity(count, how, of=None):
    target = serving_target(of or work(), load().chips["h100"], KNOWN.calibration)
    return find_capacity(target, parse(f"h100:{count}"), disaggregate=how).best


@pytest.fixture(scope="module")
def usual():
    return on("h100", None).rows[0]


@pytest.fixture(scope="module")
def auto():
    return on("h100", "auto").rows[0]


@pytest.mark.parametrize("how", ["1:1", "auto"])
def test_named_chips_sustain_what_serving_capacity_says(how):
    row, found = on("h100:4", how, work(9)).rows[0], capacity(4, how)
    assert row.prefill_replicas == found.service.prefill_replicas > 0
    assert (row.replicas, row.split) == (found.service.replicas, found.service.replica.split)
    assert (row.load.low, row.load.value, row.load.high) == (found.load.low, found.load.value, found.load.high)
    assert row.limit == found.limit and str(row.accelerators) == "h100:4"


def test_chips_without_a_count_hold_the_demand_and_no_cheaper_ones_were_passed_over(auto, usual):
    of = auto.served.service
    assert auto.prefill_replicas > 0 and auto.fleet.replicas == of.replicas + of.prefill_replicas
    assert auto.accelerators.count >= of.chips and auto.headroom.value >= 0
    assert holds(at_load(of, trial_requests(of.target, 0, together(of)), auto.demand.load))
    assert auto.request_rate.value == pytest.approx(12, rel=0.1)
    assert auto.ondemand.usd.value < 0.8 * usual.ondemand.usd.value
    assert auto.ondemand.usd.low <= auto.ondemand.usd.value <= auto.ondemand.usd.high


@pytest.mark.parametrize("how", ["1:1", *(pytest.param(how, marks=pytest.mark.slow) for how in ("2:1", "1:2"))])
def test_auto_is_never_worse_than_a_named_number(auto, how):
    named = on("h100", how).rows[0]
    assert named.prefill_replicas * int(how[2]) == named.replicas * int(how[0])
    assert auto.ondemand.usd.value <= named.ondemand.usd.value * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("slo", [TIGHT, "ttft: 500ms, tpot: 30ms", "e2e: 6s", ""])
@pytest.mark.parametrize("chip", ["h100", "h200", "mi300x", "v5e", "v6e", "a100-80gb"])
def test_auto_is_never_worse_than_what_else_can_be_asked_for(chip, slo):
    of, hourly = work(8, slo), {}
    for how in (None, "auto", "1:1", "1:2", "2:1", "1:3"):
        try:
            row = on(chip, how, of).rows[0]
        except Refusal:
            hourly[how] = float("inf")
        else:
            hourly[how] = row.ondemand.usd.value if row.ondemand else row.accelerators.count
    assert hourly["auto"] <= min(hourly.values()) * (1 + 1e-9)


def test_where_prompts_hardly_meet_answers_auto_says_what_compare_says_without(usual):
    short = load_serving(
        "model: llama-3.1-8b\nserve: {input: 100, output: 300, arrival: {rate: 12}, slo: {tpot: 100ms}}"
    )
    assert on("h100", "auto", short).rows[0].accelerators == on("h100", None, short).rows[0].accelerators


@pytest.mark.slow
def test_a_loose_slo_is_searched_and_other_demands_are_sized(auto):
    comparison = compare(work(), [Candidate.read("h100"), Candidate.read("h200")], KNOWN, Terms(disaggregate="1:1"))
    assert comparison.relaxed is not None and comparison.pick in comparison.rows
    twice = comparison.comparer.times(2.0)
    (fleet,) = twice.fleets(Candidate.read("h100"))
    assert fleet.replicas >= auto.fleet.replicas


def test_too_few_named_chips_and_slos_that_none_keeps_are_refused():
    with pytest.raises(Refusal, match=r"h100:4 sustains .* of the 50 requests/s"):
        on("h100:4", "1:1", work(50))
    with pytest.raises(Refusal, match="can't be met"):
        on("h100", "1:1", work(5, "ttft: 1ms"))
    with pytest.raises(Refusal, match="hold no 3 replicas for prefill and 3 for decode"):
        compare(work(), [Candidate(load().chips["h100"], Accelerators(load().chips["h100"], 4))], KNOWN,
                Terms(disaggregate="3:3"))  # fmt: skip


@pytest.mark.parametrize("text", ["x", "0:2", "2", "", "1:2:3"])
def test_what_is_no_pair_is_asked_back(text):
    with pytest.raises(InputError, match="or auto") as error:
        on("h100", text)
    assert error.value.field == "disaggregate"


def test_what_has_no_answers_to_decode_is_refused():
    encoder = load_serving("model: bert-large\nserve: {input: 128, arrival: {rate: 5}}")
    training = load_workload(
        overrides={"model": "llama-3.2-1b", "train": {"tokens": "1B", "sequence": 2048, "global_batch": 8}}
    )
    with pytest.raises(InputError, match="nothing to decode"):
        on("h100", "auto", encoder)
    with pytest.raises(InputError, match="training has no prompts"):
        on("h100:8", "auto", training)


def test_the_command_shows_both_kinds_of_replicas(tmp_path, capsys):
    (tmp_path / "chat.yaml").write_text(LONG_PROMPTS.format(9, TIGHT))
    args = ["compare", str(tmp_path / "chat.yaml"), "--on", "h100:4", "--disaggregate", "1:1"]
    assert chipwise(args) == 0
    text = capsys.readouterr().out
    assert "1+1 x tp=2" in text and "1 replica for prefill and 1 for decode, each of tp=2" in text
    assert "not expressed: 1 more for prefill alone" in text and "simulated together" not in text.split("Decision")[0]
    assert chipwise([*args, "-o", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["prefill_replicas"], row["replicas"]) == (1, 1)
    assert chipwise(["compare", "resnet50", "--edge", "--disaggregate", "auto"]) == 2
    assert "--disaggregate" in capsys.readouterr().err
