"""Advice on interconnect and storage for what a plan runs, in words and numbers."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.catalog import Accelerators
from chipwise.catalog.calibration import Calibration
from chipwise.catalog.economics import Economics
from chipwise.fleet.network import TOLERANCE, NetworkNeed, serving_need, training_need
from chipwise.fleet.storage import COLD_START_S, STALL, StorageNeed, serving_storage, training_storage
from chipwise.predict.model.layouts import Layout
from chipwise.predict.prediction import Prediction
from chipwise.serving.service import Service
from chipwise.serving.split import Split
from chipwise.units import format_bytes, format_rate


@dataclass(frozen=True, slots=True)
class Advice:
    """What a workload needs between and beside its nodes, and what the offer has."""

    workload: str
    pool: str  # of a plan; "" outside of one
    accelerators: Accelerators
    split: Layout | Split  # of a run, or of one replica
    network: NetworkNeed
    storage: StorageNeed
    words: tuple[str, ...]


def advise_training(
    p: Prediction, calibration: Calibration, know: Economics, instance: str = "", taken: float = 0.0
) -> Advice:
    """Advice for a training run on the nodes of an offer; on spot, they are `taken` away so many times an hour."""
    network, storage = training_need(p, calibration, instance), training_storage(p, know, taken)
    stops = "interruptions" if taken else "failures"
    words = [
        _network_words(network),
        (
            f"a checkpoint is {format_bytes(storage.checkpoint)}: storage that takes "
            f"{_rate(storage.write)} in all ({_rate(storage.write / storage.nodes)} a node) keeps checkpoints and the "
            f"work lost to {stops} under {STALL:.0%}".replace("%", " %")
            + " of the time, restarts aside"
        ),
        f"samples are read at {_rate(storage.read)} in all",
    ]
    return Advice(p.workload.name, "", p.accelerators, p.layout, network, storage, tuple(words))


def advise_serving(service: Service, requests_per_s: float, instance: str = "") -> Advice:
    """Advice for a service whose every replica answers so many requests a second."""
    place = service.target
    network = serving_need(service, requests_per_s, instance)
    storage = serving_storage(service)
    words = (
        [_network_words(network)]
        if network.crosses
        else ["replicas answer by themselves: nothing of theirs crosses the network between nodes"]
    )
    if network.needed > 0 and not network.crosses:
        verdict = (
            "the network there carries it"
            if network.has >= network.needed
            else (f"more than the {_bits(network.has)} there")
        )
        words.append(
            f"with prefill and decode on nodes of their own, caches of prompts take {_bits(network.needed)} a "
            f"node: {verdict}"
        )
    words.append(
        f"a replica loads {format_bytes(storage.weights)} of weights: {_rate(storage.load)} into a node "
        f"starts its replicas in {COLD_START_S:.0f} s"
    )
    return Advice(place.workload.name, "", service.accelerators, service.replica.split, network, storage, tuple(words))


def _network_words(need: NetworkNeed) -> str:
    if not need.crosses:
        return f"{need.carries}: any network between nodes suffices"
    there = f"the {need.network} network"
    if need.network == "usual":
        there = "the chip's usual network (the offer's is not known)"
    tolerance = f"{TOLERANCE:.0%}".replace("%", " %")
    text = (
        f"{need.carries} need {_bits(need.needed)} a node of {need.node_chips} chips to be within {tolerance} of "
        f"an endless network; {there} has {_bits(need.has)}: "
    )
    slower = f"{need.slower:.1%}".replace("%", " %")
    text += f"enough, {slower} slower" if need.enough else f"NOT enough, {slower} slower"
    least = need.suffices
    if least is not None and least.per_host < need.has:
        text += f"; {_bits(least.per_host)} as in {least.id} would do"
    elif least is not None and not need.enough:
        text += f"; {_bits(least.per_host)} as in {least.id} would suffice"
    return text


def _bits(bytes_s: float) -> str:
    return format_rate(bytes_s * 8, "b/s")


def _rate(bytes_s: float) -> str:
    return format_rate(bytes_s, "B/s")
