"""No serving prediction beats its chip: every chip of the catalog, every model that writes, splits and batches."""

import numpy as np
import pytest

from chipwise.catalog import default_stack, load
from chipwise.catalog.calibration import load_calibration
from chipwise.errors import Refusal
from chipwise.layout.splits import domain
from chipwise.predict.site import slice_for
from chipwise.serving.bounds import step_bound
from chipwise.serving.service import run, service, serving_target
from chipwise.serving.setup import set_up
from chipwise.serving.spec import ReplicaSpec
from chipwise.serving.split import Split
from chipwise.serving.splits import splits
from chipwise.workload import load_serving, preset
from chipwise.workload.presets import preset_names
from chipwise.workload.serve import SERVE_PRECISIONS
from lane import ALL, share

CALIBRATION = load_calibration(bench=False)
DECODERS = [name for name in preset_names() if preset(name).family == "decoder"]
BATCHES = np.array([1, 2, 8, 32, 128, 512, 2048, 8192])
FEWEST = 20_000  # cases of the whole catalog
THIRD = 3  # every chip gets every third model, another third than the chip before it
HASTY = 0.2  # a correction five times too fast


def serving_chips():
    return [chip for chip in load().chips.values() if (s := default_stack(chip, "serve")) and s.serving]


def replicas(chip, names, precisions=()):
    """A narrow, a middle and a wide split of each model that fits the chip."""
    ways_of = {name: splits(preset(name), 64, domain(slice_for(chip, 64))) for name in names}
    for name, ways in ways_of.items():
        model = preset(name)
        for precision in precisions or (model.serve_precision,):
            for split in dict.fromkeys((ways[0], ways[len(ways) // 2], ways[-1])):
                spec = ReplicaSpec(model, chip, split, precision, "bf16", default_stack(chip, "serve"))
                try:
                    yield set_up(spec, CALIBRATION)
                except Refusal:
                    continue


def cases_within(replica) -> int:
    """Hold every time of a replica to its bound, also under a hasty correction; how many were held."""
    least = step_bound(replica.spec)
    for times in (replica.step_times(), replica.slower(HASTY).step_times()):
        assert np.all(times.tokens_s[BATCHES] >= least.tokens(BATCHES.astype(float)) * (1 - 1e-12)), replica.spec
        assert times.context_s >= least.context_s or replica.slot
        assert times.pair_s >= least.pair_s and times.sequence_s >= 0
    return 2 * (len(BATCHES) + 2)


@pytest.mark.sampled
def test_no_step_beats_bandwidth_and_peak_on_any_chip():
    chips = enumerate(serving_chips())
    held = (cases_within(r) for i, chip in chips for r in replicas(chip, share(DECODERS[i % THIRD :: THIRD], first=i)))
    assert sum(held) >= (FEWEST if ALL else FEWEST / 5)


@pytest.mark.parametrize("chip", ["t4", "a100-80gb", "h100", "b200", "mi300x", "v5e", "v6e"])
def test_no_precision_makes_a_step_beat_its_bound(chip):
    names = ("llama-3.1-8b", "gpt-oss-20b", "mixtral-8x7b")
    assert sum(cases_within(r) for r in replicas(load().chips[chip], names, SERVE_PRECISIONS)) > 100


def test_bounds_are_weights_over_bandwidth_and_flops_over_peak():
    chip, model = load().chips["h100"], preset("llama-3.1-8b")
    least = step_bound(ReplicaSpec(model, chip, Split(), "bf16", "bf16", default_stack(chip, "serve")))
    assert least.weights_s == pytest.approx(2 * 7.5e9 / chip.bandwidth, rel=0.02)  # the embedding is looked up
    assert least.token_s == pytest.approx(2 * 6.98e9 / chip.peak["bf16"], rel=0.02)  # without the output layer
    assert least.context_s == pytest.approx(32 * 2 * 8 * 128 * 2 / chip.bandwidth)
    halves = step_bound(ReplicaSpec(model, chip, Split(tp=2), "bf16", "bf16", default_stack(chip, "serve")))
    assert halves.weights_s == pytest.approx(least.weights_s / 2) and halves.token_s == pytest.approx(least.token_s / 2)


@pytest.mark.parametrize("chip", ["l4", "h100", "b200", "mi300x", "v6e", "trainium1"])
@pytest.mark.parametrize("name", ["llama-3.1-8b", "gpt-oss-20b"])
def test_what_users_see_is_ordered_and_within_the_bounds(chip, name):
    text = f"model: {name}\nserve: {{input: 800, output: 200, arrival: {{users: 64}}}}"
    of = service(serving_target(load_serving(text), load().chips[chip], CALIBRATION), Split(tp=2))
    served, least = run(of, count=400), step_bound(of.replica.spec)
    for spread in (served.ttft, served.tpot, served.itl, served.e2e):
        for e in (spread.mean, spread.p50, spread.p90, spread.p99):
            assert e.low <= e.value <= e.high
    for e in (served.token_rate, served.request_rate, served.joules):
        assert 0 < e.low <= e.value <= e.high
    assert served.tpot.p50.value >= least.decode(1.0, 800.0)
    assert served.ttft.p50.value >= least.prompt(800.0)
    assert served.token_rate.value <= 64 / least.decode(64.0, 800.0)
    assert served.request_rate.value <= 1 / (800 * least.token_s)
