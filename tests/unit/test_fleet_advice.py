"""Interconnect and storage: what a layout needs between nodes against what the offer has, and bytes on disks."""

from math import sqrt

import pytest

from chipwise.catalog import load, parse
from chipwise.catalog.calibration import load_calibration
from chipwise.catalog.economics import economics
from chipwise.cost.checkpoint import state
from chipwise.cost.spot import young
from chipwise.fleet.advice import advise_serving, advise_training
from chipwise.fleet.network import ENDLESS, TOLERANCE, _step, offered, training_need
from chipwise.fleet.storage import STALL, training_storage
from chipwise.layout import search
from chipwise.predict.prediction import predict
from chipwise.serving.service import service, serving_target
from chipwise.serving.split import Split
from chipwise.workload import load_serving, load_workload

PRETRAIN = "examples/llama-3.1-8b-pretrain.yaml"


def predicted(on, path=PRETRAIN):
    work, acc = load_workload(path), parse(on)
    return predict(
        work, acc, search(work, acc, load_calibration(bench=False)).best.layout, load_calibration(bench=False)
    )


@pytest.mark.parametrize("on", ["h100:64", "b200:64", "v5e:512", "l40s:32"])
def test_the_network_needed_is_the_least_that_keeps_the_step_within_the_tolerance(on):
    p = predicted(on)
    need = training_need(p, load_calibration(bench=False))
    best, each = _step(p, load_calibration(bench=False), ENDLESS), need.needed / need.node_chips
    assert need.crosses
    assert _step(p, load_calibration(bench=False), each) <= best * (1 + TOLERANCE) * (1 + 1e-9)
    assert _step(p, load_calibration(bench=False), each * 0.99) > best * (1 + TOLERANCE)
    assert need.slower == pytest.approx(_step(p, load_calibration(bench=False), need.has / need.node_chips) / best - 1)


@pytest.mark.parametrize("on", ["h100:8", "v5p:64"])
def test_work_inside_the_fast_links_needs_no_network(on):
    need = training_need(predicted(on), load_calibration(bench=False))
    assert not need.crosses and need.enough and need.needed == 0 and need.suffices is None


def test_a_slow_offer_is_called_not_enough_and_a_network_that_suffices_is_named():
    p = predicted("a100-80gb:256", "examples/gpt3-175b-pretrain.yaml")
    advice = advise_training(p, load_calibration(bench=False), economics(), "a2-ultragpu-8g")
    assert advice.network.network == "gcp-a2" and not advice.network.enough and advice.network.slower > TOLERANCE
    least = advice.network.suffices
    assert least is not None and least.per_host >= advice.network.needed
    assert "NOT enough" in advice.words[0] and least.id in advice.words[0]


def test_an_offer_whose_network_is_not_known_says_so():
    advice = advise_training(predicted("h100:64"), load_calibration(bench=False), economics(), "gpu_8x_h100_sxm5")
    assert advice.network.network == "usual" and "not known" in advice.words[0]


def test_networks_name_instances_of_the_price_list():
    sold = {(o.chip_id, o.instance) for o in load().offers}
    known = [(chip, i) for n in load().networks.values() for i in n.instances for chip in n.chips]
    assert sum(pair in sold for pair in known) >= 10
    assert all(offered(load().chips[chip], instance) is not None for chip, instance in known)


def test_storage_keeps_failures_within_their_share_by_youngs_interval():
    p = predicted("h100:512", "examples/gpt3-175b-pretrain.yaml")
    need = training_storage(p, economics())
    write_s, mean_s = need.checkpoint / need.write, 1 / (1.97e-5 / 3600 * 512)
    interval = young(write_s, mean_s)
    assert need.checkpoint == state(p.workload).total
    assert (
        write_s / interval + interval / 2 / mean_s == pytest.approx(STALL) == pytest.approx(sqrt(2 * write_s / mean_s))
    )
    assert need.read == pytest.approx(p.tokens_per_s.value * 2)  # a vocabulary below 65,536: two bytes an id
    assert need.nodes == 64


def test_spot_that_is_taken_away_asks_for_faster_checkpoints():
    p = predicted("h100:64")
    calm, taken = (
        advise_training(p, load_calibration(bench=False), economics()),
        advise_training(p, load_calibration(bench=False), economics(), taken=0.1),
    )
    assert taken.storage.write / calm.storage.write == pytest.approx((1.97e-5 * 64 + 0.1) / (1.97e-5 * 64))
    assert "failures" in calm.words[1] and "interruptions" in taken.words[1]


def test_images_are_read_as_they_are_stored():
    p = predicted("h100:8", "examples/resnet-50-imagenet.yaml")
    assert 100e3 < training_storage(p, economics()).read / p.tokens_per_s.value < 130e3


def test_a_service_loads_its_weights_and_sends_caches_only_when_prefill_is_apart():
    work = load_serving("examples/llama-3.1-70b-serve.yaml")
    one = service(serving_target(work, load().chips["h200"], load_calibration(bench=False)), Split(tp=8))
    advice = advise_serving(one, 2.0)
    assert not advice.network.crosses and advice.network.enough
    each = 2 * 8 * 128 * 80 * 2  # keys and values x heads x width x layers x bytes of a token
    assert advice.network.needed == pytest.approx(2.0 * work.serve.input.mean * each)
    assert advice.storage.weights == pytest.approx(70.55e9 * 2, rel=0.01)
    assert advice.storage.load == pytest.approx(advice.storage.weights / 60)


def test_a_pipeline_over_nodes_sends_activations_between_stages():
    work = load_serving("examples/llama-3.1-70b-serve.yaml")
    one = service(serving_target(work, load().chips["a100-80gb"], load_calibration(bench=False)), Split(tp=8, pp=2))
    advice = advise_serving(one, 1.0, "a2-ultragpu-8g")
    need, tokens = advice.network, one.replica.config.most_tokens
    stage = one.replica.step_times().tokens_s[tokens] / 2
    assert need.crosses and need.needed == pytest.approx(tokens * 8192 * 2 / (0.05 * stage))
    assert need.slower == pytest.approx(0.05 * need.needed / need.has) and need.enough == (need.slower <= 0.05)
    assert "activations between stages" in advice.words[0]
