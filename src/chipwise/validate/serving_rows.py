"""Published inference measurements: one CSV row into a model, chips, a split, a load and what was observed.

Two kinds of tables are read: rows of inference results (``scenario`` says what was run), and rows of closed-loop
serving runs (``concurrency`` requests at any time, time to first token and per token).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from chipwise.catalog import Chip, Stack, find_chip, find_stack
from chipwise.errors import ChipwiseError, InputError
from chipwise.serving.split import Split
from chipwise.validate.cells import has, number, some
from chipwise.validate.protocol import DRAWN, DRIFTED, NOMINAL, ROUNDS, protocol_of
from chipwise.validate.training_rows import model_of
from chipwise.workload.model import Experts, Latent, Model
from chipwise.workload.presets import preset

INFERENCE = frozenset({"id", "accelerator", "scenario", "model", "precision", "input_len", "output_len"})
CLOSED = frozenset({"id", "system", "model", "framework", "mode", "isl", "osl", "concurrency", "ttft_ms", "tpot_ms"})
PROTOCOL = frozenset({"num_prompts", "range_ratio", "arrival"})
DIMENSIONS = ("layers", "d_model", "heads", "d_ff")
RATES = ("output_tokens_per_s_total", "ttft_ms", "tpot_ms")

# Mean tokens of JetStream's ShareGPT requests of at most 1,024 tokens each way, where a row gives the limits alone
# (AI-Hypercomputer/JetStream experimental/jax/README.md, 2024-08: totals over 1,000 requests)
SHAREGPT = (218.7, 291.7)
NAMESAKE = ("layers", "d_model", "heads")  # what a row and the preset of its name must have in common
QUEUED = 1.0  # a first token that takes longer than the whole answer is a queue before a server that is full


@dataclass(frozen=True, slots=True)
class ServingRow:
    """A published measurement in our terms."""

    id: str
    source: str
    group: str  # rows of one campaign: source, model, chip, stack and precision
    mode: str  # "fixed_batch" or "scheduled"
    load: str  # "batch" (all at once, one answer), "closed" (users), "open" or "offline" (requests as fast as it goes)
    chip: Chip
    chips: int
    split: Split
    stack: Stack | None
    release: float
    model: Model
    precision: str
    kv_precision: str
    batch: float  # sequences at once, users or requests
    slots: int  # most sequences at once; 0: the stack's own limit
    input: float
    output: float
    drawn: float  # lengths vary between 1 - drawn and 1 of the nominal
    rounds: int  # requests of each user
    warm: bool  # the first of them aren't counted
    longest: float  # tokens of the longest request
    observed: Mapping[str, float]  # metric -> s, or tokens/s
    requests: float = 0.0  # of the whole run, where it is known

    @property
    def replicas(self) -> int:
        """Replicas that share the chips."""
        return max(1, self.chips // self.split.chips)


_ROUND = re.compile(r"^[^/]+/inference_results_v[\d.]+$")


def repository_of(source: str) -> str:
    """Who published a source: campaigns are of one repository, and all rounds of MLPerf have the same rules.

    >>> repository_of("mlcommons/inference_results_v4.1"), repository_of(f"{CLOSED_SOURCE}: a model in fp8")
    ('mlcommons/inference_results', 'ai-dynamo/aiconfigurator')
    """
    return "mlcommons/inference_results" if _ROUND.match(source) else source.partition(": ")[0]


def kind_of(row: Mapping[str, str]) -> str:
    """Which of the two tables a row is of."""
    return "closed" if "concurrency" in row and "isl" in row else "inference"


def why_not(row: Mapping[str, str]) -> str:
    """Why a row is not eligible; "" where it is."""
    return _closed_gap(row) if kind_of(row) == "closed" else _inference_gap(row)


def _inference_gap(row: Mapping[str, str]) -> str:
    scenario = row.get("scenario", "").lower()
    if "disagg" in scenario or "disagg" in row.get("parallelism", "").lower():
        return "disaggregated"
    if "speculative" in scenario:
        return "speculative decoding"
    gaps = [key for key in (*DIMENSIONS, "precision", "input_len") if not has(row, key)]
    single = "first-token" in scenario or "single forward" in scenario
    if not single and not has(row, "output_len"):
        gaps.append("output_len")
    if not any(has(row, key) for key in RATES):
        gaps.append("a rate")
    if ("static" in scenario or single) and not has(row, "batch_size"):
        gaps.append("batch_size")
    return "no " + ", ".join(gaps) if gaps else _queue(row, "output_len")


def _closed_gap(row: Mapping[str, str]) -> str:
    if row.get("mode", "").strip() != "agg":
        return "disaggregated"
    if "do not use" in row.get("notes", "").lower():
        return "marked as not to be used"
    needed = ("vocab", "isl", "osl", "concurrency", "tp", "ttft_ms", "tpot_ms", "precision")
    gaps = [key for key in (*DIMENSIONS[:3], *needed) if not has(row, key)]
    if not has(row, "d_ff") and not has(row, "moe_d_ff"):
        gaps.append("d_ff")
    return "no " + ", ".join(gaps) if gaps else _queue(row, "osl")


def _queue(row: Mapping[str, str], output: str) -> str:
    """A first token later than the whole answer took: requests waited for a server that was full."""
    if not (has(row, "ttft_ms") and has(row, "tpot_ms") and has(row, output)):
        return ""
    answer = number(row, output) * number(row, "tpot_ms")
    return "queueing above capacity" if number(row, "ttft_ms") > QUEUED * answer else ""


def eligible(row: Mapping[str, str]) -> bool:
    """Dimensions, lengths, load, precision and a rate are present."""
    return not why_not(row)


def precision_of(text: str) -> str:
    """The precision of weights that a published table means.

    >>> precision_of("FP8"), precision_of("int8 weights"), precision_of("NVFP4"), precision_of("bfloat16")
    ('fp8', 'int8w', 'fp4', 'bf16')
    """
    t = text.lower()
    if "int8" in t:
        return "int8w" if "weight" in t else "int8"
    for word, name in (
        ("fp4", "fp4"),
        ("int4", "int4"),
        ("fp8", "fp8"),
        ("float8", "fp8"),
        ("bf16", "bf16"),
        ("bfloat16", "bf16"),
        ("fp16", "fp16"),
        ("float16", "fp16"),
        ("fp32", "fp32"),
    ):
        if word in t:
            return name
    raise InputError("precision", text, "a text naming fp32, bf16, fp16, fp8, int8, int4 or fp4")


def _kv(text: str, precision: str) -> str:
    """The cache's precision; where a row says nothing, 8 bits beside 8- and 4-bit floats, else 16."""
    if text.strip():
        cache_precision = precision_of(text)
        return "int8" if cache_precision in ("int8", "int8w") else cache_precision
    if precision in ("fp8", "fp4"):
        return "fp8"
    return precision if precision in ("fp16", "fp32") else "bf16"


def read(row: Mapping[str, str]) -> ServingRow:
    """One eligible row."""
    return _read_closed(row) if kind_of(row) == "closed" else _read_inference(row)


@cache
def _preset(name: str) -> Model | None:
    try:
        return preset(name)
    except ChipwiseError:
        return None


def _inference_model(row: Mapping[str, str]) -> Model:
    """The preset that a row's name means, where it has the row's dimensions; else a model of them."""
    model, known = model_of(row), _preset(row["model"].strip())
    same = known is not None and all(getattr(known, name) == getattr(model, name) for name in NAMESAKE)
    return replace(known, name=model.name) if known is not None and same else model


def _axis(text: str, *names: str) -> int:
    for name in names:
        match = re.search(rf"\b{name} ?= ?(\d+)", text)
        if match:
            return max(int(match[1]), 1)
    return 1


def _split(row: Mapping[str, str], model: Model, chips: int) -> Split:
    text = row.get("parallelism", "").lower()
    tp, pp = _axis(text, "tp"), _axis(text, "pp")
    dp, ep = _axis(text, "attention_dp", "attn_dp"), _axis(text, "moe_ep", "ep")
    if chips % (tp * pp * dp):
        raise InputError("parallelism", row.get("parallelism", ""), f"sizes whose product divides chips({chips})")
    return Split(tp, pp, dp, ep if model.experts and (tp * dp) % ep == 0 else 1)


def _read_inference(row: Mapping[str, str]) -> ServingRow:
    chip = find_chip(re.sub(r"\s*\(CTS.*", "", row["accelerator"]))
    stack = find_stack(row.get("framework", ""), "serve")
    model = _inference_model(row)
    chips = int(number(row, "chips", 1)) or 1
    split = _split(row, model, chips)
    precision = precision_of(row["precision"])
    scenario = row["scenario"].lower()
    single = "first-token" in scenario or "single forward" in scenario
    fixed = single or "static" in scenario
    maxima = "<" in row["input_len"]
    length = SHAREGPT[0] if maxima else some(row, "input_len")
    answer = 1.0 if single else SHAREGPT[1] if maxima else some(row, "output_len")
    longest = number(row, "input_len") + number(row, "output_len")
    protocol = protocol_of(row, length, answer, fixed)
    length, answer = (value * protocol.nominal if value > 1 else value for value in (length, answer))
    # beside a time per token, the throughput of a closed loop is derived from it
    derived = protocol.load in ("closed", "open") and has(row, "tpot_ms")
    total = 0.0 if derived else number(row, "output_tokens_per_s_total")
    metrics = (("throughput", total), ("ttft", number(row, "ttft_ms") / 1e3), ("tpot", number(row, "tpot_ms") / 1e3))
    observed = {name: value for name, value in metrics if value > 0}
    source = row.get("source_repo", "")
    return ServingRow(
        row.get("id", ""),
        source,
        f"{source}|{row['model']}|{chip.id}|{row.get('framework', '')}|{precision}",
        "fixed_batch" if fixed else "scheduled",
        protocol.load,
        chip,
        chips,
        split,
        stack,
        _released(row, stack),
        model,
        precision,
        _kv(row.get("kv_cache_precision", ""), precision),
        protocol.batch,
        protocol.slots,
        length,
        answer,
        protocol.drawn,
        protocol.rounds,
        protocol.warm,
        longest,
        observed,
        protocol.requests,
    )


# aiconfigurator's names of systems; b60 has no catalog entry
SYSTEMS = {
    "a100_sxm": "a100-80gb",
    "h100_sxm": "h100",
    "h200_sxm": "h200",
    "b200_sxm": "b200",
    "b300_sxm": "b300",
    "gb200": "gb200",
    "gb300": "gb300",
    "l40s": "l40s",
    "rtx_pro_6000_server": "rtx-pro-6000",
}
CLOSED_SOURCE = "ai-dynamo/aiconfigurator"
# State of a linear-attention layer, in tokens of its cache: Qwen3-Next and Qwen3.5 keep 32 x 128 x 128 numbers in
# fp32, read and written each step, beside 2 x 2 x 256 of a token in 16 bits (their config.json, 2025-2026)
LINEAR_STATE = 2048
PICKED = 2048  # tokens that sparse attention picks (DeepSeek-V3.2 and GLM-5 config.json: index_topk)


def _closed_model(row: Mapping[str, str]) -> Model:
    attention = row.get("attention", "").lower()
    heads, d = int(some(row, "heads")), int(some(row, "d_model"))
    experts = None
    count = int(number(row, "experts"))
    if count > 1:
        experts = Experts(
            count,
            int(some(row, "experts_per_token")),
            int(some(row, "moe_d_ff")),
            int(number(row, "shared_expert_d_ff")),
            int(number(row, "first_dense_layers")),
        )
    head = int(number(row, "head_dim")) or d // heads
    latent, window, every, mixer = None, 0, 1, "window"
    if "mla" in attention:
        value = int(number(row, "v_head_dim")) or 128
        latent = Latent(1536, int(number(row, "kv_lora_rank")) or 512, head - 64 if head > 64 else 128, 64, value)
    if "sparse" in attention:
        window, every, mixer = PICKED, 0, "sparse"
    elif "hybrid" in attention:
        match = re.search(r"every (\d+) layers", attention)
        window, every, mixer = LINEAR_STATE, int(match[1]) if match else 4, "linear"
    elif "sliding" in attention:
        match = re.search(r"window (\d+)", attention)
        window, every = int(match[1]) if match else 128, 2
    return Model(
        row["model"],
        "decoder",
        int(some(row, "layers")),
        d,
        heads,
        int(number(row, "kv_heads")) or heads,
        head,
        int(number(row, "d_ff")) or int(number(row, "moe_d_ff")),
        int(some(row, "vocab")),
        experts=experts,
        latent=latent,
        window=window,
        global_every=every,
        mixer=mixer,
    )


def _read_closed(row: Mapping[str, str]) -> ServingRow:
    chip = find_chip(SYSTEMS.get(row["system"], row["system"]))
    stack = find_stack(row["framework"], "serve")
    model = _closed_model(row)
    tp, pp, dp = (int(number(row, key, 1)) or 1 for key in ("tp", "pp", "attn_dp"))
    ep = int(number(row, "moe_ep", 1)) or 1
    split = Split(tp, pp, dp, ep if model.experts and (tp * dp) % ep == 0 else 1)
    precision = precision_of(row["precision"])
    length, answer = some(row, "isl"), some(row, "osl")
    # one database was published in several files that share runs: what stands apart in it is a campaign
    source = f"{CLOSED_SOURCE}: {row['model']} in {precision} on {row['system']} by {row['framework']}"
    nominal = {length, answer} <= set(NOMINAL)
    release = version_date(row["framework"], row.get("version", ""), row.get("measured", ""))
    return ServingRow(
        row.get("id", ""),
        source,
        f"{row['model']}|{chip.id}|{row['framework']}|{precision}",
        "scheduled",
        "closed",
        chip,
        split.chips,
        split,
        stack,
        release,
        model,
        precision,
        _kv("", precision),
        _users(row, dp),
        0,
        length,
        answer,
        DRAWN if nominal else DRIFTED,
        ROUNDS,
        not nominal,
        length + answer,
        {"ttft": some(row, "ttft_ms") / 1e3, "tpot": some(row, "tpot_ms") / 1e3},
    )


def _users(row: Mapping[str, str], dp: int) -> float:
    """Requests at one replica: several share the load where a row says that fewer are at each of its ranks."""
    users = some(row, "concurrency")
    return min(users, number(row, "batch_per_dp_rank", users) * dp) or users


def version_date(framework: str, version: str, measured: str = "") -> float:
    """The year of a release; where the version doesn't tell, when it was measured.

    >>> version_date("vllm", "0.19.0"), version_date("sglang", "", "2026-01-01")
    (2026.28, 2026.0)
    """
    stack = find_stack(framework, "serve")
    releases = stack.releases.values if stack else {}
    matches = [name for name in releases if version.startswith(name)]
    if matches:
        return releases[max(matches, key=len)]
    month = re.search(r"(20\d\d)-(\d\d)", measured)
    return int(month[1]) + (int(month[2]) - 1) / 12 if month else 2026.0


def _released(row: Mapping[str, str], stack: Stack | None) -> float:
    text = row.get("framework", "")
    match = re.search(r"v?(\d+\.\d+(?:\.\w+)*)", text)
    dated = re.search(r"20\d\d-\d\d", text + " " + row.get("notes", ""))
    return version_date(text, match[1] if match else "", dated[0] if dated else "")
