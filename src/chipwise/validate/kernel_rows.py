"""Published kernel measurements: one CSV row into a chip, a kernel and the seconds it took.

Sources state times, rates or bandwidths, each by its own convention; this module turns all into seconds:

* products and attention: a time, else 2MNK (or the attention FLOPs of the row) over the TFLOP/s;
* all-reduce: a time, else the bus bandwidth 2(n-1)/n x bytes / time;
* TPU all-gather: `bytes` is what a chip receives, so bytes over the achieved bandwidth;
* HBM copy: a time, else read plus write over the bandwidth of the whole chip;
* expert all-to-all: a time, else the bytes of the tokens over the bottleneck bandwidth.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from chipwise.catalog import Chip, find_chip
from chipwise.errors import ChipwiseError, InputError, Refusal
from chipwise.predict.microbenchmark import BenchName, Implementation, Kernel, attention_flops
from chipwise.units import parse_count

COLUMNS = frozenset({"id", "source_repo", "accelerator", "chips", "op", "M", "N", "K", "bytes", "time_ms", "gb_per_s"})

_RATES = ("time_ms", "tflops", "gb_per_s")
_OPS = (  # first match wins: words of the row's `op` in lower case, our name
    (r"all-?\s?to-?\s?all|dispatch|combine", "exchange"),
    (r"all-?reduce|psum", "reduce"),
    (r"all-?gather|reduce-?scatter", "gather"),
    (r"attention", "attention"),
    (r"copy|hbm", "copy"),
    (r"gemm|matmul|linear", "gemm"),
)
_BENCHES: tuple[tuple[str, BenchName], ...] = (  # first match wins: words of the library or variant, our name
    (r"best shape|mamf", "best"),
    (r"deepbench", "deepbench"),
    (r"vidur", "vidur"),
    (r"pytorch/cublas", "synchronous"),
    (r"deepgemm", "deepgemm"),
    (r"torch nccl", "torch-nccl"),
    (r"^pytorch \d|torch \d", "torch"),
    (r"trtllm", "graph"),
)
_IMPLEMENTATIONS: tuple[tuple[str, Implementation], ...] = (
    ("flashattention-2", "fa2"),
    ("flashattention-3", "fa3"),
    ("cudnn", "cudnn"),
    ("standard", "standard"),
    ("xformers", "fa2"),
    ("triton", "fa2"),
)
_TOKENS = re.compile(r"(\d+) tokens, hidden (\d+), top-(\d+)(?: experts)?(?:, top-(\d+) groups)?", re.I)
SCALE_BYTES = 4 / 128  # DeepEP sends one fp32 scale for 128 fp8 values (deepseek-ai/DeepEP README, 2025-02)


@dataclass(frozen=True, slots=True)
class KernelRow:
    """A published measurement in our terms."""

    id: str
    source: str
    chip: Chip
    kernel: Kernel
    observed_s: float
    group: str  # rows of one (source, op, accelerator)


def op_of(text: str) -> str:
    """Our name for an operation, "" where we have no model of it.

    >>> op_of("GEMM"), op_of("all-gather (ICI)"), op_of("MoE combine all-to-all"), op_of("convolution")
    ('gemm', 'gather', 'exchange', '')
    """
    low = text.lower()
    return next((name for pattern, name in _OPS if re.search(pattern, low)), "")


def dtype_of(text: str) -> str:
    """The precision of the arithmetic; "" where the text names none.

    >>> dtype_of("fp16 inputs, fp32 accumulate (tensor core)"), dtype_of("fp16 inputs, fp32 math")
    ('fp16', 'fp32')
    >>> dtype_of("fp8_e4m3"), dtype_of("fp32 (TF32 disabled in collect.py)"), dtype_of("fp16/bf16")
    ('fp8', 'fp32', 'bf16')
    """
    low = text.lower().split("(")[0]
    if "fp32 math" in low:
        return "fp32"
    for words, name in (
        (("fp4", "float4"), "fp4"),
        (("fp8", "float8", "e4m3", "e5m2"), "fp8"),
        (("int8",), "int8"),
        (("bf16", "bfloat16"), "bf16"),
        (("fp16", "float16", "half"), "fp16"),
        (("tf32",), "tf32"),
        (("fp32", "f32", "float32"), "fp32"),
    ):
        if any(word in low for word in words):
            return name
    return ""


def eligible(row: Mapping[str, str]) -> bool:
    """The chip is known, the operation is one we model, its size, precision and a time or rate are given."""
    return why_not(row) == ""


def why_not(row: Mapping[str, str]) -> str:
    """Why a row can't be predicted, in words; "" where it can."""
    name = _text(row, "accelerator")
    if not name:
        return "accelerator not named"
    try:
        find_chip(_plain(name))
    except ChipwiseError:
        return f"accelerator {name!r} is not in the catalog"
    op = op_of(_text(row, "op"))
    if not op:
        return f"operation {_text(row, 'op')!r} is not modelled"
    if not any(_text(row, key) for key in _RATES):
        return "no time or rate"
    return _size_missing(row, op)


def _size_missing(row: Mapping[str, str], op: str) -> str:
    if op == "gemm":
        if not all(_text(row, key) for key in ("M", "N", "K")):
            return "M, N or K not given"
        return "" if dtype_of(_text(row, "precision")) else "precision not given"
    if op == "attention":
        if not all(_text(row, key) for key in ("batch_or_groups", "seq_len", "heads", "head_dim")):
            return "batch, sequence, heads or head size not given"
        return "" if dtype_of(_text(row, "precision")) else "precision not given"
    if op != "copy" and not _text(row, "chips"):
        return "chip count unknown"
    if op == "exchange" and not _text(row, "bytes"):
        return "" if _TOKENS.search(_text(row, "batch_or_groups")) else "neither bytes nor tokens given"
    return "" if op == "exchange" or _text(row, "bytes") else "bytes not given"


def read(row: Mapping[str, str]) -> KernelRow:
    """One row in our terms; raises `ChipwiseError` where it can't be understood."""
    reason = why_not(row)
    if reason:
        raise Refusal(f"row {_text(row, 'id')}: {reason}")
    chip = find_chip(_plain(_text(row, "accelerator")))
    kernel = kernel_of(row, chip)
    return KernelRow(
        id=_text(row, "id"),
        source=_text(row, "source_repo"),
        chip=chip,
        kernel=kernel,
        observed_s=observed_seconds(row, chip, kernel),
        group="|".join((_text(row, "source_repo"), kernel.op, _text(row, "accelerator"))),
    )


def try_read(row: Mapping[str, str]) -> KernelRow | str:
    """The row, or the reason it can't be read."""
    try:
        return read(row)
    except ChipwiseError as e:
        return str(e)


def kernel_of(row: Mapping[str, str], chip: Chip) -> Kernel:
    """The kernel a row measured."""
    op = op_of(_text(row, "op"))
    dtype = dtype_of(_text(row, "precision"))
    words = f"{_text(row, 'variant')} {_text(row, 'op')}"
    low = words.lower()
    kernel = Kernel(
        op=op,
        dtype=dtype,
        bench=bench_of(_text(row, "library"), words),
        over_slices="dcn" in low,
        chips=max(int(_number(row, "chips", 1.0)), 1),
        pairs="pairwise" in _text(row, "accelerator").lower(),
        devices=_devices(row, chip, op),
    )
    if op == "gemm":
        return kernel.sized(
            m=_size(row, "M"),
            n=_size(row, "N"),
            k=_size(row, "K"),
            batch=_groups(row),
            in_dtype="fp16" if "fp16 inputs" in _text(row, "precision").lower() else "",
        )
    if op == "attention":
        return kernel.sized(
            batch=_groups(row),
            heads=_size(row, "heads"),
            head_dim=_size(row, "head_dim"),
            m=_size(row, "seq_len"),
            causal=_text(row, "causal").lower() == "true",
            backward="bwd" in _text(row, "pass").lower(),
            implementation=implementation_of(words),
        )
    if op == "exchange":
        return _exchange(row, kernel.sized(low_latency="low-latency" in low))
    return kernel.sized(
        data=_size(row, "bytes"),
        topology=topology_of(words),
        group=group_of(words),
        in_switch="nvls off" not in low and "ring" not in low,
        nvls_off="nvls off" in low,
    )


def bench_of(library: str, words: str) -> BenchName:
    """How a source measures, by the words of its library and variant.

    >>> bench_of("nccl-tests", "single node all-reduce"), bench_of("", "best shape (mamf-finder)")
    ('', 'best')
    """
    low = f"{library} {words}".lower().strip()
    return next((name for pattern, name in _BENCHES if re.search(pattern, low)), "")


def implementation_of(words: str) -> Implementation:
    """Which published attention kernel ran; "" where none is named.

    >>> implementation_of("FlashAttention-2 (CUDA)"), implementation_of("prefill attention")
    ('fa2', '')
    """
    low = words.lower()
    return next((name for word, name in _IMPLEMENTATIONS if word in low), "")


def topology_of(words: str) -> tuple[int, ...]:
    """The shape of the TPU slice that a variant names; () where it names none.

    >>> topology_of("topology 2x2x1; f32[64,8,128] -> f32[256,8,128]")
    (2, 2, 1)
    """
    shape = re.search(r"topology (\d+(?:x\d+)+)", words)
    return tuple(int(axis) for axis in shape[1].split("x")) if shape else ()


def group_of(words: str) -> float:
    """Chips that gather together, by how much an array grows; 0 where the variant doesn't say.

    >>> group_of("topology 2x2x2; f32[64,8,128] -> f32[256,8,128] all-gather (ICI)")
    4.0
    """
    grown = re.search(r"\[(\d+),.*?->\s*\w+\[(\d+),", words)
    return int(grown[2]) / int(grown[1]) if grown else 0.0


def _exchange(row: Mapping[str, str], kernel: Kernel) -> Kernel:
    """Tokens to their experts: the bytes one chip sends, and how many nodes a token may reach."""
    match = _TOKENS.search(_text(row, "batch_or_groups"))
    if not match:
        return kernel.sized(data=_size(row, "bytes"))
    tokens, hidden, top, groups = (int(x) if x else 0 for x in match.groups())
    combine = "combine" in _text(row, "op").lower()
    element_bytes = 2.0 if combine or kernel.dtype in ("bf16", "fp16", "") else 1.0 + SCALE_BYTES
    return kernel.sized(data=tokens * top * hidden * element_bytes, copies=top, groups=groups)


def observed_seconds(row: Mapping[str, str], chip: Chip, kernel: Kernel) -> float:
    """Seconds the kernel took, by the row's own convention."""
    milliseconds = _number(row, "time_ms")
    if milliseconds > 0:
        return milliseconds * 1e-3
    tflops = _number(row, "tflops")
    if tflops > 0 and kernel.op == "gemm":
        return 2.0 * kernel.batch * kernel.m * kernel.n * kernel.k / (tflops * 1e12)
    if tflops > 0 and kernel.op == "attention":
        return attention_flops(kernel) / (tflops * 1e12)
    rate = _number(row, "gb_per_s") * 1e9
    if rate <= 0:
        raise InputError("gb_per_s", row.get("gb_per_s", ""), "a time or rate above zero")
    if kernel.op == "reduce":
        n = kernel.chips
        if kernel.over_slices:
            # psum_dcn of accelerator-microbenchmarks: size x 2(d-1)/d/d / time, over d = 2 slices
            return 0.5 * kernel.data / rate
        return 2 * (n - 1) / n * kernel.data / rate
    if kernel.op == "copy":
        return 2 * kernel.data * chip.devices / rate
    if kernel.op == "exchange":
        return kernel.bottleneck_bytes(chip.fabric.host_chips) / rate
    return kernel.data / rate  # the bytes of an all-gather row are those a chip receives


def _devices(row: Mapping[str, str], chip: Chip, op: str) -> int:
    """How many devices of a chip the row's work runs on: TPU7x products are published per TensorCore."""
    words = " ".join(_text(row, key) for key in ("variant", "notes", "metric_name")).lower()
    if chip.family == "tpu" and op == "gemm" and "per chip" not in words:
        return 1
    return chip.devices


def _groups(row: Mapping[str, str]) -> float:
    match = re.match(r"\d+", _text(row, "batch_or_groups"))
    return float(match[0]) if match else 1.0


def _plain(name: str) -> str:
    """A chip's name without what the source says about the machine around it.

    >>> _plain("NVIDIA A100 (pairwise NVLink)"), _plain("TPU v7x (Ironwood)")
    ('NVIDIA A100', 'TPU v7x')
    """
    return re.sub(r"\s*\([^)]*\)", "", name).strip()


def _text(row: Mapping[str, str], key: str) -> str:
    return (row.get(key) or "").strip()


def _size(row: Mapping[str, str], key: str) -> float:
    value = _number(row, key)
    if value <= 0:
        raise InputError(key, row.get(key, ""), "a number above zero")
    return value


def _number(row: Mapping[str, str], key: str, default: float = 0.0) -> float:
    text = _text(row, key)
    if not text:
        return default
    return parse_count(text, key)
