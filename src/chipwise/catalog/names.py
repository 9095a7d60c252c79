"""From what people write to chips: ``h100:8``, ``v5p-128``, "NVIDIA A100-PCIE-40GB", "MaxText (JAX)"."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from chipwise.catalog.chip import Chip
from chipwise.catalog.files import once
from chipwise.catalog.load import load
from chipwise.catalog.slices import Slices
from chipwise.catalog.stacks import Stack, holds_base, runs_on
from chipwise.errors import InputError, UnknownName

MAX_CHIPS = 1_000_000
FIELD = "accelerators"
_GROUPS = re.compile(
    r"(?<=[:x])\s*[1-9][0-9]{0,2}(?:,[0-9]{3})+\s*$|^\s*[1-9][0-9]{0,2}(?:,[0-9]{3})+(?=\s*x)"
)  # h100:1,024
_SMALLEST_SHARE = 8  # more chips than one slice holds become slices of at least this part of the largest
COUNT = f"a whole number of chips from 1 to {MAX_CHIPS:,}"

# Words that say nothing a chip's own words don't already say.
_NOISE = frozenset({"nvidia", "tesla", "amd", "instinct", "intel", "google", "aws", "cloud"}) | {
    *("gpu", "tpu", "tensor", "core", "accelerator", "server", "edition", "blackwell", "chip", "chips"),
    *("sxm", "sxm2", "sxm3", "sxm4", "sxm5", "sxm6", "hbm2", "hbm2e", "hbm3", "hbm3e"),
}


@dataclass(frozen=True, slots=True, repr=False)
class Accelerators:
    """So many chips of one kind. TPUs have a slice `shape`, and `slices` of them in a multislice job."""

    chip: Chip
    count: int  # all chips, over all slices
    shape: tuple[int, ...] = ()  # one slice; () for chips without a torus
    slices: int = 1
    assumed: bool = field(default=False, compare=False)  # nobody named the count

    def __repr__(self) -> str:
        return f"<Accelerators {self}>"

    def __str__(self) -> str:
        """The shortest text that parses back to this."""
        if not self.shape:
            return f"{self.chip.id}:{self.count}"
        many = f"{self.slices}*" if self.slices > 1 else ""
        return f"{self.chip.id}:{many}{_show(self.shape)}"

    def in_words(self) -> str:
        """The same, and that one chip was assumed where it was.

        >>> parse("h100:8").in_words(), parse("h100").in_words()
        ('h100:8', 'h100:1 (one chip: no count was named)')
        """
        return f"{self} (one chip: no count was named)" if self.assumed else str(self)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "name": str(self),
            "chip": self.chip.id,
            "count": self.count,
            "shape": list(self.shape),
            "slices": self.slices,
        }


def parse(text: str) -> Accelerators:
    """Chips as people write them. A colon counts chips; TPU hyphen names count as Google's do.

    >>> str(parse("h100:8")), str(parse("v5e:16")), str(parse("v5p-128")), str(parse("v5litepod-16"))
    ('h100:8', 'v5e:4x4', 'v5p:4x4x4', 'v5e:4x4')
    >>> parse("v5e:8192").slices, parse("2xv5p:4x4x4").count, parse("h100:8x8").count
    (32, 128, 64)
    >>> str(parse("8xh100")), str(parse("h100x8")), str(parse("v7x")), str(parse("mi300x x8"))
    ('h100:8', 'h100:8', 'v7x:1x1x1', 'mi300x:8')
    """
    if not isinstance(text, str) or not text.strip():
        raise InputError(FIELD, text, "a chip and a count such as h100:8, v5e:16 or v5p:4x4x4")
    text = _GROUPS.sub(lambda count: count[0].replace(",", ""), text.replace("×", "x"))
    if "," in text:
        raise InputError(FIELD, text, "one kind of chip, such as h100:8; `chipwise compare` takes several")
    body, groups = _take_groups(text.strip().lower())
    name, colon, spec = body.partition(":")
    if not colon:
        hyphen = _hyphen(name)
        if hyphen:
            return _tpu_name(text, *hyphen, groups)
        name, spec = _take_count(name)
    chip = _strict_chip(name, text)
    spec = spec.strip()
    if colon and not spec:
        raise InputError(FIELD, text, f"{COUNT} after the colon")
    acc = (_tpu if chip.id in load().slices else _plain)(text, chip, spec, groups)
    return acc if spec or groups > 1 else replace(acc, assumed=True)


def find_chip(text: str) -> Chip:
    """The chip a free-text name means.

    >>> find_chip("NVIDIA A100-PCIE-40GB").id, find_chip("TPU v7x (Ironwood)").id
    ('a100-40gb-pcie', 'v7x')
    """
    chip, _ = _recognize(text)
    return chip


def is_chip(text: str) -> bool:
    """Whether a text names a chip, with or without a count.

    >>> is_chip("h100:8"), is_chip("SXM")
    (True, False)
    """
    try:
        parse(text)
    except InputError:
        return False
    return True


def exact_chip(text: str) -> Chip:
    """The chip a name means, with no word left over: a typo or a variant must not become another chip.

    >>> exact_chip("H100-SXM").id
    'h100'
    >>> exact_chip("H200-NVL")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    chipwise.errors.UnknownName: chip: unknown name 'H200-NVL' (did you mean ...
    """
    return _strict_chip(text, text)


def training_stack(text: str) -> Stack | None:
    """The stack that a training run names; None where it names none."""
    if not text:
        return None
    named = find_stack(text)
    if named is None or "train" not in named.work:
        raise UnknownName("stack", text, [s.id for s in load().stacks.values() if "train" in s.work])
    return named


def find_stack(text: str, work: str = "") -> Stack | None:
    """The software stack a free-text name means, or None; `work`: among those that "train" or "serve" alone.

    >>> find_stack("Megatron-Bridge, NeMo container 26.04").id
    'megatron'
    >>> find_stack("llm-foundry (Composer, PyTorch FSDP)").id
    'fsdp'
    >>> find_stack("CUDA 12.3") is None
    True
    """
    low = text.lower()
    if low in load().stacks:
        return load().stacks[low]
    for stack in load().stacks.values():
        names = stack.aliases if work in ("", *stack.work) else ()
        if any(re.search(rf"(?<![a-z0-9]){re.escape(alias)}(?![a-z])", low) for alias in names):
            return stack
    return None


def serving_stack(text: str, field: str = "stack") -> Stack:
    """The stack that serves by its name, with `@` and a version as it was then.

    >>> serving_stack("vllm").release, serving_stack("vllm@0.6.1").release
    (2026.0, 2024.68)
    >>> serving_stack("vllm@0.6.1").name
    'vLLM 0.6.1'
    """
    name, apart, version = text.partition("@")
    stack = find_stack(name.strip())
    if stack is None or "serve" not in stack.work:
        raise UnknownName(field, name.strip(), [s.id for s in load().stacks.values() if "serve" in s.work])
    if not apart:
        return stack
    releases = stack.releases.values
    begins = [release for release in releases if f"{version.strip()}.".startswith(f"{release}.")]
    if not begins:
        listed = ", ".join(f"{stack.id}@{release}" for release in releases)
        raise InputError(field, text, f"{listed}; or {stack.id} alone, as it is today" if listed else stack.id)
    dated = releases[max(begins, key=len)]
    return replace(stack, release=dated, name=f"{stack.name} {version.strip()}")


def default_stack(chip: Chip, work: str = "train") -> Stack:
    """The stack assumed for a chip when none is named.

    >>> [default_stack(find_chip(name)).id for name in ("v5e", "h100", "trainium2", "gaudi3")]
    ['maxtext', 'megatron', 'optimum-neuron', 'optimum-habana']
    """
    use = f"{work}:{chip.family}"
    for stack in load().stacks.values():
        if use in stack.default_for and runs_on(stack, chip):
            return stack
    raise InputError("work", work, "train or serve")


def adapter_stack(chip: Chip, base: str = "") -> Stack:
    """The stack assumed for a chip when none is named and adapters are trained: one that people train them with.

    Beside a frozen base of 4 bits it is the first that can hold one; where none can, the one for other bases.

    >>> [adapter_stack(find_chip(name)).id for name in ("v5e", "h100", "gaudi3")]
    ['maxtext', 'fsdp', 'optimum-habana']
    >>> adapter_stack(find_chip("h100"), "nf4").id, adapter_stack(find_chip("h100"), "int4").id
    ('fsdp', 'pytorch')
    """
    use = f"train:{chip.family}"
    usual = next((s for s in load().stacks.values() if use in s.adapters_for and runs_on(s, chip)), None)
    usual = usual or default_stack(chip, "train")
    if not base or holds_base(usual, base, chip):
        return usual
    return next((s for s in load().stacks.values() if holds_base(s, base, chip)), usual)


def plain_stack(chip: Chip, work: str = "train") -> Stack:
    """The stack assumed for a chip when none is named and the model is no language model.

    >>> plain_stack(find_chip("v5e")).id, plain_stack(find_chip("h100"), "serve").id
    ('jax', 'tensorrt')
    """
    use = f"{work}:{chip.family}"
    for stack in load().stacks.values():
        if use in stack.plain_for and runs_on(stack, chip):
            return stack
    raise InputError("work", work, "train or serve")


def _squash(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _words(text: str) -> frozenset[str]:
    low = re.sub(r"(\d+)\s*gi?b?\b", r"\1gb", text.lower())  # 80 GB, 80G and 80GiB are 80gb
    return frozenset(re.findall(r"[a-z0-9]+", low))


@once
def _index() -> dict[str, str]:
    """Every exact spelling (squashed) to its chip id."""
    index: dict[str, str] = {}
    for chip in load().chips.values():
        for name in (chip.id, chip.name, f"{chip.vendor}{chip.id}", *chip.aliases):
            index.setdefault(_squash(name), chip.id)
    return index


def _all_names() -> list[str]:
    chips = load().chips.values()
    return [chip.id for chip in chips] + [alias for chip in chips for alias in chip.aliases]


def _recognize(text: str) -> tuple[Chip, frozenset[str]]:
    """A chip, and the words of `text` that did not help to find it."""
    exact = _index().get(_squash(text))
    if exact:
        return load().chips[exact], frozenset()
    words = _words(text)
    matches = [
        (frozenset(need), chip_id) for chip_id, sets in load().match.items() for need in sets if words >= set(need)
    ]
    best = {(need, c) for need, c in matches if not any(need < other for other, _ in matches)}
    ids = {chip_id for _, chip_id in best}
    if len(ids) != 1:
        _point_to_chips(text)
        raise UnknownName("chip", text.strip(), _all_names(), ": see `chipwise chips`")
    used = frozenset().union(*(need for need, _ in best))
    return load().chips[ids.pop()], words - used - _NOISE


def _point_to_chips(text: str) -> None:
    """Refuse an instance type with the chips that it has; nothing where it is none."""
    from chipwise.catalog.instances import instances, squashed

    for (cloud, name), instance in instances().items():
        if name == squashed(text) and instance.chips >= 1:
            has = f"{instance.chip_id}:{instance.chips:g}"
            raise InputError(FIELD, text, f"chips: {instance.name} of {cloud} has {has}")


def _strict_chip(name: str, text: str) -> Chip:
    """The chip `name` means, refusing words left over (a typo must not become another chip)."""
    if not name.strip():
        raise InputError(FIELD, text, "a chip before the colon, such as h100:8")
    chip, extra = _recognize(name)
    if extra - _words(chip.name):
        _point_to_chips(name)
        raise UnknownName("chip", name.strip(), _all_names(), ": see `chipwise chips`")
    return chip


def _take_groups(text: str) -> tuple[str, int]:
    """Split "2xv5p:4x4x4" into "v5p:4x4x4" and 2, and "8 h100" into "h100" and 8."""
    many = re.match(r"(\d+)(?:\s*[x*]\s*|\s+)(?=[a-z])(.+)$", text)
    if not many or _squash(text) in _index():
        return text, 1
    return many[2], _count(text, many[1])


def _take_count(name: str) -> tuple[str, str]:
    """Split "h100x8" into "h100" and "8"; a chip whose own name ends so stays whole."""
    many = re.fullmatch(r"(.+?)\s*[x*]\s*(\d+)", name)
    if not many or _squash(name) in _index() or _squash(many[1]) not in _index():
        return name, ""
    return many[1], many[2]


def _hyphen(name: str) -> tuple[Chip, str] | None:
    """A TPU name with its number, such as v5p-128 or tpu7x-4x4x4."""
    split = re.fullmatch(r"(.+)-(\d+(?:x\d+)*)", name.strip())
    if not split or _squash(name) in _index():
        return None
    chip_id = _index().get(_squash(split[1]))
    if chip_id is None:
        return None
    if chip_id not in load().slices:
        raise InputError(FIELD, name, f"a colon before the count: {chip_id}:{split[2]}")
    return load().chips[chip_id], split[2]


def _tpu_name(text: str, chip: Chip, spec: str, groups: int) -> Accelerators:
    slices = load().slices[chip.id]
    if "x" in spec or slices.counts == "chips":
        return _tpu(text, chip, spec, groups)
    cores = _count(text, spec)
    if cores % 2:
        raise InputError(
            FIELD, text, f"an even number: {chip.id}-N counts cores, two a chip ({chip.id}:N counts chips)"
        )
    return _tpu(text, chip, str(cores // 2), groups)


def _tpu(text: str, chip: Chip, spec: str, groups: int) -> Accelerators:
    legal = load().slices[chip.id]
    many = re.fullmatch(r"(\d+)\s*\*\s*(.+)", spec)
    if many:
        groups *= _count(text, many[1])
        spec = many[2]
    if "x" in spec:
        return _from_shape(text, chip, legal, spec, groups)
    count = _count(text, spec or "1")
    shape = legal.shape_for(count)
    if shape is None and count > legal.max_chips:
        size = max(n for n in legal.chip_counts() if count % n == 0)
        if size * _SMALLEST_SHARE >= legal.max_chips:
            shape = legal.shape_for(size)
            groups *= count // size
    if shape is None:
        raise InputError(FIELD, text, _near_counts(chip, legal, count))
    return _checked(text, chip, shape, groups)


def _from_shape(text: str, chip: Chip, legal: Slices, spec: str, groups: int) -> Accelerators:
    if not re.fullmatch(r"\d+(x\d+)+", spec):
        raise InputError(FIELD, text, f"a shape of {chip.fabric.dims} axes such as {_show(legal.shapes[-1])}")
    axes = tuple(int(axis) for axis in spec.split("x"))
    shape = legal.canonical(axes)
    if shape is None:
        raise InputError(FIELD, text, _near_shapes(chip, legal, axes))
    return _checked(text, chip, shape, groups)


def _checked(text: str, chip: Chip, shape: tuple[int, ...], slices: int) -> Accelerators:
    count = prod(shape) * slices
    if not 1 <= count <= MAX_CHIPS:
        raise InputError(FIELD, text, COUNT)
    return Accelerators(chip, count, shape, slices)


def _plain(text: str, chip: Chip, spec: str, groups: int) -> Accelerators:
    """Chips without a torus: a count, or nodes x chips a node."""
    parts = (spec or "1").split("x")
    if len(parts) > 2:
        accepted = f"a count or nodes x chips a node, such as {chip.id}:8 or {chip.id}:4x8"
        raise InputError(FIELD, text, accepted)
    count = prod(_count(text, part) for part in parts) * groups
    if count > MAX_CHIPS:
        raise InputError(FIELD, text, COUNT)
    return Accelerators(chip, count)


def _count(text: str, digits: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", digits.strip()):
        raise InputError(FIELD, text, COUNT)
    count = int(digits)
    if not 1 <= count <= MAX_CHIPS:
        raise InputError(FIELD, text, COUNT)
    return count


def _show(shape: tuple[int, ...]) -> str:
    return "x".join(str(axis) for axis in shape)


def _near_counts(chip: Chip, legal: Slices, count: int) -> str:
    if count > legal.max_chips:
        top = legal.shape_for(legal.max_chips) or legal.shapes[-1]
        return f"a multiple of a slice, such as {chip.id}:{-(-count // legal.max_chips)}*{_show(top)}"
    below = [n for n in legal.chip_counts() if n < count][-2:]
    above = [n for n in legal.chip_counts() if n > count][:2]
    near = ", ".join(f"{n} ({_show(legal.shape_for(n) or ())})" for n in [*below, *above])
    return f"a number of chips {chip.id} has a slice for; the nearest are {near}"


def _near_shapes(chip: Chip, legal: Slices, axes: tuple[int, ...]) -> str:
    if len(axes) != chip.fabric.dims:
        return f"a shape of {chip.fabric.dims} axes such as {_show(legal.shapes[-1])}"
    size = prod(axes)
    counts = sorted(legal.chip_counts(), key=lambda n: abs(n - size))[:3]
    near = ", ".join(_show(legal.shape_for(n) or ()) for n in sorted(counts))
    return f"a legal {chip.id} slice; the nearest are {near}"
