"""Speculative decoding: what a pass gives, what drafting takes, and where it stops to pay."""

from dataclasses import replace

import numpy as np
import pytest

import chipwise as cw
from chipwise.catalog import find_stack, load, parse
from chipwise.catalog.calibration import load_calibration
from chipwise.errors import ChipwiseError, DoesNotFit, NoLayout
from chipwise.serving.requests import given
from chipwise.serving.service import run, service, serving_target
from chipwise.serving.simulate import Fleet, simulate
from chipwise.serving.speculation import NoSpeculation, check_speculation
from chipwise.serving.split import Split
from chipwise.serving.step_times import EngineConfig, StepTimeTable
from chipwise.workload.serve import Speculation

FLAT = StepTimeTable(np.ones(1001))  # an iteration takes a second, whatever is in it


def speculating(tokens, acceptance, draft_s=0.0, times=FLAT):
    per_pass = Speculation("mtp", tokens, acceptance).tokens_per_pass
    drafts = np.full(len(times.tokens_s), draft_s)
    return replace(times, drafted=tokens, per_pass=per_pass, draft_s=drafts)


def answered(times, output=201, users=1, count=4, blocks=10_000):
    requests = given(None, np.full(count, 10.0), np.full(count, float(output)), users=users)
    return simulate(requests, Fleet(times, blocks, EngineConfig(most_tokens=1000)))


def per_token(done):
    return float(np.mean((done.finish_s - done.first_s) / (done.requests.output - 1)))


@pytest.mark.parametrize("tokens", [1, 3, 7])
@pytest.mark.parametrize("acceptance", [0.0, 0.5, 0.8, 1.0])
def test_a_sequence_alone_gains_what_is_kept_less_the_draft(tokens, acceptance):
    kept = tokens + 1 if acceptance == 1 else (1 - acceptance ** (tokens + 1)) / (1 - acceptance)
    for draft_s in (0.0, 0.25):
        times = speculating(tokens, acceptance, draft_s)
        assert per_token(answered(FLAT)) / per_token(answered(times)) == pytest.approx(kept / (1 + draft_s), rel=0.03)


def test_every_token_is_counted_once_and_the_cache_is_given_back():
    for users, blocks in ((1, 40), (8, 120), (30, 10_000)):  # the second preempts
        done = answered(speculating(3, 0.6), output=123, users=users, count=60, blocks=blocks)
        assert np.isfinite(done.finish_s).all()
        assert done.peak_blocks.max() <= blocks
        if not done.preempted.any():
            assert done.totals.decode_tokens.sum() == 60 * 122
        assert done.gaps.sum() == pytest.approx(60 * 122, rel=0.05)


def test_nothing_drafted_is_the_same_as_off():
    plain, none = answered(FLAT, users=8, count=50), answered(replace(FLAT, drafted=0), users=8, count=50)
    assert plain.finish_s.tolist() == none.finish_s.tolist()


def test_the_gaps_of_a_sequence_are_those_of_iterations():
    done = answered(speculating(3, 1.0))
    counted = done.gaps.sum(axis=0)
    assert counted[0] == pytest.approx(3 * counted[1:].sum(), rel=0.05)  # three come with each that is waited for


def chat(users, **speculation):
    more = {"draft": "mtp", "draft_tokens": 3, **speculation} if speculation else {}
    return cw.load("llama-3.1-8b", input_len=200, output_len=200, users=users, stack="vllm", **more)


def rate(users, **speculation):
    target = serving_target(chat(users, **speculation), load().chips["h100"], load_calibration(bench=False))
    return run(service(target, Split()), count=max(6 * users, 40)).measures.token_rate.value


@pytest.mark.parametrize("users", [1, 32, 512])
@pytest.mark.parametrize("draft", ["ngram", "mtp", "llama-3.2-1b"])
def test_drafts_that_are_never_accepted_are_never_faster(users, draft):
    assert rate(users, draft=draft, acceptance=0) <= rate(users) * 1.001


def test_the_gain_falls_with_concurrency_and_turns_to_a_loss():
    gains = [rate(users, acceptance=0.6) / rate(users) for users in (1, 16, 128, 512)]
    assert gains == sorted(gains, reverse=True)
    assert 1.3 < gains[0] < Speculation("mtp", 3, 0.6).tokens_per_pass and gains[-1] < 1


def test_what_drafts_takes_time_and_memory():
    rates = {draft: rate(1, draft=draft, acceptance=0.7) for draft in ("ngram", "mtp", "llama-3.2-1b")}
    assert rates["ngram"] > rates["mtp"] > rates["llama-3.2-1b"]
    calibration, chip = load_calibration(bench=False), load().chips["h100"]
    room = [
        service(serving_target(chat(1, **more), chip, calibration), Split()).replica.kv_cache.tokens(400)
        for more in ({}, {"acceptance": 0.5}, {"acceptance": 0.5, "draft": "llama-3.2-1b"})
    ]
    assert room[0] > room[1] > room[2]


@pytest.mark.parametrize(("stack", "chip"), [("jetstream", "v5e"), ("vllm", "v6e"), ("pytorch", "h100")])
def test_stacks_without_it_refuse(stack, chip):
    with pytest.raises(NoSpeculation, match="no speculative decoding by mtp"):
        check_speculation(Speculation("mtp", 3, 0.5), find_stack(stack), load().chips[chip])


def test_pipelines_are_refused():
    target = serving_target(chat(1, acceptance=0.5), load().chips["h100"], load_calibration(bench=False))
    with pytest.raises(NoLayout, match="pipeline stages"):
        service(target, Split(tp=1, pp=2))


def test_requests_that_fit_but_for_the_drafted_tokens_are_refused():
    with pytest.raises(DoesNotFit, match="the longest request"):
        answered(speculating(8, 0.5), output=7, blocks=1)
    assert answered(FLAT, output=7, blocks=1).finish_s.max() > 0


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"draft": "mtp", "draft_tokens": 3}, "acceptance"),
        ({"acceptance": 0.5}, "draft"),
        ({"draft": "mtp", "acceptance": 0.5}, "tokens"),
        ({"draft": "mtp", "draft_tokens": 3, "acceptance": 1.2}, "0 to 1"),
        ({"draft": "mtp", "draft_tokens": 17, "acceptance": 0.5}, "16"),
        ({"draft": "mpt", "draft_tokens": 3, "acceptance": 0.5}, "did you mean mtp"),
        ({"draft": "llama-3.1-70b", "draft_tokens": 3, "acceptance": 0.5}, "smaller"),
        ({"draft": "bert-large", "draft_tokens": 3, "acceptance": 0.5}, "a decoder"),
    ],
)
def test_what_is_said_by_halves_is_asked_back(flags, words):
    with pytest.raises(ChipwiseError, match=words):
        cw.load("llama-3.1-8b", input_len=100, output_len=10, rate=1, **flags)


def test_answers_say_that_nothing_was_learned_of_it():
    with_it = cw.capacity(chat(8, acceptance=0.7), on="h100:1", tp=1)
    assert with_it.load.evidence == "bounded"
    assert any("2.53 tokens a pass" in line for line in with_it.to_dict()["assumptions"])
    assert parse("h100:1").count == with_it.best.service.chips
