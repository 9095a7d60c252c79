"""What storage a run or a service needs: checkpoints written, samples read, weights loaded. Bytes and bytes/s."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.catalog.economics import Economics
from chipwise.cost.checkpoint import state
from chipwise.predict.prediction import Prediction
from chipwise.serving.service import Service
from chipwise.units import HOUR
from chipwise.workload.model import Workload

STALL = 0.02  # share of the time that checkpoints and lost work may take: what is called enough, not a measurement
COLD_START_S = 60.0  # to load the weights of a new replica: what is called enough for a peak, not a measurement
NARROW_VOCABULARY = 65_536  # ids of tokens up to here take two bytes, else four


@dataclass(frozen=True, slots=True)
class StorageNeed:
    """Of all nodes together. A service writes no checkpoints; its samples come with its requests."""

    nodes: int
    checkpoint: float  # bytes
    write: float  # bytes/s so that failures cost at most STALL of the time
    read: float  # bytes/s of samples
    weights: float  # bytes to load for one replica
    load: float  # bytes/s into one node for that in COLD_START_S


def training_storage(p: Prediction, know: Economics, taken: float = 0.0) -> StorageNeed:
    """What a training run asks of storage; on spot, chips are `taken` away so many times an hour.

    With checkpoints of C seconds at Young's interval and M seconds between failures, the time lost is about the square
    root of 2 C / M, so C = M STALL^2 / 2 is short enough.
    """
    acc = p.accelerators
    size = state(p.workload).total
    mean_s = HOUR / (know.value("failure_chip_hour") * acc.count + taken)  # between stops of any kind
    short = mean_s * STALL**2 / 2
    units = p.units_per_step / p.step.value
    return StorageNeed(
        max(1, acc.count // acc.chip.fabric.host_chips),
        size,
        size / short,
        units * sample_bytes(p.workload, know),
        0.0,
        0.0,
    )


def sample_bytes(workload: Workload, know: Economics) -> float:
    """Bytes of a token's id, or of an image or video as it is stored.

    >>> from chipwise.catalog.economics import economics
    >>> from chipwise.workload import preset
    >>> from chipwise.workload.model import Train
    >>> sample_bytes(Workload("run", preset("llama-3.1-8b"), Train(global_batch=8, sequence=4096)), economics())
    4.0
    """
    if workload.unit != "tokens":
        return know.value(f"{workload.unit[:-1]}_bytes")
    return 2.0 if workload.model.vocab <= NARROW_VOCABULARY else 4.0


def serving_storage(service: Service) -> StorageNeed:
    """What new replicas of a service ask of storage."""
    split, node = service.replica.split, service.target.chip.fabric.host_chips
    weights = service.replica.kv_cache.weights * split.chips
    together = max(1, node // split.chips)  # replicas of a node start at once, from one copy each
    nodes = max(1, -(-split.chips * service.replicas // node))
    return StorageNeed(nodes, 0.0, 0.0, 0.0, weights, weights * together / COLD_START_S)
