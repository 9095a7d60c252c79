"""Whether a variant may run in a pool at all, before anything is timed; and which given estimate counts there."""

from __future__ import annotations

from chipwise.catalog import load
from chipwise.catalog.economics import Economics, sites
from chipwise.errors import Refusal
from chipwise.route.job import Data, DeclaredRuntime, Job, Variant
from chipwise.route.pool import Pool
from chipwise.route.secret import may_be_handed
from chipwise.units import GIGA, format_bytes


def held(job: Job, variant: Variant, pool: Pool, launched: bool = True) -> tuple[int, str]:
    """Chips and topology that a variant takes in a pool; a `Refusal` where it may not or can't run there.

    `launched`: it is to run and not only to be simulated, which needs an image on some backends, and its secrets.
    """
    c = job.constraints
    if variant.on and pool.chip not in variant.on:
        raise Refusal(f"the variant runs on {', '.join(sorted(variant.on))} alone")
    if launched and pool.backend == "kubernetes" and not variant.image:
        raise Refusal("the variant has no image, and Kubernetes runs nothing else", f"variants.{variant.name}.image")
    for what, allowed, here in (
        ("chips", c.chips, pool.chip),
        ("pools", c.pools, pool.name),
        ("regions", c.regions, pool.region),
    ):
        if allowed and here not in allowed:
            raise Refusal(
                f"constraints.{what} allow {', '.join(sorted(allowed))} alone"
                + ("" if here else "; the pool names none")
            )
    if pool.spot and not c.spot:
        raise Refusal("constraints allow no spot chips")
    if launched:
        may_be_handed(pool, variant.secrets)
    taken = pool.takes(variant.chips)
    if taken is None:
        most = max((n for n, _ in pool.shapes), default=pool.count)
        where = " in one slice" if pool.shapes else ""
        raise Refusal(f"{variant.chips} chips don't fit: the pool has {most}{where}")
    watts = taken[0] * pool.watts_chip
    if watts > pool.power_cap:
        raise Refusal(f"{taken[0]} chips draw {watts / 1000:.1f} kW, the pool may draw {pool.power_cap / 1000:.1f} kW")
    return taken


def moved(data: Data | None, pool: Pool, know: Economics) -> tuple[float, str]:
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


def given_for(job: Job, pool: Pool) -> DeclaredRuntime | None:
    """What the owner says of a place: of the pool, else of its chip, else of its family."""
    said = {given.on: given for given in job.given}
    aliases = {pool.chip, *(load().chips[pool.chip].aliases if pool.chip in load().chips else ())}
    by_chip = next((said[name] for name in said if name.lower() in aliases), None)
    return said.get(pool.name) or by_chip or said.get(pool.family)
