"""How long a collective takes on the wires: the fast domain first, the network beyond it. All arrays.

A group is `size` chips, `stride` apart, numbered along the fast domain first (the axes of a layout are laid
innermost first). A switch domain gives every chip its full bandwidth; a torus gives a group the links of the
axes it covers, both ways round where the axis wraps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog.chip import Fabric

Array = NDArray[np.float64]

NODE = 8  # chips of the nodes whose collectives were measured


@dataclass(frozen=True, slots=True)
class LinkCoefficients:
    """What calibration found for the wires of a chip."""

    up: float = 0.80  # share of the fast links' bandwidth a collective reaches
    out: float = 0.75  # share of the network's
    hop_s: float = 2.0e-6  # latency of one step inside the domain
    base_s: float = 8.0e-6  # start of a collective inside the domain
    out_hop_s: float = 6.0e-6  # latency of one step over the network
    out_base_s: float = 20.0e-6
    ramp_s: float = 8.0e-6  # messages fill the wires slowly: sqrt(this x wire time) is added to the wire time
    spread: float = 0.1  # two chips of a domain get (1/7) ** this of the rate that eight get
    in_switch: float = 0.0  # share of the bandwidth, as bytes reduced, of a reduction inside the switch; 0: none


@dataclass(frozen=True, slots=True)
class Wires:
    """The links of one slice or cluster."""

    fabric: Fabric
    chips: int
    shape: tuple[int, ...]  # torus shape of one slice; () elsewhere
    wraps: tuple[bool, ...]
    coefficients: LinkCoefficients

    @property
    def domain(self) -> int:
        """Chips joined by the fast links."""
        if self.shape:
            return int(np.prod(self.shape))
        return self.fabric.domain


def reach(wires: Wires, size: Array, stride: Array) -> tuple[Array, Array, Array]:
    """For groups: members inside one domain, domains spanned, bytes/s of the fast links for the group."""
    domain = float(wires.domain)
    inside = np.clip(np.floor(domain / stride), 1.0, size)
    across = np.ceil(size / inside)
    if wires.shape:
        return inside, across, _torus_rate(wires, inside, stride)
    # point-to-point links: a small group reaches only its own peers; a switch serves it nearly as well
    power = 1.0 if wires.fabric.kind == "mesh" else wires.coefficients.spread
    peers = min(wires.fabric.domain, NODE) if wires.fabric.kind != "mesh" else wires.fabric.domain
    share = np.minimum((np.maximum(inside, 2) - 1) / max(1, peers - 1), 1.0) ** power
    return inside, across, wires.fabric.scale_up * wires.coefficients.up * share


def _torus_rate(wires: Wires, inside: Array, stride: Array) -> Array:
    """Bytes/s, one way into a chip, that an all-gather reaches over the torus axes a group covers."""
    link = wires.fabric.link * wires.coefficients.up
    total = np.zeros(np.broadcast_shapes(np.shape(inside), np.shape(stride)))
    start = 1.0
    for length, wrap in zip(reversed(wires.shape), reversed(wires.wraps), strict=True):
        low = np.maximum(stride, start)
        high = np.minimum(stride * inside, start * length)
        covered = np.maximum(high / low, 1.0)
        shared = np.maximum(low / start, 1.0)  # groups interleaved on the axis share its links
        both = np.where((covered * shared >= length) & wrap, 2.0, 1.0)
        total = total + np.where(covered > 1.0, both * link / np.where(covered > 1.0, shared, 1.0), 0.0)
        start *= length
    return np.where(total > 0, total, link)


def gather_seconds(wires: Wires, size: Array, stride: Array, data: Array) -> Array:
    """All-gather (or reduce-scatter) whose whole buffer is `data` bytes on each chip."""
    inside, across, wire = _ring(wires, size, stride, data)
    seconds = _filled(wires, wire) + _latency(wires, inside, across, 1.0)
    return np.where(size > 1, seconds, 0.0)


def reduce_seconds(wires: Wires, size: Array, stride: Array, data: Array) -> Array:
    """All-reduce of `data` bytes: reduce-scatter and all-gather, or one pass through a reducing switch."""
    inside, across, wire = _ring(wires, size, stride, data)
    wire = 2 * wire
    share = wires.coefficients.in_switch
    if share > 0 and wires.fabric.kind == "switch":
        switched = data / (wires.fabric.scale_up * share)
        wire = np.where((across <= 1) & (size > 4), np.minimum(wire, switched), wire)
    seconds = _filled(wires, wire) + _latency(wires, inside, across, 2.0)
    return np.where(size > 1, seconds, 0.0)


def _ring(wires: Wires, size: Array, stride: Array, data: Array) -> tuple[Array, Array, Array]:
    """Members inside a domain, domains spanned, and seconds the wires of one gather are busy."""
    inside, across, rate = reach(wires, size, stride)
    # beyond the domain the ring runs at the network rate of the members inside it, taken together
    out = wires.fabric.scale_out * wires.coefficients.out * inside
    slowest = np.where(across > 1, np.minimum(rate, out), rate)
    return inside, across, (size - 1) / size * data / slowest


def _filled(wires: Wires, wire: Array) -> Array:
    return np.asarray(wire + np.sqrt(wire * wires.coefficients.ramp_s))


def _latency(wires: Wires, inside: Array, across: Array, rounds: float) -> Array:
    c = wires.coefficients
    far = np.where(across > 1, c.out_base_s + rounds * c.out_hop_s * np.maximum(across - 1, 0), 0.0)
    return np.asarray(c.base_s + rounds * c.hop_s * np.maximum(inside - 1, 0) + far)


def exchange_seconds(
    wires: Wires, size: Array, stride: Array, data: Array, copies: float = 1.0, most_domains: float = np.inf
) -> Array:
    """All-to-all where each chip sends `data` bytes in all, spread evenly over the group.

    `copies` of each token are among those bytes. A token crosses the network once for each domain it is
    needed in (never more than `most_domains`) and the fast links once for each chip, as DeepEP does, not once
    for each expert.
    """
    c = wires.coefficients
    inside, across, rate = reach(wires, size, stride)
    if wires.shape:  # on a torus the middle links carry a share that grows with the longest axis
        rate = rate * 4.0 / np.maximum(np.cbrt(inside) if len(wires.shape) == 3 else np.sqrt(inside), 4.0)
    if copies > 1:  # what arrives over the network is forwarded inside the domain
        local = data / copies * distinct(size, copies) * (inside - 1) / inside / rate
    else:
        local = data * (inside - 1) / size / rate
    domains = np.minimum(distinct(across, copies), most_domains)
    remote = data / copies * domains * (across - 1) / across / (wires.fabric.scale_out * c.out)
    latency = c.base_s + c.hop_s * (inside - 1) + np.where(across > 1, c.out_base_s, 0.0)
    return np.where(size > 1, _filled(wires, np.maximum(local, remote)) + latency, 0.0)


def distinct(places: Array, picks: float) -> Array:
    """How many of `places` are hit by `picks` random choices, on average.

    >>> f"{distinct(np.array([8.0]), 8.0)[0]:.2f}"
    '5.25'
    """
    return np.asarray(places * (1 - (1 - 1 / np.maximum(places, 1.0)) ** picks))


def send_seconds(wires: Wires, stride: Array, data: Array) -> Array:
    """Point-to-point of `data` bytes to the chip `stride` further on."""
    c = wires.coefficients
    far = stride >= wires.domain
    up = wires.fabric.link
    if wires.fabric.kind == "mesh":  # one peer is reached over its own link only
        up = wires.fabric.scale_up / max(1, wires.fabric.domain - 1)
    rate = np.where(far, wires.fabric.scale_out * c.out, up * c.up)
    return np.asarray(data / rate + np.where(far, c.out_base_s, c.base_s))
