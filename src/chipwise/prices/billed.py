"""What a line of a bill was for: the chip, the instance and the unit, in the ways that clouds write them.

Amazon writes p5.48xlarge in x_UsageType and descriptions, Microsoft ND96isr H100 v5 in x_SkuMeterName, Google bills
cores, memory and GPUs of an instance apart and names it in a label. FOCUS has SkuPriceDetails with InstanceType.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from chipwise.catalog import find_chip, instances, load
from chipwise.catalog.instances import squashed
from chipwise.catalog.offers import ANY
from chipwise.errors import UnknownName
from chipwise.io.csv_lines import Line

DETAILS = ("SkuPriceDetails", "x_SkuDetails")
TEXTS = (
    "SkuMeter",
    "x_InstanceType",
    "x_SkuMeterName",
    "x_SkuDescription",
    "x_UsageType",
    "x_MachineSpec",
    "x_SystemLabels",
    "ResourceType",
    "ChargeDescription",
)
PATTERNS = {  # how each cloud spells instance types
    "aws": re.compile(r"(?<![\w.])([a-z][a-z0-9]*(?:-[a-z0-9]+)?\.(?:\d*x?large|medium|small|micro|metal[\w-]*))\b"),
    "azure": re.compile(r"(?<![A-Za-z0-9])((?:Standard_)?N[CDGPV]\d+\w*(?:[ _](?:[A-Z]{1,2}\d+\w*|v\d))*)"),
    "gcp": re.compile(r"(?<![\w-])((?:[acg]\d[a-z]?|ct\d[a-z]*)-[a-z]+-\d+[gt]?|v\d[a-z]*(?:litepod)?-\d+)(?![\w-])"),
    "oci": re.compile(r"\b((?:BM|VM)\.GPU[\w.-]*)"),
}
FAMILIES = {  # instance types with accelerators, known or not
    "aws": re.compile(r"(?:p|g|trn|inf|dl)\d"),
    "azure": re.compile(r"(?:Standard_)?N[CDGPV]\d"),
    "gcp": re.compile(r"a\d|g\d|ct\d|v\d"),
    "oci": re.compile(r"(?:BM|VM)\.GPU"),
}
CHIP_KEYS = ("chip", "gpuname", "gputype", "gpumodel", "acceleratorname", "acceleratortype")
COUNT_KEYS = ("chipsperinstance", "gpucount", "acceleratorcount")
HOURS = {
    "hour": 1.0,
    "hours": 1.0,
    "hr": 1.0,
    "hrs": 1.0,
    "h": 1.0,
    "minute": 1 / 60,
    "minutes": 1 / 60,
    "second": 1 / 3600,
    "seconds": 1 / 3600,
    "s": 1 / 3600,
    "day": 24.0,
    "days": 24.0,
}
HOST_UNITS = ("vcpu", "core", "cpu", "gb", "gib", "gibibyte", "gigabyte")
CHIP_UNITS = ("gpu", "chip", "accelerator", "tpu")


@dataclass(frozen=True, slots=True)
class Billed:
    """What a line was for. `per`: instance, chip, or host where the instance's chips are billed in other lines."""

    chip_id: str
    instance: str
    chips: float  # of the instance
    per: str


def what_for(line: Line, cloud: str) -> Billed | str:
    """What a line of usage was for, or in words why it is for no chip that is known."""
    details = _details(line)
    stated = _from_properties(details, cloud)
    if stated is not None:
        return stated
    named = _instance(line, cloud, details)
    description = line["ChargeDescription"]
    if cloud == "gcp":
        return _google(description, named)
    if isinstance(named, Billed):
        return named
    return f"unknown accelerator {named}" if named else "not an accelerator"


def hours_of(quantity: float, unit: str) -> tuple[float, str] | None:
    """Hours in a quantity and what they are of: instance, chip or host; None for other units.

    >>> hours_of(24.0, "Hours"), hours_of(2.0, "10 Hours"), hours_of(7200.0, "Seconds"), hours_of(8, "GPU-Hours")
    ((24.0, 'instance'), (20.0, 'instance'), (2.0, 'instance'), (8.0, 'chip'))
    >>> hours_of(3.0, "gibibyte hour"), hours_of(1.0, "GB-Months")
    ((3.0, 'host'), None)
    """
    words = re.findall(r"[a-z]+|\d+(?:\.\d+)?", unit.lower())
    if not words or words[-1] not in HOURS:
        return None
    block = float(words[0]) if words[0][0].isdigit() else 1.0
    of = [word for word in words[:-1] if not word[0].isdigit()]
    kinds = ["host" for word in of if word in HOST_UNITS] + ["chip" for word in of if word in CHIP_UNITS]
    per = kinds[0] if kinds else "instance"
    return quantity * block * HOURS[words[-1]], per


def tpu_slice(name: str) -> tuple[str, float] | None:
    """The chip and the chips of a TPU slice by its name; v5p-8 counts cores, v6e-8 chips.

    >>> tpu_slice("v5p-8"), tpu_slice("v6e-8"), tpu_slice("a3-highgpu-8g")
    (('v5p', 4.0), ('v6e', 8.0), None)
    """
    named = re.fullmatch(r"(?:tpu-)?(v\d\w*)-(\d{1,6})", name.lower())
    if not named:
        return None
    try:
        chip_id = find_chip(named[1]).id
    except UnknownName:
        return None
    legal = load().slices.get(chip_id)
    if legal is None:
        return None
    return chip_id, int(named[2]) / (2 if legal.counts == "cores" else 1)


def _details(line: Line) -> Mapping[str, str]:
    """The properties that a line has as JSON, by their names in lower case without F_ or x_."""
    properties: dict[str, str] = {}
    for column in DETAILS:
        text = line[column]
        if not text.startswith("{"):
            continue
        try:
            pairs = json.loads(text)
        except ValueError:
            raise line.wrong(column, "a JSON object or nothing") from None
        properties |= {re.sub(r"^(f|x)_", "", key.lower()): str(value) for key, value in pairs.items()}
    return properties


def _from_properties(details: Mapping[str, str], cloud: str) -> Billed | None:
    """The chip where the properties name it and count it; an instance that is known has the chips it is known for."""
    name = next((details[key] for key in CHIP_KEYS if details.get(key)), "")
    count = next((details[key] for key in COUNT_KEYS if details.get(key)), "")
    try:
        chips, chip_id = float(count), find_chip(name).id if name else ""
    except (ValueError, UnknownName):
        return None  # other columns may say
    if not chip_id or chips <= 0:
        return None
    instance = details.get("instancetype", "")
    listed = instances().get((cloud, squashed(instance)))
    if listed is not None and listed.chip_id == chip_id:
        chips = listed.chips
    return Billed(chip_id, instance or ANY, chips, "instance")


def _instance(line: Line, cloud: str, details: Mapping[str, str]) -> Billed | str:
    """The instance type that any column names; the name alone where it has accelerators that aren't known."""
    unknown = ""
    for text in _texts(line, details):
        listed = instances().get((cloud, squashed(text)))
        candidates = [text] if listed else PATTERNS[cloud].findall(text) if cloud in PATTERNS else []
        for name in candidates:
            billed = _from_name(cloud, name)
            if billed is not None:
                return billed
            if FAMILIES[cloud].match(name):
                unknown = unknown or name
    return unknown


def _texts(line: Line, details: Mapping[str, str]) -> Iterator[str]:
    yield from (value for key, value in details.items() if key in ("instancetype", "servicetype", "machinetype"))
    yield from (line[column] for column in TEXTS if line[column])


@cache
def _from_name(cloud: str, name: str) -> Billed | None:
    listed = instances().get((cloud, squashed(name)))
    if listed is not None:
        return Billed(listed.chip_id, listed.name, listed.chips, "instance")
    size = tpu_slice(name) if cloud == "gcp" else None
    return None if size is None else Billed(size[0], name, size[1], "instance")


def _google(description: str, named: Billed | str) -> Billed | str:
    """Google's lines: chips, cores and memory of one instance are lines of their own."""
    low = description.lower()
    tpu = re.search(r"\btpu[ -]?(v\d[a-z]*)", low)
    if tpu or re.search(r"\bgpu\b", low):
        chip_id = _chip_in(f"tpu {tpu[1]}" if tpu else low)
        legal = load().slices.get(chip_id or "")
        if chip_id is None or (tpu and (legal is None or legal.billed_by != "chip")):
            return f"unknown accelerator {description}"
        if isinstance(named, Billed) and named.chip_id == chip_id:
            return Billed(chip_id, named.instance, named.chips, "chip")
        return Billed(chip_id, ANY, float(load().chips[chip_id].fabric.host_chips), "chip")
    if isinstance(named, Billed):
        if re.search(r"\b(core|ram|cpu|memory)\b", low):
            return Billed(named.chip_id, named.instance, named.chips, "host")
        return "not an accelerator" if re.search(r"\b(storage|ssd|disk|network|egress|ip)\b", low) else named
    return f"unknown accelerator {named}" if named else "not an accelerator"


def _chip_in(text: str) -> str | None:
    """The chip that a description of Google's names: its A100 without a size is the one of 40 GB."""
    words = re.split(r"\b(?:gpu|running|attached)\b", text)[0].replace("spot preemptible", "")
    try:
        chip_id = find_chip(words).id
    except UnknownName:
        return None
    return "a100-40gb" if chip_id == "a100-80gb" and "80gb" not in words else chip_id
