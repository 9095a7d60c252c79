"""Published training measurements: one CSV row into a workload, a layout, a stack and what was observed.

The tables say what they say in words (``fsdp=64 (ICI) x dp=2 (DCN)``, ``AMP (fp16)``); this module reads them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from chipwise.catalog import Chip, Stack, find_chip, find_stack
from chipwise.errors import ChipwiseError, InputError
from chipwise.predict.model.layouts import Layout
from chipwise.predict.site import RELEASE
from chipwise.workload.model import Experts, Latent, Model, Train, Workload
from chipwise.workload.params import count

COLUMNS = frozenset({"id", "accelerator", "chips", "layers", "d_model", "seq_len", "global_batch", "precision"})
NEEDED = ("chips", "layers", "d_model", "heads", "d_ff", "seq_len", "global_batch", "precision")
RATES = ("step_time_s", "tokens_per_s_per_chip", "samples_per_s")
# Beyond these a number is a slip, not a model or a machine
LARGEST = {
    "chips": 1_000_000,
    "layers": 10_000,
    "d_model": 1_000_000,
    "heads": 100_000,
    "seq_len": 100_000_000,
    "global_batch": 100_000_000,
}


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """A published measurement in our terms."""

    id: str
    source: str
    chip: Chip
    chips: int
    stack: Stack | None
    framework: str
    workload: Workload
    layout: Layout | None  # None: not stated, take the best
    auto_recompute: bool  # not stated: the least that fits
    forward_backward_only: bool
    slices: int
    observed_s: float
    group: str  # rows of one (source, model, accelerator)
    release: float  # year of the software, as far as the row tells


def eligible(row: Mapping[str, str]) -> bool:
    """Chips, dims, sequence, global batch, precision and a rate are present."""
    return all(row.get(k, "").strip() for k in NEEDED) and any(row.get(k, "").strip() for k in RATES)


def precision_of(text: str) -> str:
    """The precision a published table means.

    >>> precision_of("AMP (fp16)+XLA"), precision_of("MXFP8"), precision_of("float8 linear + bf16")
    ('fp16', 'fp8', 'fp8')
    >>> precision_of("fp32 (TF32 disabled)"), precision_of("NVFP4")
    ('fp32', 'fp4')
    """
    t = text.lower()
    head = t.split("(")[0]
    for word, name in (
        ("fp4", "fp4"),
        ("fp8", "fp8"),
        ("float8", "fp8"),
        ("int8", "int8"),
        ("bf16", "bf16"),
        ("fp16", "fp16"),
        ("float16", "fp16"),
        ("fp32", "fp32"),
        ("tf32", "tf32"),
    ):
        if word in head:
            return name
    if "fp16" in t or "amp" in t or "mixed" in t:
        return "fp16"
    raise InputError("precision", text, "a text naming fp32, tf32, bf16, fp16, fp8, int8 or fp4")


def _number(row: Mapping[str, str], key: str, default: float = 0.0) -> float:
    text = row.get(key, "").strip().split(" ")[0]
    if not text:
        return default
    scale = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}.get(text[-1].upper(), 0.0)
    try:
        value = float(text[:-1]) * scale if scale else float(text)
    except ValueError:
        raise InputError(key, row.get(key, ""), "a number") from None
    if not 0 <= value < 1e30:
        raise InputError(key, row.get(key, ""), "a finite number that isn't negative")
    return value


def _positive(row: Mapping[str, str], key: str) -> int:
    value = _number(row, key)
    if not 1 <= value <= LARGEST[key]:
        raise InputError(key, row.get(key, ""), f"a whole number from 1 to {LARGEST[key]:,}")
    return int(value)


_PLAIN = re.compile(
    r"gpt[ -]?(2|3|l\d|\d)|\bmpt|bert|opt[_ -]|gpt2|gpt3|maxtext gpt|falcon|bloom|pythia|"
    r"megatron",
    re.I,
)
_PLAIN_ARCH = re.compile(r"relu|2 matmuls|d_ff ?= ?4", re.I)
_MLA = re.compile(r"deepseek|kimi", re.I)


def model_of(row: Mapping[str, str]) -> Model:
    """The model of a row: its dimensions, and what its name says of the architecture."""
    name, arch = row["model"].strip(), row.get("arch_source", "")
    d, layers, heads = (_positive(row, key) for key in ("d_model", "layers", "heads"))
    encoder = "bert" in name.lower()
    old = bool(_PLAIN.search(name) or _PLAIN_ARCH.search(arch)) and "oss" not in name.lower()
    maxtext = "maxtext gpt" in name.lower()  # its own decoder: one RMSNorm a layer, no biases, no positions
    experts = _experts(row, name, layers)
    latent = None
    if _MLA.search(name):
        latent = Latent(0 if re.search(r"2-16b|lite", name, re.I) else 1536, 512, 128, 64, 128)
    vocab = int(_number(row, "vocab", 51200))
    kv_heads = int(_number(row, "kv_heads", heads)) or heads
    if kv_heads > heads:
        raise InputError("kv_heads", kv_heads, f"at most the row's {heads} heads")
    m = Model(
        name=name,
        family="encoder" if encoder else "decoder",
        layers=layers,
        d_model=d,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=int(_number(row, "head_dim")) or d // heads,
        d_ff=_dense_ff(row, name),
        vocab=vocab,
        gated=not old,
        bias=old and not maxtext,
        norm_params=2 if old and not maxtext else 1,
        causal=not encoder,
        tied=old or bool(re.search(r"gemma", name, re.I)),
        learned_positions=int(_number(row, "seq_len")) if old and not maxtext else 0,
        parallel_block=maxtext,
        norms_per_layer=1 if maxtext else 2,
        pooler=encoder,
        token_types=2 if encoder else 0,
        experts=experts,
        latent=latent,
        mtp_layers=1 if "mtp" in name.lower() else 0,
        window=_window(name),
        global_every=_global_every(name),
    )
    stated = _number(row, "params")
    if stated and not old and experts is None and not encoder:  # the count tells gated from plain
        plain = replace(m, gated=False)
        if abs(count(plain).total / stated - 1) < abs(count(m).total / stated - 1):
            return plain
    return m


def _experts(row: Mapping[str, str], name: str, layers: int) -> Experts | None:
    n = int(_number(row, "experts"))
    if n < 2:
        return None
    width = int(_number(row, "d_ff"))
    low = name.lower()
    shared, first, every = 0, 0, 1
    if "kimi" in low:
        shared, first = width, 1
    elif re.search(r"deepseek2|v2-lite|deepseek-v2", low):
        shared, first = 2 * width, 1
    elif "deepseek" in low:
        shared, first = width, 3
    elif "llama4" in low or "llama-4" in low:
        shared, every = width, 2 if "maverick" in low else 1
    elif "gemma4" in low or "gemma-4" in low:
        shared = 3 * width
    elif "nemotron" in low:
        shared = 2 * width
    active = int(_number(row, "experts_per_token", 1)) or 1
    if active > n:
        raise InputError("experts_per_token", active, f"at most the row's {n} experts")
    return Experts(n, active, width, shared, min(first, layers), every)


def _dense_ff(row: Mapping[str, str], name: str) -> int:
    """Width of the dense layers: a MoE row gives the expert's width, so the model's own is filled in."""
    width = int(_number(row, "d_ff"))
    low = name.lower()
    if not row.get("experts", "").strip():
        return width
    if "kimi" in low or ("deepseek" in low and not re.search(r"2-16b|lite", low)):
        return 18432  # DeepSeek-V3 and Kimi-K2 config.json: intermediate_size
    if "deepseek" in low:
        return 10944  # DeepSeek-V2-Lite config.json
    return width


def _window(name: str) -> int:
    low = name.lower()
    if "gpt-oss" in low or "gpt oss" in low:
        return 128  # openai/gpt-oss config.json: sliding_window
    if re.search(r"gemma-?[34]", low):
        return 512 if re.search(r"-(1|2|4)b", low) else 1024  # Gemma 3 report, table 1
    return 0


def _global_every(name: str) -> int:
    low = name.lower()
    if "gpt-oss" in low or "gpt oss" in low:
        return 2
    return 6 if re.search(r"gemma-?[34]", low) else 1


_AXIS = re.compile(r"([A-Za-z_*()]+) ?= ?(-?\d+)")
_AXIS_NAMES = {
    "fsdp": "fsdp",
    "fsdp_transpose": "fsdp",
    "ici_fsdp_parallelism": "fsdp",
    "dp": "dp",
    "ici_fsdp_transpose_parallelism": "fsdp",
    "ici_data_parallelism": "dp",
    "dcn_data_parallelism": "dp",
    "dcn_fsdp_parallelism": "fsdp",
    "ici_tensor_parallelism": "tp",
    "tp": "tp",
    "pp": "pp",
    "cp": "cp",
    "ep": "ep",
    "ici_expert_parallelism": "ep",
    "vp": "vpp",
    "vpp": "vpp",
    "sp": "sp",
    "ici_context_parallelism": "cp",
    "dcn_pipeline_parallelism": "pp",
}


def _axes(text: str) -> dict[str, int]:
    """Axis sizes in a free text; an axis named twice (inside and across slices) multiplies."""
    out: dict[str, int] = {}
    for name, number in _AXIS.findall(text):
        axis = _AXIS_NAMES.get(name.lower())
        if axis:
            value = int(number)
            out[axis] = -1 if value < 0 or out.get(axis, 1) < 0 else out.get(axis, 1) * max(value, 0)
    return out


def layout_of(row: Mapping[str, str], chip: Chip, stack: Stack | None) -> Layout | None:
    """The layout a row states, or None when it states none that multiplies to its chips."""
    text = row.get("parallelism", "").strip()
    chips, batch = _positive(row, "chips"), _positive(row, "global_batch")
    if not text and chips > 1:
        return None
    if text.startswith("model-parallel") or "without CP" in text:
        return None
    axes = _axes(text)
    tp, pp, cp = (max(axes.get(a, 1), 1) for a in ("tp", "pp", "cp"))
    if chips % (tp * pp * cp):
        return None
    dp = chips // (tp * pp * cp)
    fsdp = axes.get("fsdp", 0)
    if fsdp < 0:
        fsdp = dp // max(axes.get("dp", 1), 1)
    zero, shard = _sharding(text, fsdp, dp, stack)
    ep = max(axes.get("ep", 1), 1)
    if "ep" in axes and fsdp and fsdp * ep == dp and zero == 3:
        shard = dp  # MaxText: the expert axis shards the dense weights as well
    if dp % shard:
        shard = dp
    mbs = _number(row, "micro_batch") * (chip.devices if chip.family == "tpu" and chip.devices > 1 else 1)
    per_replica = batch / dp
    is_titan = stack is not None and stack.id == "torchtitan"
    if not mbs or mbs > per_replica or (pp > 1 and is_titan):
        mbs = 1.0 if pp > 1 or per_replica < 1 else min(per_replica, 1.0) if zero != 3 else per_replica
    if per_replica < 1:  # a sequence spans replicas (small batches on many chips): context parallel in effect
        mbs = per_replica
    if (dp * cp) % ep:  # expert groups may reach over the tensor axis: what fits in dp x cp is kept
        ep = max(d for d in range(1, dp * cp + 1) if (dp * cp) % d == 0 and d <= ep)
    remat, stated = recompute_of(row.get("remat", ""))
    return Layout(
        dp, tp, pp, cp, ep, max(axes.get("vpp", 1), 1) if pp > 1 else 1, mbs, zero, shard, remat if stated else "none"
    )


def _sharding(text: str, fsdp: int, dp: int, stack: Stack | None) -> tuple[int, int]:
    low = text.lower()
    if "full_shard" in low or "zero-3" in low or low == "fsdp":
        return 3, dp
    if "shard_grad_op" in low or "zero-2" in low:
        return 2, dp
    if fsdp > 1:
        return 3, min(fsdp, dp)
    if stack is not None and stack.id == "megatron":
        return 1, dp  # Megatron-Core's distributed optimizer
    return 0, 1


def recompute_of(text: str) -> tuple[str, bool]:
    """The recomputation a row states, and whether it states any.

    >>> recompute_of("activation checkpointing=False; cpu_offload=False"), recompute_of("")
    (('none', True), ('none', False))
    >>> recompute_of("activation checkpointing=True; cpu_offload=False")
    ('full', True)
    """
    low = text.lower()
    if not low:
        return "none", False
    if "checkpointing=true" in low:
        return "full", True
    if "checkpointing=false" in low or low == "none":
        return "none", True
    if "offload" in low and "cpu_offload=false" not in low:
        return "offload", True  # what is named goes to the host, the rest is computed again
    if "save_dot" in low or "minimal" in low or "selective" in low:
        return "selective", True
    if "full" in low or "custom" in low or "checkpointing on" in low or "device" in low:
        return "full", True
    return "selective", True


# When sources that name no release measured: by the dates of their tables, papers or revisions
PUBLISHED = {
    "VIA-Research/vTrain": 2022.5,
    "mosaicml/llm-foundry": 2023.4,
    "NVIDIA/DeepLearningExamples": 2021.8,
    "sitar-lab/NeuSight": 2023.8,
    "calculon-ai/calculon": 2022.4,
    "AI-Hypercomputer/maxtext": 2023.9,
    "AI-Hypercomputer/tpu-recipes": 2025.5,
    "AI-Hypercomputer/gpu-recipes": 2025.2,
    "NVIDIA/Megatron-LM": 2024.6,
    "stas00/ml-engineering": 2026.3,
}
# MLPerf training rounds by the month of publication (mlcommons.org)
_ROUNDS = {
    "0.7": 2020.6,
    "1.0": 2021.5,
    "3.0": 2023.5,
    "3.1": 2023.85,
    "4.0": 2024.45,
    "4.1": 2024.85,
    "5.0": 2025.4,
    "5.1": 2025.85,
}
_RELEASE = re.compile(
    r"(?:container|release|nemo|pytorch|nvidia) (2\d)\.(\d\d)"
    r"|(20\d\d)-?(0[1-9]|1[0-2])[_./ ]|\((20\d\d)\)",
    re.I,
)


def release_of(text: str) -> float:
    """The year a software release names, 0 where it names none.

    >>> round(release_of("Megatron-Bridge, NeMo container 26.04.01"), 2), release_of("MaxText (JAX)")
    (2026.25, 0.0)
    """
    m = _RELEASE.search(text)
    if not m:
        mlperf = re.search(r"training_results_v(\d\.\d)", text)
        return _ROUNDS.get(mlperf.group(1), 0.0) if mlperf else 0.0
    if m.group(1):
        return 2000 + int(m.group(1)) + (int(m.group(2)) - 1) / 12
    if m.group(3):
        return int(m.group(3)) + (int(m.group(4)) - 1) / 12
    return float(m.group(5)) + 0.5


def observed_seconds(row: Mapping[str, str]) -> float:
    """Seconds of one step, from whichever rate the row gives."""
    step = _number(row, "step_time_s")
    if step > 0:
        return step
    batch, seq, chips = (_number(row, k) for k in ("global_batch", "seq_len", "chips"))
    rate = _number(row, "tokens_per_s_per_chip")
    if rate > 0:
        return batch * seq / (rate * chips)
    samples = _number(row, "samples_per_s")
    if samples > 0:
        return batch / samples
    raise InputError("step_time_s", "", "a rate above zero")


def read(row: Mapping[str, str]) -> TrainingRow:
    """One row in our terms; raises `ChipwiseError` where it can't be understood."""
    chip = find_chip(row["accelerator"])
    framework = row.get("framework", "")
    stack = find_stack(framework)
    model = model_of(row)
    words = (row.get("workload", "") + " " + row.get("model", "")).lower()
    lora = "lora" in words
    train = Train(
        global_batch=_positive(row, "global_batch"),
        sequence=_positive(row, "seq_len"),
        steps=1,
        precision=precision_of(row["precision"]),
        lora_rank=16 if lora else 0,
        state_precision="bf16" if "weight_dtype bfloat16" in row.get("notes", "") else "fp32",
    )
    layout = layout_of(row, chip, stack)
    _, stated = recompute_of(row.get("remat", ""))
    chips = _positive(row, "chips")
    release = release_of(framework + " " + row.get("source_path", "") + " " + row.get("source_repo", ""))
    if not release:
        release = PUBLISHED.get(row.get("source_repo", ""), stack.release if stack else RELEASE)
    slices = 1
    dcn = re.search(r"dp=(\d+) \(DCN\)", row.get("parallelism", ""))
    if dcn:
        slices = int(dcn.group(1))
    return TrainingRow(
        id=row["id"],
        source=row.get("source_repo", ""),
        chip=chip,
        chips=chips,
        stack=stack,
        framework=framework,
        workload=Workload(row["id"], model, train),
        layout=layout,
        auto_recompute=not stated,
        forward_backward_only="no optimizer" in words,
        slices=slices,
        observed_s=observed_seconds(row),
        group="|".join((row.get("source_repo", ""), row["model"], chip.id)),
        release=release,
    )


def try_read(row: Mapping[str, str]) -> TrainingRow | str:
    """The row, or the reason it can't be read."""
    try:
        return read(row)
    except ChipwiseError as e:
        return str(e)
