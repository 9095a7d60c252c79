"""The largest load within an SLO."""

from dataclasses import replace

import pytest

from chipwise.catalog import load
from chipwise.catalog.calibration import load_calibration
from chipwise.errors import InputError, Refusal, UnknownName
from chipwise.serving.capacity import (
    TIE,
    at_load,
    capacity_of,
    front,
    holds,
    search,
    trial_requests,
)
from chipwise.serving.launched import flags
from chipwise.serving.service import run, service, serving_target, stack_of
from chipwise.serving.split import Split
from chipwise.serving.splits import splits
from chipwise.workload import preset
from chipwise.workload.load import load_serving
from chipwise.workload.serve import Bound

EXPERTS = preset("deepseek-v3").experts
TEXT = """
model: llama-3.1-8b
serve: {input: 512, output: 128, arrival: {rate: 5}, precision: bf16, slo: {ttft: 1s, tpot: 40ms}}
"""


def at(chip="h100", text=TEXT, stack="", **changes):
    w = load_serving(text)
    w = replace(w, serve=replace(w.serve, **changes))
    return serving_target(w, load().chips[chip], load_calibration(), stack)


@pytest.fixture(scope="module")
def found():
    return search(at(), 4)


def test_the_best_split_sustains_most(found):
    assert found.best.load.value * (1 + TIE) >= max(c.load.value for c in found.capacities)
    assert found.best.load.low <= found.best.load.value <= found.best.load.high
    assert found.best.limit


def test_the_load_found_holds_and_more_does_not(found):
    best = found.best
    one, requests = best.service.with_replicas(1), trial_requests(found.target)
    load_ = best.load.value / best.service.replicas
    assert holds(at_load(one, requests, load_))
    assert not holds(at_load(one, requests, load_ * 1.2))


@pytest.mark.parametrize("bound", [Bound("tpot", 99.0, 0.02), Bound("ttft", 90.0, 0.3), Bound("e2e", 50.0, 2.0)])
def test_a_stricter_slo_never_sustains_more(bound):
    loose, strict = (at(slo=(replace(bound, seconds=bound.seconds * scale),)) for scale in (2.0, 1.0))
    more, less = (capacity_of(service(p, Split()), trial_requests(p)).load.value for p in (loose, strict))
    assert more >= less > 0


def test_an_slo_nothing_meets_names_the_part_and_the_nearest():
    with pytest.raises(Refusal, match=r"on h100 tpot p99 of 0\.1 ms can't be met: the nearest is [\d.]+ ms") as refused:
        search(at(slo=(Bound("ttft", 99.0, 5.0), Bound("tpot", 99.0, 1e-4))), 1)
    nearest = float(str(refused.value).split("nearest is ")[1].split(" ")[0]) / 1e3
    assert search(at(slo=(Bound("tpot", 99.0, nearest * 1.05),)), 1).best.load.value > 0


def test_no_point_of_the_front_beats_another(found):
    points = [(p.trial.user_tokens_per_s, p.chip_rate) for p in front(found.capacities)]
    assert len(points) >= 3
    assert points == sorted(points, reverse=True)
    assert [p[1] for p in points] == sorted(p[1] for p in points)


def test_users_of_a_closed_loop_are_counted_whole():
    p = at(text=TEXT.replace("rate: 5", "users: 8"))
    got = capacity_of(service(p, Split()), trial_requests(p))
    assert got.load.value == int(got.load.value) > 1


def test_an_offline_job_goes_as_fast_as_it_goes():
    p = at(text="model: llama-3.1-8b\nserve: {input: 512, output: 128, offline: {requests: 2000}}")
    got = capacity_of(service(p, Split()), trial_requests(p), interval=True)
    assert got.load.low <= got.load.value <= got.load.high
    assert got.served.token_rate.value == pytest.approx(128 * got.load.value, rel=0.05)


def test_splits_are_legal_and_within_the_chips():
    for name in ("llama-3.1-70b", "mixtral-8x7b", "gpt-oss-120b", "deepseek-v3"):
        model = preset(name)
        for split in splits(model, 16, 8):
            assert split.chips <= 16 and model.heads % split.tp == 0
            assert split.ep == 1 or model.experts.count % split.ep == 0
    assert splits(preset("resnet-50"), 8, 8) == [Split()]


def kimi(on="h200"):
    text = "model: kimi-k2\nserve: {input: 2000, output: 1000, arrival: {rate: 20}, slo: {ttft: 3s, tpot: 40ms}}"
    return at(on, text)


@pytest.mark.parametrize(
    ("chip", "chips", "split"),
    [("h200", 16, Split(1, 1, 16, 16)), ("h200", 32, Split(8, 2)), ("mi300x", 16, Split(4, 1, 4, 16))],
)
def test_the_search_holds_as_much_as_a_split_that_is_named(chip, chips, split):
    named = search(kimi(chip), chips, only=[split]).best.load.value
    assert search(kimi(chip), chips, tune=False).best.load.value * (1 + TIE) >= named > 0


def test_splits_reach_over_hosts_and_uneven_stages():
    ways = splits(preset("deepseek-v3"), 32, 8)
    assert {Split(1, 1, 32, 32), Split(8, 1, 4, 32), Split(8, 4), Split(8, 4, 1, 8)} <= set(ways)
    assert Split(8, 1, 3, 24) in splits(replace(preset("deepseek-v3"), experts=replace(EXPERTS, count=384)), 24, 8)
    assert Split(8, 3) in splits(preset("deepseek-v3"), 24, 8)


def test_splits_that_come_nowhere_near_the_best_are_passed_over():
    tried = search(kimi(), 16, tune=False)
    assert tried.passed_over and not set(tried.passed_over) & {c.service.replica.split for c in tried.capacities}
    for split in tried.passed_over[:2]:
        assert search(kimi(), 16, tune=False, only=[split]).best.load.value < tried.best.load.value


def test_a_mean_latency_is_never_below_nothing_where_load_comes_in_one_burst():
    text = "model: llama-3.1-8b\nserve: {input: 200, output: 800, arrival: {rate: 20}, slo: {ttft: 10s, tpot: 40ms}}"
    assert search(at("h100", text), 4, tune=False).best.load.value > 0


def test_disaggregated_replicas_answer_everything():
    made = service(at("h200"), Split(), disaggregate=(1, 3))
    served = run(made, count=400, rate=4.0)
    assert made.chips == 4 and served.simulation.finish_s.min() > 0
    with pytest.raises(InputError, match=r"^disaggregate: "):
        service(at(), Split(), disaggregate=(0, 2))


def test_replicas_are_set_up_in_their_own_words():
    for stack, word in (
        ("vllm", "--max-num-seqs"),
        ("sglang", "--chunked-prefill-size"),
        ("tensorrt-llm", "--max_batch_size"),
    ):
        assert word in flags(service(at(stack=stack), Split(tp=2)))
    assert "ici_tensor_parallelism=4" in flags(service(at("v6e", stack="jetstream"), Split(tp=4)))


def test_stacks_that_do_not_serve_there_are_refused():
    w = load_serving(TEXT)
    with pytest.raises(Refusal, match="TensorRT-LLM does not run on mi300x; it runs on nvidia chips"):
        stack_of(w, load().chips["mi300x"], "tensorrt-llm")
    with pytest.raises(UnknownName):
        stack_of(w, load().chips["h100"], "megatron")


def test_first_tokens_count_what_clients_wait_for(found):
    served = run(found.best.service, count=400, rate=1.0)
    assert served.ttft.p50.value > served.measures.ttft.p50.value
    assert served.ttft.p99.low <= served.ttft.p99.value <= served.ttft.p99.high


@pytest.mark.parametrize(("name", "unit"), [("bert-serve", "sequences"), ("resnet-50-serve", "images")])
def test_models_that_answer_in_one_pass_are_served(name, unit):
    w = load_serving(f"examples/{name}.yaml")
    p = serving_target(w, load().chips["l4"], load_calibration())
    got = capacity_of(service(p, Split()), trial_requests(p))
    assert w.serve.unit == unit and got.load.value > 0 and got.load.evidence == "bounded"
    assert got.served.request_rate.value > 50


def test_designs_without_published_serving_are_bounded():
    """No closed-loop run of an L40S, an A10G or a Gaudi is published."""

    def evidence(chip):
        return service(at(chip, TEXT), Split()).corrections["tpot"].evidence

    chips = ("h100", "b200", "mi300x", "a100-80gb", "v6e", "l40s", "a10g", "gaudi2")
    assert [evidence(chip) for chip in chips] == ["modelled"] * 5 + ["bounded"] * 3
