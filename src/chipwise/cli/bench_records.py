"""What `chipwise bench` prints with `-o json`. Documented in docs/json.md."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from chipwise.bench.file import measurement_as_json
from chipwise.bench.session import listing
from chipwise.bench.show import chip_of, figures
from chipwise.cli.records import head

if TYPE_CHECKING:
    from chipwise.bench.diff import Diff
    from chipwise.bench.file import BenchFile
    from chipwise.bench.roofline import Roofline
    from chipwise.bench.session import Plan


def plan_record(planned: Plan) -> dict[str, Any]:
    """What would be measured."""
    return {
        **head("bench"),
        "platform": planned.platform,
        "device": asdict(planned.parts[0].device),
        "frameworks": {part.framework: dict(part.versions) for part in planned.parts},
        "notes": list(planned.notes),
        "points": [{**point.as_json(), "framework": framework} for framework, point in listing(planned)],
    }


def file_record(file: BenchFile) -> dict[str, Any]:
    """A bench file with what its figures mean."""
    chip = chip_of(file)
    document = file.as_json()
    del document["schema"], document["chipwise"], document["command"]
    points = [{**measurement_as_json(each), "figures": asdict(figures(each, chip))} for each in file.points]
    return {
        **head("bench show"),
        "measured_by": file.chipwise,
        "measured_with": list(file.command),
        **document,
        "points": points,
    }


def diff_record(found: Diff, fail_above: float | None) -> dict[str, Any]:
    """What changed between two files."""
    return {
        **head("bench diff"),
        "before": {"created": found.before.created, "device": found.before.device.name},
        "after": {"created": found.after.created, "device": found.after.device.name},
        "changes": [
            {
                **each.before.point.as_json(),
                "framework": each.before.framework,
                "ratio": each.ratio,
                "low": each.low,
                "high": each.high,
                "q": each.q,
                "verdict": each.verdict,
                "before_seconds": each.before.seconds.median if each.before.seconds else None,
                "after_seconds": each.after.seconds.median if each.after.seconds else None,
            }
            for each in found.changes
        ],
        "status_changes": [
            {
                **each.key.point.as_json(),
                "framework": each.key.framework,
                "before_status": each.before,
                "after_status": each.after,
            }
            for each in found.lost
        ],
        "notes": list(found.notes),
        "fail_above_percent": fail_above,
        "regressions": None if fail_above is None else len(found.regressions(fail_above)),
    }


def roofline_record(found: Roofline) -> dict[str, Any]:
    """Ceilings and dots."""
    return {
        **head("bench roofline"),
        "title": found.title,
        "bandwidth_bytes_per_s": found.bandwidth,
        "stated_bandwidth_bytes_per_s": found.stated_bandwidth,
        "flops_per_s_by_dtype": found.measured,
        "stated_flops_per_s_by_dtype": found.stated,
        "dots": [asdict(dot) for dot in found.dots],
    }
