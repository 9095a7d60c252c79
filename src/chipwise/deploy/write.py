"""A deployment written: what the target needs, the router's pools file and how to apply it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from chipwise.deploy.deployment import Deployment
from chipwise.deploy.pools_file import pools_file
from chipwise.deploy.targets.target import Target
from chipwise.deploy.tree import TreeFile, manifest_of, read_manifest, write_tree
from chipwise.errors import InputError
from chipwise.units import format_money


def files_of(deployment: Deployment, target: Target) -> list[TreeFile]:
    """Every file of the tree but its manifest."""
    settings = target.router(deployment)
    return [
        *target.files(deployment),
        pools_file(deployment, settings.backend, settings.addresses),
        TreeFile(path="README.md", text=readme(deployment, target)),
    ]


def write(deployment: Deployment, target: Target, folder: Path) -> Sequence[Path]:
    """Write the tree into a folder; one that has another deployment is refused: applied, it would destroy that."""
    if read_manifest(folder) and (other := manifest_of(folder).get("name")) != deployment.name:
        raise InputError(
            "to", str(folder), f"a folder of {deployment.name}: it has {other} (--name {other} to go on with that)"
        )
    return write_tree(folder, files_of(deployment, target), facts(deployment, target))


def facts(deployment: Deployment, target: Target) -> dict[str, Any]:
    """What the manifest says beside the files: what `deploy check` and `deploy diff` hold the tree against."""
    from chipwise.present.data import to_data

    pools = [{name: to_data(getattr(pool, name)) for name in pool.__dataclass_fields__} for pool in deployment.pools]
    return {
        "target": target.name,
        "name": deployment.name,
        "source": deployment.source,
        "provider": str(deployment.provider),
        "engine": str(deployment.engine),
        "region": deployment.region,
        "zone": deployment.zone,
        "usd_month": deployment.usd_month,
        "pools": pools,
    }


def readme(deployment: Deployment, target: Target) -> str:
    """What the tree is, what it holds and costs, and how to apply it."""
    rows = [
        f"| {pool.name} | {pool.chips} {pool.chip} | {_machines(deployment, pool.name)} | {pool.term} "
        f"| {format_money(pool.usd_month) if pool.usd_per_chip_hour else '–'} |"
        for pool in deployment.pools
    ]
    assumed = [f"- {line}" for line in deployment.assumptions]
    lines = [
        f"# {deployment.name}: {target.title}",
        "",
        f"Written by `chipwise deploy write` of {deployment.source}. Nothing here needs chipwise to be applied.",
        "",
        "| pool | chips | machines | terms | a month, all up |",
        "|---|---|---|---|---|",
        *rows,
        "",
        *(["Assumed:", "", *assumed, ""] if assumed else []),
        "## Apply",
        "",
        *target.steps(deployment),
        "",
        "`chipwise.json` names the files that were written; writing again refuses to go over a file that was edited.",
    ]
    return "\n".join(lines) + "\n"


def _machines(deployment: Deployment, name: str) -> str:
    pool = next(pool for pool in deployment.pools if pool.name == name)
    hosts = f"{pool.hosts} x {pool.machine or f'a host of {pool.host_chips}'}"
    slices = f", {pool.slices} x {pool.topology}" if pool.topology else ""
    return f"{hosts}{slices}" + (f", {pool.min_hosts} always up" if pool.min_hosts and pool.autoscaled else "")
