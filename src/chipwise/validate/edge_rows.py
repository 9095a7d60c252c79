"""Published edge inference: one CSV row into a device, a model, a scenario and what was observed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite, nan

from chipwise.catalog.edge import find_device
from chipwise.catalog.edge_models import EdgeModel, default_activations, default_steps, find_edge_model, is_edge_model
from chipwise.errors import ChipwiseError, InputError
from chipwise.serving.edge_roofline import SAMPLES, VENDOR, EdgePoint, lower_bound

COLUMNS = frozenset({"id", "accelerator", "model", "precision", "edge_scenario", "metric_value", "unit"})
SCENARIO = {"SingleStream": "single", "MultiStream": "multi", "Offline": "offline"}
# Rows that beat the data sheet by more than this are of other hardware than they name
IMPOSSIBLE = 0.95
# Submissions of these are in 16 bits; others in int8 (results of the closed division, 2021 to 2025)
SIXTEEN = ("rnnt", "bert-99.9", "gptj-99", "gptj-99.9", "stable-diffusion-xl", "whisper")


@dataclass(frozen=True, slots=True)
class EdgeRow:
    """A published measurement in our terms."""

    id: str
    source: str
    system: str  # runs of one system share what is particular to it
    point: EdgePoint
    seconds: float  # a sample, on one chip
    observed: Mapping[str, float]  # "latency" (s) or "throughput" (samples/s), and "energy" (J a sample)
    watts: float  # at the wall; 0: not measured

    @property
    def pair(self) -> str:
        """The pair of model and device, left out together."""
        return pair_of(self.point)

    @property
    def metric(self) -> str:
        """The headline metric."""
        return "throughput" if self.point.scenario == "offline" else "latency"


def pair_of(point: EdgePoint) -> str:
    """The name of a pair of model and device."""
    return f"{point.model.id}|{point.device.id}"


def eligible(row: Mapping[str, str]) -> bool:
    """Whether a row can be scored."""
    return not why_not(row)


def why_not(row: Mapping[str, str]) -> str:
    """Why a row is not eligible; "" where it is."""
    if row.get("edge_scenario", "") not in SCENARIO:
        return "no edge scenario"
    unit = row.get("unit", "")
    if "per query" in unit:
        return "multi stream as MLPerf defined it before v2.0"
    if unit not in ("ms", "samples/s", "frames/s"):
        return f"a figure in {unit}"
    try:
        find_device(row["accelerator"])
    except ChipwiseError:
        return "a device that is not in the catalog"
    try:
        parsed = read(row)
        if parsed.seconds < IMPOSSIBLE * lower_bound(parsed.point):
            return "faster than the data sheet of the device allows"
    except ChipwiseError as error:
        return "a precision without a published rate" if "rate" in str(error) else "a model without its operations"
    return ""


def _number(row: Mapping[str, str], key: str, default: float = 0.0) -> float:
    text = row.get(key, "").strip()
    if not text:
        return default
    try:
        number = float(text)
    except ValueError:
        number = nan
    if not isfinite(number):
        raise InputError(key, text, "a number")
    return number


def _round(row: Mapping[str, str]) -> str:
    """The round of MLPerf: of the repository, else as the notes say."""
    found = re.search(r"results_v(\d\.\d)", row.get("source_repo", ""))
    if found is None and "mlperf" in row.get("source_repo", ""):
        found = re.search(r"\bv(\d\.\d)\b", row.get("notes", ""))
    return found[1] if found else ""


def _model(row: Mapping[str, str], rounds: str) -> EdgeModel:
    """The model: by its name, or by the operations and weights that the row itself gives."""
    name = row["model"]
    if name.lower().startswith("3d-unet") and rounds and rounds < "2":
        return find_edge_model("3d-unet-brats")
    if is_edge_model(name):
        return find_edge_model(name)
    ops = re.search(r"OPS ([\d.]+) G", row.get("notes", ""))
    size = re.match(r"([\d.]+)\s*([MB])", row.get("params", ""))
    if ops is None or size is None:
        return find_edge_model(name)  # which names the nearest
    area = re.search(r"input (\d+)x(\d+)", row.get("notes", ""))
    task = re.search(r"task (\w+)", row.get("notes", ""))
    family, pixels = family_of(name, task[1] if task else ""), float(area[1]) * float(area[2]) if area else 224.0**2
    return EdgeModel(
        name,
        family,
        float(ops[1]) * 1e9,
        float(size[1]) * {"M": 1e6, "B": 1e9}[size[2]],
        default_activations(family, pixels),
        pixels,
        1.0,
        "int8",
        row.get("source_repo", ""),
        row.get("source_date", ""),
        steps=default_steps(family, 1.0),
    )


def family_of(name: str, task: str) -> str:
    """The family of a vision model by its name and task.

    >>> family_of("swin_tiny", "classification"), family_of("yolov8n", "object_detection")
    ('transformer', 'detect')
    """
    if re.search(r"vit|deit|swin|former|resmlp|detr", name):
        return "transformer"
    if "segm" in task:
        return "segment"
    if re.search(r"mobile|mbv|ghost|efficientnet_lite|squeeze", name):
        return "mobile"
    return "detect" if "det" in task or "pose" in task else "conv"


def runtime_of(row: Mapping[str, str]) -> str:
    """Which kind of software ran: the vendor's own, a framework, or a reference implementation."""
    text = f"{row.get('framework', '')} {row.get('notes', '')}".lower()
    if "vllm" in text:
        return "vllm"
    if "torchscript" in text or row.get("framework", "").lower().startswith("pytorch"):
        return "torch"
    if "cpp-gpu" in text:
        return "reference-cpp"
    return "reference" if "reference" in text.replace("nvidia_original", "") or "onnx" in text else VENDOR


def precision_of(row: Mapping[str, str], runtime: str) -> str:
    """The precision computed in. Submissions that run NVIDIA's code and state fp32 name the weights they were given."""
    text, name = row.get("precision", "").lower(), row["model"].lower()
    usual = "fp16" if name in SIXTEEN else "int8"
    published = row.get("source_repo", "").startswith("mlcommons")
    if runtime.startswith("reference"):
        return "fp32" if usual == "int8" else usual
    if not text or (published and "32" in text and runtime == VENDOR):
        return usual
    if "int8" in text or text.startswith("int,"):
        return "int8"
    for word, meaning in (("fp4", "fp4"), ("int4", "fp4"), ("float8", "fp8"), ("fp8", "fp8"), ("16", "fp16")):
        if word in text:
            return meaning
    return "fp32"


def read(row: Mapping[str, str]) -> EdgeRow:
    """One row of the columns of published edge results."""
    rounds, runtime = _round(row), runtime_of(row)
    notes = row.get("notes", "")
    device = find_device(row["accelerator"])
    scenario = SCENARIO[row["edge_scenario"]]
    system = re.search(r"system ([^;]+)", notes)
    batch = int(_number(row, "batch_size")) if scenario == "offline" else 0
    source, submitter = row.get("source_repo", ""), notes.split(";")[0]
    point = EdgePoint(
        device,
        _model(row, rounds),
        precision_of(row, runtime),
        scenario,
        batch=batch,
        # "1x1g" is one instance, however many cards its server has
        chips=1 if "1x1g" in row["accelerator"] else max(1, int(_number(row, "chips", 1))),
        mode=row.get("power_mode", "").lower(),
        runtime=runtime,
        round=rounds,
        submitter=submitter.lower() if rounds else source,
    )
    value = _number(row, "metric_value")
    if value <= 0:
        raise InputError("metric_value", row.get("metric_value", ""), "a number above 0")
    seconds = value / 1e3 if row["unit"] == "ms" else 1.0 / value
    metric = "throughput" if scenario == "offline" else "latency"
    if (metric == "latency") != (row["unit"] == "ms"):
        raise InputError("unit", row["unit"], "ms of a stream, or samples/s of an offline run")
    samples = SAMPLES["multi"] if scenario == "multi" else 1
    watts = _number(row, "power_w")
    joules = _number(row, "energy_mj_per_query") / 1e3 or watts * seconds
    observed = {metric: value if metric == "throughput" else seconds}
    if joules:
        observed["energy"] = joules / samples
    each = seconds * point.chips if scenario == "offline" else seconds / samples
    return EdgeRow(
        row.get("id", ""), source, f"{source}|{system[1] if system else ''}|{point.mode}", point, each, observed, watts
    )
