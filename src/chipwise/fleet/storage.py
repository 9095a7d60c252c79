"""What storage a run or a service needs: checkpoints written, samples read, weights loaded. Bytes and bytes/s."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.cost.checkpoint import state
from chipwise.predict.prediction import Prediction
from chipwise.serving.service import Service
from chipwise.units import HOUR
from chipwise.workload.model import Workload

# 419 unexpected interruptions of 16,384 H100s in 54 days (Llama 3, arXiv 2407.21783, section 3.3.4, 2024-07): hours of
# one chip between two
CHIP_MTBF_S = 54 * 24 * 16_384 / 419 * HOUR
STALL = 0.02  # share of the time that checkpoints and lost work may take: what is called enough, not a measurement
COLD_START_S = 60.0  # to load the weights of a new engine: what is called enough for a peak, not a measurement
# ILSVRC 2012's training archive: 147,897,477,120 bytes of JPEG files for 1,281,167 images (image-net.org, 2012)
IMAGE_BYTES = 147_897_477_120 / 1_281_167
NARROW_VOCABULARY = 65_536  # ids of tokens up to here take two bytes, else four


@dataclass(frozen=True, slots=True)
class StorageNeed:
    """Of all nodes together. A service writes no checkpoints; its samples come with its requests."""

    nodes: int
    checkpoint: float  # bytes
    write: float  # bytes/s so that failures cost at most STALL of the time
    read: float  # bytes/s of samples
    weights: float  # bytes to load for one engine
    load: float  # bytes/s into one node for that in COLD_START_S


def training_storage(p: Prediction) -> StorageNeed:
    """What a training run asks of storage.

    With checkpoints of C seconds at Young's interval and M seconds between failures, the time lost is about the square
    root of 2 C / M, so C = M STALL^2 / 2 is short enough.
    """
    acc = p.accelerators
    size = state(p.workload).total
    short = CHIP_MTBF_S / acc.count * STALL**2 / 2
    units = p.units_per_step / p.step.value
    return StorageNeed(max(1, acc.count // acc.chip.fabric.host_chips), size, size / short,
                       units * sample_bytes(p.workload), 0.0, 0.0)


def sample_bytes(workload: Workload) -> float:
    """Bytes of a token's id, or of an image as it is stored.

    >>> from chipwise.workload import preset
    >>> from chipwise.workload.model import Train
    >>> sample_bytes(Workload("run", preset("llama-3.1-8b"), Train(global_batch=8, sequence=4096)))
    4.0
    """
    if workload.train.samples_unit == "images":
        return IMAGE_BYTES
    return 2.0 if workload.model.vocab <= NARROW_VOCABULARY else 4.0


def serving_storage(service: Service) -> StorageNeed:
    """What new engines of a service ask of storage."""
    split, node = service.replica.split, service.place.chip.fabric.host_chips
    weights = service.replica.room.weights * split.chips
    together = max(1, node // split.chips)  # engines of a node start at once, from one copy each
    nodes = max(1, -(-split.chips * service.replicas // node))
    return StorageNeed(nodes, 0.0, 0.0, 0.0, weights, weights * together / COLD_START_S)
