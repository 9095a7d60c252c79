"""Attempts whose devices were throttled, lost or faulty while they ran, by a store of telemetry."""

from __future__ import annotations

from chipwise.observe.store.store import TelemetryStore

ATTEMPT = "attempt"  # the label by which `observe agent` says whose process uses a device; nobody's where several do
UNFIT = {  # series of a device, and what it is if it is above 0 at any time
    "device_throttled_by_heat": "throttled by heat",
    "device_throttle_share": "throttled",
    "device_lost": "lost",
    "device_remap_failed": "faulty: a row of memory could not be remapped",
}


def unfit_attempts(telemetry: TelemetryStore) -> dict[str, str]:
    """What was wrong with a device of each attempt that had such a one."""
    out: dict[str, str] = {}
    for one in telemetry.newest(0):
        attempt = one.labels.get(ATTEMPT)
        if attempt and one.series in UNFIT and attempt not in out:
            most = max([one.value, *(value for _, value in telemetry.samples(one, 0))])
            if most > 0.0:
                out[attempt] = f"{one.host} {one.device} was {UNFIT[one.series]}"
    return out
