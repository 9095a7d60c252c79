"""The bench file as pydantic reads it: the published schema. Imported only where a file is read or described."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator

from chipwise.ops.point import DTYPES, KINDS, SUITES

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
AtLeast0 = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Size = Annotated[int, Field(ge=0, le=2**63)]
Status = Literal["ok", "unstable", "oom", "failed", "unsupported"]


class _Part(BaseModel):
    """Later versions of chipwise may add keys; they are read over. What is not finite could not be written again."""

    model_config = ConfigDict(extra="ignore", strict=False, allow_inf_nan=False)


class SecondsSpec(_Part):
    """Seconds of one call over the samples taken."""

    median: Positive
    p25: Positive
    p75: Positive
    low: Positive
    high: Positive
    samples: Annotated[int, Field(ge=1)]
    calls: Annotated[int, Field(ge=1, description="Calls in each sample, one after another.")]
    samples_s: list[Positive] = Field([], description="Seconds of one call by each sample, sorted, four digits.")


class WatchedSpec(_Part):
    """What the device said of itself while the samples were taken; what it doesn't say is absent."""

    power_w: AtLeast0 | None = None
    energy_j: AtLeast0 | None = Field(None, description="Joules of one call.")
    utilization: AtLeast0 | None = Field(
        None,
        description="Share of the time that any kernel ran.",
        validation_alias=AliasChoices("utilization", "utilisation"),  # files of 2026-11-15 and before
    )
    memory_bytes: AtLeast0 | None = Field(None, description="Most in use on the device, by all its users.")
    temperature_c: Finite | None = Field(None, description="Highest.")
    clock_hz: AtLeast0 | None = Field(None, description="Median clock of the cores.")
    throttled: list[str] = Field([], description="Reasons the device gave for lowering its clocks.")
    samples: Annotated[int, Field(ge=0)] = Field(0, description="How often the device was asked.")


class PointSpec(_Part):
    """One point: what was measured, its sizes beside it, and what came of it."""

    suite: Literal[SUITES]  # type: ignore[valid-type]
    kind: Literal[tuple(KINDS)]  # type: ignore[valid-type]
    dtype: Literal[DTYPES]  # type: ignore[valid-type]
    m: Size | None = Field(None, description="Rows of a product; rows of a norm or softmax; rows drawn by a gather.")
    n: Size | None = Field(None, description="Columns of a product; row length of a norm; rows of a gather's table.")
    k: Size | None = Field(None, description="The summed dimension of a product; row width of a gather.")
    bytes: Size | None = Field(None, description="Of one operand; of a collective, of one device's part.")
    b: Size | None = Field(None, description="Sequences or images.")
    h: Size | None = Field(None, description="Heads of queries.")
    hk: Size | None = Field(None, description="Heads of keys and values.")
    s: Size | None = Field(None, description="Length of a sequence.")
    d: Size | None = Field(None, description="Width of a head in attention; of the model in models.")
    layers: Size | None = None
    f: Size | None = Field(None, description="Width of the feed-forward block.")
    vocab: Size | None = None
    count: Size | None = Field(None, description="Parameters updated.")
    devices: Size | None = Field(None, description="Devices that take part.")
    compile: bool = Field(False, description="The whole step was compiled; otherwise it ran op by op.")
    remat: bool = Field(False, description="Each block was computed again in the backward pass.")
    causal: bool = Field(True, description="Attention looks back only.")
    model: str = Field("", description="The model known by that name whose sizes these are.")
    framework: Annotated[str, Field(min_length=1)]
    status: Status
    reason: str = Field("", description="Why the status isn't ok, in one line.")
    seconds: SecondsSpec | None = Field(None, description="Absent where nothing was timed.")
    flops: AtLeast0 = Field(0.0, description="Useful arithmetic of one call.")
    moved_bytes: AtLeast0 = Field(0.0, description="Fewest bytes that one call must move through memory.")
    items: AtLeast0 = Field(0.0, description="Tokens, images or elements of one call.")
    params: Annotated[int, Field(ge=0)] = 0
    peak_bytes: AtLeast0 | None = Field(None, description="Most that the framework's allocator held.")
    error: AtLeast0 | None = Field(None, description="Relative to float64, where it was checked.")
    watched: WatchedSpec = Field(default_factory=lambda: WatchedSpec.model_validate({}))

    @model_validator(mode="after")
    def _whole(self) -> PointSpec:
        for size in KINDS[self.kind]:
            if getattr(self, size) is None:
                raise ValueError(f"{self.kind} needs the size {size}")
        if self.status in ("ok", "unstable") and self.seconds is None:
            raise ValueError(f"the status is {self.status}, but seconds are missing")
        return self


class DeviceSpec(_Part):
    """The device measured on."""

    platform: Literal["cuda", "rocm", "tpu", "cpu"]
    name: str = Field(description="As its driver calls it.")
    memory_bytes: AtLeast0
    count: Annotated[int, Field(ge=0)] = Field(1, description="Devices of this kind on the machine.")
    index: Annotated[int, Field(ge=0)] = 0
    uuid: str = ""
    cache_bytes: AtLeast0 = Field(0.0, description="Last-level cache: inputs are rotated past it.")
    chip: str = Field("", description="Its name in the catalog (chipwise chips); empty where it is not there.")


class TelemetrySpec(_Part):
    """What watched the device, and how it was set before the run."""

    source: str = Field("", description="nvml, libtpu or proc; empty where nothing could be read.")
    reason: str = Field("", description="Why nothing could be read.")
    hz: AtLeast0 = 0.0
    settings: dict[str, float | str] = Field(
        {}, description="Before the run: driver, power_limit_w, power_w, clock_hz, max_clock_hz, ..."
    )


class FileSpec(_Part):
    """Measurements of one device, with what is needed to read them."""

    schema_: Literal["chipwise.bench/1"] = Field(alias="schema")
    created: Annotated[
        str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$", description="When the run began, UTC.")
    ]
    chipwise: str = Field(description="The version that measured.")
    command: list[str] = Field(description="The command, word by word.")
    device: DeviceSpec
    environment: dict[str, str | float] = Field(
        {}, description="os, kernel, cpu, cores, memory_bytes, python; host only where it was asked for."
    )
    frameworks: dict[str, dict[str, str]] = Field({}, description="Versions by framework.")
    telemetry: TelemetrySpec = Field(default_factory=lambda: TelemetrySpec.model_validate({}))
    elapsed_s: float = Field(0.0, ge=0, description="How long the run took; 0 where it wasn't noted.")
    complete: bool = Field(description="False: interrupted, or out of time; the points are those done till then.")
    notes: list[str] = Field([], description="What a reader should know, in words.")
    points: list[PointSpec]


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the bench file."""
    described = FileSpec.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **described, "title": "chipwise bench file"}
