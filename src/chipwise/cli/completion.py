"""What the shell completes: chips, workloads, models, places and fixed words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def complete_chips(incomplete: str) -> list[str]:
    """Chip names that begin with what was typed; after a comma, the next of a list."""
    from chipwise.catalog import load

    done, comma, last = incomplete.rpartition(",")
    return [f"{done}{comma}{name}" for name in load().chips if name.startswith(last.lower())]


def complete_workloads(incomplete: str) -> list[str]:
    """Known models and workload files that begin with what was typed."""
    from chipwise.workload import preset_names

    names = [name for name in preset_names() if name.startswith(incomplete.lower())]
    folder = Path(incomplete).parent if "/" in incomplete else Path()
    try:
        files = [str(p) for p in folder.iterdir() if p.is_dir() or p.suffix in (".yaml", ".yml", ".json")]
    except OSError:
        files = []
    return names + [name for name in files if name.startswith(incomplete)]


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

    done, comma, last = incomplete.rpartition(",")
    return [
        f"{done}{comma}{name}" for name in sorted({o.cloud for o in listed().offers}) if name.startswith(last.lower())
    ]


def complete_regions(incomplete: str) -> list[str]:
    """Regions that begin with what was typed; after a comma, the next of a list."""
    from chipwise.prices import listed

    done, comma, last = incomplete.rpartition(",")
    return [
        f"{done}{comma}{name}"
        for name in sorted({o.region for o in listed().offers})
        if name.lower().startswith(last.lower())
    ]


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


def one_of(*words: str) -> Callable[[str], list[str]]:
    """Completes to a fixed list of words."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete.lower())]

    return complete
