"""What a serving stack adds to its kernels, as calibration found it: effects of labels that add up in logarithms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from math import exp

from chipwise.catalog import Chip, Stack
from chipwise.catalog.stacks import era_of
from chipwise.predict.site import architecture
from chipwise.serving.formats import only_experts, timed_as
from chipwise.workload.model import Model

RELEASE = 2026.0  # software releases are counted from here, in years
OLDEST = 0.5  # years around it within which releases were compared
MOST_PUBLISHED = "nvidia"  # the vendor whose chips the priors were set by
OPEN_LOAD = "open"  # requests come by themselves, whatever was answered
FIRST_TOKEN = ("request_s", "stream")  # what closed loops and open loads do not have in common


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Multipliers of kernels, and seconds that no formula of a chip knows.

    The values here are the priors: set by hand so that published rows (validation/rows, 2026-11) of all stacks together
    are met before any fit.
    """

    products: float = 1.0  # of decoding batches
    experts: float = 1.0
    collectives: float = 1.1
    context: float = 0.95  # decode attention
    prompt: float = 1.1  # everything in batches of a prompt's size
    layer_s: float = 20e-6  # small kernels and gaps of a layer
    layer_moe_s: float = 22e-6  # and of its router, permutation and combination
    layer_latent_s: float = 15e-6  # and of latent attention's extra products
    layer_linear_s: float = 25e-6  # and of linear or sparse attention
    host_s: float = 0.35e-3  # scheduling and sampling, an iteration
    sequence_s: float = 4e-6  # and a sequence
    expert_token_s: float = 0.1e-6  # moving a token to experts and back, a layer
    eager_s: float = 50e-6  # a layer of a batch too large for captured graphs
    request_s: float = 15e-3  # tokenizing, HTTP: until the replica sees a request
    stream: float = 1.0  # iterations until the first token is shown; the default of all stacks is to show it at once


NAMES = tuple(f.name for f in fields(Coefficients))


def labels(
    chip: Chip, stack: Stack | None, model: Model, precision: str, release: float | None = None, load: str = "online"
) -> dict[str, float]:
    """The labels, with weights, whose effects add up to the coefficients of a stack on a chip in a precision.

    `load` is ``online`` (a server with clients, who may come by themselves), ``offline`` (a job as fast as it goes) or
    ``batch`` (one at a time).
    """
    load = "online" if load == OPEN_LOAD else load
    name = stack.id if stack else "unknown"
    when = release if release is not None else stack.release if stack else RELEASE
    arch = architecture(chip)
    precision = timed_as(chip, model, precision)
    precision += "-experts" if only_experts(model, precision) else ""
    names = {
        "base": 1.0,
        f"family:{chip.family}": 1.0,
        f"arch:{arch}": 1.0,
        f"dtype:{precision}": 1.0,
        f"stack:{name}": 1.0,
        f"stack:{name}/dtype:{precision}": 1.0,
        f"arch:{arch}/dtype:{precision}": 1.0,
        "release": max(-OLDEST, min(OLDEST, when - RELEASE)),
    }
    other = variant(chip, stack)
    if other:
        names[f"stack:{name}/variant:{other}"] = 1.0
        names[f"stack:{name}/variant:{other}/arch:{arch}"] = 1.0
    return names | {f"{label}@{load}": weight for label, weight in names.items()}


def variant(chip: Chip, stack: Stack | None) -> str:
    """What tells a stack from the one that most rows were published of, today's on NVIDIA's chips; "" for that one.

    The name stayed, the software is another: kernels of another vendor, the scheduler of another era.
    """
    era = era_of(stack, chip.family) if stack else None
    vendor = "" if chip.vendor == MOST_PUBLISHED else chip.vendor
    return "-".join(part for part in (vendor, era.name if era else "") if part)


def coefficients(effects: Mapping[str, Mapping[str, float]], names: Mapping[str, float]) -> Coefficients:
    """The priors times what calibration found.

    >>> coefficients({"host_s": {"base": 0.0, "stack:vllm": 0.0}}, {"base": 1.0}) == Coefficients()
    True
    """
    prior = Coefficients()
    out = {}
    for key in NAMES:
        table = effects.get(key, {})
        out[key] = getattr(prior, key) * exp(sum(w * table.get(label, 0.0) for label, w in names.items()))
    return Coefficients(**out)


def server_alone(of: Coefficients, effects: Mapping[str, Mapping[str, float]], stack: Stack | None) -> Coefficients:
    """The coefficients with what a server alone adds to a first token, as open loads show it.

    Users in a closed loop start together and send again when they are answered, and their benchmark reads all streams
    in one process. What that adds to a first token, several iterations, is in the coefficients of closed loops; nobody
    who uses a service meets it.

    >>> server_alone(Coefficients(stream=4.0), {}, None).stream
    1.0
    """
    prior = Coefficients()
    values = {
        name: getattr(prior, name) * exp(sum(effects.get(name, {}).get(label, 0.0) for label in labels_of(stack)))
        for name in FIRST_TOKEN
    }
    return replace(of, **values)


def labels_of(stack: Stack | None) -> tuple[str, str]:
    """The labels whose effects on a first token of an open load add up: all stacks, and this one."""
    return "base", f"stack:{stack.id if stack else 'unknown'}"
