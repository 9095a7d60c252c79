"""What network a run needs between its nodes, against what an offer has: the step timed again on other networks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from chipwise.catalog import Accelerators, Chip, Network, load
from chipwise.catalog.calibration import Calibration
from chipwise.predict.model.layouts import Layouts
from chipwise.predict.prediction import Prediction
from chipwise.predict.setup import set_up
from chipwise.serving.service import Service

GIGABIT = 1e9 / 8  # bytes/s
ENDLESS = 1e18  # bytes/s: nothing waits for such a network
TOLERANCE = 0.05  # a step may be so much longer than on an endless network; what is called enough, not a measurement
ACTIVATION_BYTES = 2.0  # replicas pass activations on in 16 bits
_LEAST = 0.01 * GIGABIT  # bytes/s of a chip: slower networks are not looked for


@dataclass(frozen=True, slots=True)
class NetworkNeed:
    """Bytes/s of a node, one way: needed and there; and by how much the network there makes the work longer."""

    crosses: bool  # whether the work's own traffic leaves the chips' fast links
    carries: str  # what travels, in words
    family: str  # of the chips
    node_chips: int
    needed: float  # the least with which the work is at most TOLERANCE longer than on an endless network
    has: float
    network: str  # id of the offer's network, or "usual" where only the chip's own figure is known
    source: str
    slower: float  # share by which the work is longer on it than on an endless one

    @property
    def enough(self) -> bool:
        """Whether the network there suffices."""
        return not self.crosses or self.has >= self.needed

    @property
    def suffices(self) -> Network | None:
        """The slowest network known for nodes of that size that would do; None where none is needed or known."""
        if not self.crosses:
            return None
        known = [
            n
            for n in load().networks.values()
            if n.host_chips == self.node_chips
            and n.per_host >= self.needed
            and load().chips[n.chips[0]].family == self.family
        ]
        return min(known, key=lambda n: (n.per_host, n.id), default=None)


def offered(chip: Chip, instance: str) -> Network | None:
    """The network of an instance, where one is known.

    >>> offered(load().chips["h100"], "a3-megagpu-8g").id, offered(load().chips["h100"], "gpu_8x_h100_sxm5")
    ('gcp-a3-mega', None)
    """
    return next((n for n in load().networks.values() if chip.id in n.chips and instance in n.instances), None)


def training_need(p: Prediction, calibration: Calibration, instance: str = "") -> NetworkNeed:
    """The network that gradients, weights and activations of a layout need between nodes."""
    chip = p.accelerators.chip
    node, has, name, source = _there(chip, instance)
    best = _step(p, calibration, ENDLESS)
    if _step(p, calibration, _LEAST) <= best * (1 + 1e-6):
        inside = "its slice" if p.accelerators.shape else f"{chip.fabric.name or 'its fast links'}"
        return NetworkNeed(False, f"nothing leaves {inside}", chip.family, node, 0.0, has, name, source, 0.0)
    low, high = _LEAST, _LEAST
    while _step(p, calibration, high) > best * (1 + TOLERANCE):
        low, high = high, high * 2
    for _ in range(30):
        middle = (low * high) ** 0.5
        if _step(p, calibration, middle) > best * (1 + TOLERANCE):
            low = middle
        else:
            high = middle
    return NetworkNeed(
        True,
        _travels(p),
        chip.family,
        node,
        high * node,
        has,
        name,
        source,
        _step(p, calibration, has / node) / best - 1,
    )


def serving_need(service: Service, requests_per_s: float, instance: str = "") -> NetworkNeed:
    """The network that a node with replicas needs; `requests_per_s` is that of one replica.

    Only the stages of a pipeline lie beyond the fast links (serving.capacity.splits): then activations of a batch of
    prompts may take TOLERANCE of a stage's time. Other replicas need no network between nodes, unless prefill and
    decode are split: `needed` is then what the caches of their prompts take.
    """
    r, chip = service.replica, service.target.chip
    node, has, name, source = _there(chip, instance)
    if r.split.pp > 1 and r.split.chips > chip.fabric.domain:
        tokens = r.config.most_tokens
        sent = tokens * r.model.d_model * ACTIVATION_BYTES
        stage_s = float(r.step_times().tokens_s[tokens]) / r.split.pp
        return NetworkNeed(
            True,
            "activations between stages",
            chip.family,
            node,
            sent / (TOLERANCE * stage_s),
            has,
            name,
            source,
            sent / has / stage_s,
        )
    each = r.kv_cache.sequence(service.target.workload.serve.input.mean) * r.split.chips
    caches = each * requests_per_s * max(1.0, node / r.split.chips)
    return NetworkNeed(
        False, "caches of prompts, if prefill and decode are split", chip.family, node, caches, has, name, source, 0.0
    )


def _there(chip: Chip, instance: str) -> tuple[int, float, str, str]:
    """Chips of a node, its bytes/s, and where that is from."""
    known = offered(chip, instance)
    if known is not None:
        return known.host_chips, known.per_host, known.id, f"{known.source}, {known.date}"
    figure = chip.figures["fabric.scale_out"]
    node = chip.fabric.host_chips
    return node, chip.fabric.scale_out * node, "usual", f"{figure.source}, {figure.date}"


def _step(p: Prediction, calibration: Calibration, per_chip: float) -> float:
    """Seconds of the step by formulas, on a network of so many bytes/s a chip."""
    chip = replace(p.accelerators.chip, fabric=replace(p.accelerators.chip.fabric, scale_out=per_chip))
    work = set_up(p.workload, replace(p.accelerators, chip=chip), calibration, p.stack)
    return float(np.ravel(work.schedule(work.components(Layouts.of([p.layout]))).total)[0])


def _travels(p: Prediction) -> str:
    """The collectives of a layout that leave a node, in words."""
    layout, domain = p.layout, _domain(p.accelerators)
    inner = layout.tp * layout.cp * (layout.pp if layout.pipe_inner else 1)
    said = []
    if layout.tp > domain:
        said.append("activations of split layers")
    if layout.ep > 1 and layout.tp * layout.ep > domain:
        said.append("tokens on their way to experts")
    if layout.zero == 3 and inner * layout.shard > domain:
        said.append("weights and gradients of the shards")
    elif inner * layout.dp > domain and layout.dp > 1:
        said.append("gradients")
    if layout.pp > 1 and layout.chips > domain:
        said.append("activations between stages")
    return ", ".join(said) or "collectives"


def _domain(acc: Accelerators) -> float:
    if acc.shape:
        return float(np.prod(acc.shape)) if acc.slices > 1 else inf
    return float(acc.chip.fabric.domain)
