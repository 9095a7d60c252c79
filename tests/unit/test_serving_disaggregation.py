"""The largest load where some replicas do prompts alone."""

import json

import pytest

from chipwise.catalog import load, parse
from chipwise.catalog.calibration import load_calibration
from chipwise.cli.main import run as chipwise
from chipwise.errors import InputError, NoLayout, Refusal
from chipwise.serving.capacity import at_load, holds, search, together, trial_requests
from chipwise.serving.disaggregation import disaggregated, prompt_share, search_pools
from chipwise.serving.results import find_capacity
from chipwise.serving.service import service, serving_target
from chipwise.serving.split import Split
from chipwise.workload.load import load_serving

LONG_PROMPTS = """
model: llama-3.1-8b
serve: {input: 4000, output: 300, arrival: {rate: 50}, precision: bf16, slo: {ttft: 1s, tpot: 10ms}}
"""
FEW = {"only": [Split(2)]}


@pytest.fixture(scope="module")
def target():
    return serving_target(load_serving(LONG_PROMPTS), load().chips["h100"], load_calibration())


@pytest.fixture(scope="module")
def together_on_eight(target):
    return search(target, 8, tune=False, **FEW)


@pytest.fixture(scope="module")
def apart(target):
    return search_pools(target, 8, (1, 1), **FEW)


def test_the_largest_load_of_pools_holds_and_a_larger_one_does_not(apart):
    best = apart.best
    assert (best.service.prefill_replicas, best.service.replicas, best.service.chips) == (
        2,
        2,
        8,
    )  # 1:1 as often as fits
    requests = trial_requests(apart.target, count=together(best.service))
    assert holds(at_load(best.service, requests, 0.9 * best.load.value))
    assert not holds(at_load(best.service, requests, 1.2 * best.load.value))
    assert best.load.low <= best.load.value <= best.load.high


def test_a_tight_time_per_token_is_kept_at_a_larger_load_where_prompts_are_apart(apart, together_on_eight):
    assert apart.best.load.value > 1.1 * together_on_eight.best.load.value


def test_rates_and_needs_are_of_all_chips_that_work_together(apart):
    best = apart.best
    assert best.chip_rate == pytest.approx(best.served.token_rate.value / 8)
    assert apart.needed_chips == 8 * apart.needed_replicas and apart.needed_replicas * best.load.value >= 50


def test_auto_finds_the_number_that_a_whole_search_finds(target, together_on_eight):
    (best,) = disaggregated(together_on_eight.capacities)
    loads = {p: search_pools(target, 8, (p, 4 - p), **FEW).capacities[0].load.value for p in (1, 2, 3)}
    assert best.service.prefill_replicas == max(loads, key=loads.__getitem__)
    assert 0 < prompt_share(service(target, Split(2), 4)) < 1


def test_auto_never_answers_less_than_replicas_that_do_both(target):
    both = find_capacity(target, parse("h100:4"), Split(2))
    auto = find_capacity(target, parse("h100:4"), Split(2), disaggregate="auto")
    assert auto.load.value >= both.load.value * 0.99


@pytest.mark.parametrize(
    ("text", "accepted"), [("x", "or auto"), ("0:2", "or auto"), ("2", "or auto"), ("", "or auto")]
)
def test_what_is_no_pair_is_asked_back(target, text, accepted):
    with pytest.raises(InputError, match=accepted) as error:
        find_capacity(target, parse("h100:4"), disaggregate=text)
    assert error.value.field == "disaggregate"


def test_models_without_tokens_to_decode_and_too_few_chips_are_refused(target):
    encoder = serving_target(
        load_serving("model: bert-large\nserve: {input: 128, arrival: {rate: 5}}"),
        load().chips["h100"],
        load_calibration(),
    )
    for text in ("1:1", "auto"):
        with pytest.raises(InputError, match="nothing to decode"):
            find_capacity(encoder, parse("h100:4"), disaggregate=text)
    with pytest.raises(NoLayout, match="hold no 3 replicas for prefill and 3 for decode"):
        find_capacity(target, parse("h100:4"), disaggregate="3:3")
    with pytest.raises(NoLayout, match="more than chips"):
        find_capacity(target, parse("h100:4"), Split(2), disaggregate="2:2")


def test_the_command_shows_both_pools_and_that_the_launch_is_of_one_kind(tmp_path, capsys):
    (tmp_path / "chat.yaml").write_text(LONG_PROMPTS)
    args = ["serving", "capacity", str(tmp_path / "chat.yaml"), "--on", "h100:4", "--tp", "2", "--disaggregate", "1:1"]
    assert chipwise(args) == 0
    text = capsys.readouterr().out
    assert "1+1" in text and "1 replica for prefill and 1 for decode, each of tp=2" in text
    assert "not expressed: 1 more for prefill alone" in text
    assert chipwise([*args, "-o", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["prefill_replicas"], row["replicas"]) == (1, 1)


def test_a_load_that_only_a_short_run_sustains_is_no_answer():
    """Within 5 ms a token a longer run finds none on so few chips."""
    near = load_serving(LONG_PROMPTS.replace("4000", "16000").replace("ttft: 1s, tpot: 10ms", "ttft: 5s, tpot: 5ms"))
    at = serving_target(near, load().chips["h100"], load_calibration())
    with pytest.raises(Refusal, match=r"can't be met|keeps every bound"):
        search_pools(at, 4, (1, 1))
