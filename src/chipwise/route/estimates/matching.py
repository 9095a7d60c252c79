"""Feasibility of a variant in a pool, before anything is timed; and which declared runtime counts there."""

from __future__ import annotations

from chipwise.catalog import load
from chipwise.catalog.economics import Economics, sites
from chipwise.errors import Refusal
from chipwise.route.job import Data, DeclaredRuntime, Job, Variant
from chipwise.route.pool import Pool
from chipwise.route.secret import check_secrets
from chipwise.units import GIGA, format_bytes


def chips_taken(job: Job, variant: Variant, pool: Pool, launched: bool = True) -> tuple[int, str]:
    """Chips and topology that a variant takes in a pool; a `Refusal` where it may not or can't run there.

    `launched`: it is to run and not only to be simulated, which needs an image on some backends, and its secrets.
    """
    constraints = job.constraints
    if variant.on and pool.chip not in variant.on:
        raise Refusal(f"the variant runs on {', '.join(sorted(variant.on))} alone")
    if launched and pool.backend == "kubernetes" and not variant.image:
        raise Refusal("the variant has no image, and Kubernetes runs nothing else", f"variants.{variant.name}.image")
    for what, allowed, here in (
        ("chips", constraints.chips, pool.chip),
        ("pools", constraints.pools, pool.name),
        ("regions", constraints.regions, pool.region),
    ):
        if allowed and here not in allowed:
            raise Refusal(
                f"constraints.{what} allow {', '.join(sorted(allowed))} alone"
                + ("" if here else "; the pool names none")
            )
    if pool.spot and not constraints.spot:
        raise Refusal("constraints allow no spot chips")
    if launched:
        check_secrets(pool, variant.secrets)
    shape = pool.takes(variant.chips)
    if shape is None:
        most = max((n for n, _ in pool.shapes), default=pool.count)
        scope = " in one slice" if pool.shapes else ""
        raise Refusal(f"{variant.chips} chips don't fit: the pool has {most}{scope}")
    watts = shape[0] * pool.watts_chip
    if watts > pool.power_cap:
        raise Refusal(f"{shape[0]} chips draw {watts / 1000:.1f} kW, the pool may draw {pool.power_cap / 1000:.1f} kW")
    return shape


def moving_cost(data: Data | None, pool: Pool, know: Economics) -> tuple[float, str]:
    """US dollars for moving a job's data to a pool, and that in words; a `Refusal` where they must stay."""
    if data is None or pool.region in data.regions:
        return 0.0, ""
    where = ", ".join(data.regions)
    if not data.move:
        here = f"the pool is in {pool.region}" if pool.region else "the pool names no region"
        raise Refusal(f"its data lie in {where}, {here}", "constraints.data.move allows to move them")
    clouds = {site.cloud for site in sites().values() if site.region in data.regions} or {""}
    price = max((know("egress_usd_gb", cloud) for cloud in sorted(clouds)), key=lambda a: a.value)  # the dearest
    usd = data.size / GIGA * price.value
    return usd, (
        f"{format_bytes(data.size)} moved from {where} at {price.value:g} USD/GB ({price.source}); the time "
        "of that is not counted"
    )


def declared_runtime(job: Job, pool: Pool) -> DeclaredRuntime | None:
    """The runtime that the owner declares: of the pool, else of its chip, else of its family."""
    declared = {given.on: given for given in job.given}
    aliases = {pool.chip, *(load().chips[pool.chip].aliases if pool.chip in load().chips else ())}
    by_chip = next((declared[name] for name in declared if name.lower() in aliases), None)
    return declared.get(pool.name) or by_chip or declared.get(pool.family)
