"""What the shell completes: chips, workloads, models, places and fixed words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path


def complete_chips(incomplete: str) -> list[str]:
    """Chip names that begin with what was typed; after a comma, the next of a list."""
    from chipwise.catalog import load

    return _next_of(load().chips, incomplete)


def complete_workloads(incomplete: str) -> list[str]:
    """Known models and workload files that begin with what was typed."""
    return complete_models(incomplete) + files(".yaml", ".yml", ".json")(incomplete)


def complete_models(incomplete: str) -> list[str]:
    """Known models that begin with what was typed."""
    from chipwise.workload import preset_names

    return [name for name in preset_names() if name.startswith(incomplete.lower())]


def complete_stacks(incomplete: str) -> list[str]:
    """Software stacks that begin with what was typed."""
    from chipwise.catalog import load

    return [name for name in load().stacks if name.startswith(incomplete.lower())]


def complete_clouds(incomplete: str) -> list[str]:
    """Clouds that begin with what was typed; after a comma, the next of a list."""
    from chipwise.prices import listed

    return _next_of(sorted({o.cloud for o in listed().offers}), incomplete)


def complete_regions(incomplete: str) -> list[str]:
    """Regions that begin with what was typed; after a comma, the next of a list."""
    from chipwise.prices import listed

    return _next_of(sorted({o.region for o in listed().offers}), incomplete)


def complete_offers(incomplete: str) -> list[str]:
    """Offers as cloud/region/instance that begin with what was typed."""
    from chipwise.prices import listed

    names = {f"{o.cloud}/{o.region}/{o.instance}" for o in listed().offers}
    return [name for name in sorted(names) if name.lower().startswith(incomplete.lower())]


def complete_sites(incomplete: str) -> list[str]:
    """Places of one's own that begin with what was typed."""
    from chipwise.catalog.economics import own_sites

    return [name for name in own_sites() if name.startswith(incomplete.lower())]


def complete_assumptions(incomplete: str) -> list[str]:
    """Assumptions that begin with what was typed."""
    from chipwise.catalog.economics import economics

    return [f"{name}=" for name in economics().table if name.startswith(incomplete.lower())]


def complete_policies(incomplete: str) -> list[str]:
    """Policies that begin with what was typed."""
    from chipwise.route.policies import policy_names

    return [name for name in policy_names() if name.startswith(incomplete.lower())]


def complete_policy_list(incomplete: str) -> list[str]:
    """Policies that begin with what was typed; after a comma, the next of a list."""
    from chipwise.route.policies import policy_names

    return _next_of(policy_names(), incomplete)


def _next_of(names: Iterable[str], incomplete: str) -> list[str]:
    done, comma, last = incomplete.rpartition(",")
    return [f"{done}{comma}{name}" for name in names if name.lower().startswith(last.lower())]


def one_of(*words: str) -> Callable[[str], list[str]]:
    """Completes to a fixed list of words."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete.lower())]

    return complete


def files(*suffixes: str) -> Callable[[str], list[str]]:
    """Completes to folders, and to files whose names end so."""

    def complete(incomplete: str) -> list[str]:
        folder = Path(incomplete).parent if "/" in incomplete else Path()
        try:
            names = [str(p) for p in folder.iterdir() if p.is_dir() or p.suffix in suffixes]
        except OSError:
            return []
        return [name for name in names if name.startswith(incomplete)]

    return complete


complete_yaml = files(".yaml", ".yml")
