"""Pools asked for and what the user chose beside them, as a deployment."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from chipwise.deploy.deployment import (
    Deployment,
    NodePool,
    PoolRequest,
    Problem,
    Provider,
    Term,
    Undeployable,
)
from chipwise.deploy.machines import node_pool
from chipwise.deploy.read import Source
from chipwise.deploy.targets.target import Target
from chipwise.errors import InputError, UnknownName

NAME = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What the user chose beside the source; keys of the mappings are pools."""

    name: str | None = None
    only: Sequence[str] = ()  # these pools alone; none named: all
    region: str | None = None
    zone: str | None = None
    terms: Mapping[str, Term] = field(default_factory=dict)  # of all pools under an empty name
    topologies: Mapping[str, str] = field(default_factory=dict)
    reservations: Mapping[str, str] = field(default_factory=dict)


def deployment_of(source: Source, target: Target, choices: Choices) -> Deployment:
    """The machines of a source for a target."""
    names = [request.name for request in source.requests]
    for option, chosen in (
        ("only", choices.only),
        ("term", choices.terms),
        ("topology", choices.topologies),
        ("reservation", choices.reservations),
    ):
        unknown = next((name for name in chosen if name and name not in names), None)
        if unknown is not None:
            raise UnknownName(option, unknown, names)
    wanted = tuple(request for request in source.requests if not choices.only or request.name in choices.only)
    requests = tuple(_chosen(request, choices) for request in wanted)
    provider = target.provider or _provider(requests)
    for request in requests:
        _name(request.name, request.name)
        if request.cloud and request.cloud != provider:
            raise Undeployable(
                Problem.OTHER_PROVIDER,
                request.name,
                f"its price and place are of {request.cloud}, {target.name} is of {provider}",
                f"decide again by offers of {provider} (--cloud), or write other pools (--only)",
            )
    name = choices.name or source.name
    _name(name, "")
    region = _region(requests, choices, provider)
    if choices.zone and not re.fullmatch(rf"{re.escape(region)}-?[a-z]", choices.zone):
        raise InputError("zone", choices.zone, f"a zone of {region}, such as {region}-a")
    pools: list[NodePool] = []
    assumptions = [*source.assumptions, *_repriced(wanted, requests)]
    for request in requests:
        pool, assumed = node_pool(request, provider, choices.reservations.get(request.name, ""))
        pools.append(pool)
        assumptions.extend(assumed)
    deployment = Deployment(
        name=name,
        source=source.words,
        provider=provider,
        engine=target.engine,
        region=region,
        zone=choices.zone or "",
        pools=tuple(pools),
        assumptions=tuple(assumptions),
    )
    target.check(deployment)
    return deployment


def _chosen(request: PoolRequest, choices: Choices) -> PoolRequest:
    term = choices.terms.get(request.name, choices.terms.get("", request.term))
    topology = choices.topologies.get(request.name)
    always = request.chips if term in (Term.RESERVED, Term.OWNED) else 0 if term is not request.term else request.always
    shapes = (topology,) if topology else request.shapes
    return replace(request, term=term, shapes=shapes, always=always)


def _repriced(before: tuple[PoolRequest, ...], after: tuple[PoolRequest, ...]) -> list[str]:
    """Pools on other terms than their price is of."""
    return [
        f"{old.name}: taken as {new.term}, at the price of {old.term}"
        for old, new in zip(before, after, strict=True)
        if old.term is not new.term and old.usd_per_chip_hour
    ]


def _name(name: str, pool: str) -> None:
    if not NAME.fullmatch(name):
        reason = f"the name {name!r} is none that Kubernetes, Slurm and Terraform take"
        raise Undeployable(Problem.NAME, pool, reason, "lower case letters, digits and dashes, a letter first")


def _provider(requests: tuple[PoolRequest, ...]) -> Provider:
    """The cloud of all pools; no cloud is machines of one's own."""
    clouds = {request.cloud or str(Provider.ON_PREMISES) for request in requests}
    if len(clouds) > 1:
        raise Undeployable(
            Problem.OTHER_PROVIDER, "", f"pools of several providers: {', '.join(sorted(clouds))}", "write each apart"
        )
    cloud = clouds.pop()
    if cloud not in list(Provider):
        raise Undeployable(
            Problem.OTHER_PROVIDER, "", f"nothing is known of machines of {cloud}", f"one of {', '.join(Provider)}"
        )
    return Provider(cloud)


def _region(requests: tuple[PoolRequest, ...], choices: Choices, provider: Provider) -> str:
    """The one region of all pools, which only one's own machines may lack."""
    if choices.region:
        return choices.region
    regions = sorted({request.region for request in requests if request.region not in ("", "any")})
    if len(regions) > 1:
        raise Undeployable(
            Problem.SEVERAL_REGIONS,
            "",
            f"pools of several regions: {', '.join(regions)}",
            "--region for all of them, or a source a region",
        )
    if not regions and provider is not Provider.ON_PREMISES:
        raise Undeployable(Problem.NO_REGION, "", "no pool says in which region it is", "--region")
    return regions[0] if regions else ""
