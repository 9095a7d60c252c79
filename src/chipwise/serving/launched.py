"""A service as `launch` takes it: its replicas with the settings it was simulated with."""

from __future__ import annotations

from chipwise.catalog import Accelerators, Offer
from chipwise.launch.described import Replicas
from chipwise.launch.script import script_of
from chipwise.launch.tools import own_tool
from chipwise.predict.estimate import Estimate
from chipwise.serving.formats import half
from chipwise.serving.service import Service


def replicas_of(
    of: Service,
    accelerators: Accelerators | None = None,
    replicas: int = 0,
    offer: Offer | None = None,
    duration: Estimate | None = None,
) -> Replicas:
    """The replicas of a service, or so many of them on other chips; with a duration, of a job that ends."""
    split, config = of.replica.split, of.replica.config
    return Replicas(
        of.target.workload,
        accelerators or of.accelerators,
        of.target.stack,
        replicas or of.replicas,
        split.tp,
        split.pp,
        split.dp,
        split.ep,
        config.most_sequences,
        config.most_tokens,
        config.block,
        config.mixed and config.chunked,
        half(of.target.chip),
        offer,
        duration,
        of.prefill_replicas,
    )


def flags(of: Service) -> str:
    """The command line of one replica; "" for stacks without one of their own."""
    tool = own_tool(of.target.stack.id)
    return "" if tool is None else " ".join(script_of(replicas_of(of), tool).command)
