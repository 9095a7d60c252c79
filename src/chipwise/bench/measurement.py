"""What came of a point: seconds, what the device said of itself, or why there is no figure.

Flat rows (`COLUMNS`) have the names of a point's sizes, so that a bench file and a table of rows say the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from chipwise.ops.point import Point

COLUMNS = (
    "kind",
    "dtype",
    "m",
    "n",
    "k",
    "seconds",
    "bytes",
    "b",
    "h",
    "hk",
    "s",
    "d",
    "model",
    "compile",
    "remat",
    "params",
    "peak_gib",
    "layers",
    "f",
    "vocab",
)
MORE_COLUMNS = ("causal", "framework")  # what a row says besides, where it isn't causal or through PyTorch


@dataclass(frozen=True, slots=True)
class Summary:
    """Seconds of one call over the samples taken."""

    median: float
    p25: float
    p75: float
    low: float
    high: float
    samples: int
    calls: int  # in each sample, one after another
    samples_s: tuple[float, ...] = ()  # seconds of one call by each sample, sorted, four digits

    @property
    def spread(self) -> float:
        """Interquartile range over the median."""
        return (self.p75 - self.p25) / self.median if self.median else 0.0


@dataclass(frozen=True, slots=True)
class Watched:
    """What the device said of itself while a point ran; None where it says nothing."""

    power_w: float | None = None
    energy_j: float | None = None  # of one call
    utilization: float | None = None  # share of the time that any kernel ran
    memory_bytes: float | None = None  # most in use on the device
    temperature_c: float | None = None  # highest
    clock_hz: float | None = None  # median clock of the cores
    throttled: tuple[str, ...] = ()  # reasons the device gave for lowering its clocks
    samples: int = 0


@dataclass(frozen=True, slots=True)
class Measurement:
    """What came of a point: `ok`, or why not (`unstable`, `oom`, `failed`, `unsupported`)."""

    point: Point
    framework: str  # torch or jax
    status: str
    seconds: Summary | None = None
    reason: str = ""  # in one line, where the status isn't ok
    flops: float = 0.0  # useful arithmetic of one call
    moved_bytes: float = 0.0  # fewest bytes one call must move through memory
    items: float = 0.0  # tokens, images or elements of one call
    params: int = 0
    peak_bytes: float | None = None  # most the framework's allocator held
    error: float | None = None  # relative to float64, where it was checked
    watched: Watched = field(default_factory=Watched)

    @property
    def usable(self) -> bool:
        """Whether calibration and comparisons may use it."""
        return self.status == "ok" and self.seconds is not None
