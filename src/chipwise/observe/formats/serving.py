"""How servers print what they do.

Read from what the programs print and from published logs, on 2026-11-18: vLLM's loggers (vllm-project/vllm issues 2595,
12314, 19680, 43295), SGLang's scheduler (sgl-project/sglang pull requests 13023, 22166, 22331, 30047), TensorRT-LLM's
executors (NVIDIA/TensorRT-LLM pull requests 14206 and 14734, triton-inference-server/tensorrtllm_backend issue 217).
"""

from __future__ import annotations

import re

from chipwise.observe.formats.line_format import SHARE, LineFormat, fields, value

VLLM = LineFormat(
    name="vllm",
    marks=("Avg generation throughput", "Avg prompt throughput"),
    serving=True,
    start=re.compile(r"Avg prompt throughput:"),
    engine=re.compile(r"(?:\(([\w:.-]+ pid=\d+)[^)]*\)[^()]*)?\bEngine (\d+):"),
    fields=fields(
        ("prompt_tokens_per_s", value(r"Avg prompt throughput")),
        ("generation_tokens_per_s", value(r"Avg generation throughput")),
        ("running", value(r"\bRunning")),
        ("waiting", value(r"\bWaiting|\bPending")),
        ("kv_cache_usage", value(r"(?:GPU|HPU|TPU|CPU|NPU|XPU)? ?KV cache usage", r"\s*%"), SHARE),
    ),
    needs=(("prompt_tokens_per_s",), ("generation_tokens_per_s",)),
)

SGLANG = LineFormat(
    name="sglang",
    marks=("Decode batch", "Prefill batch"),
    serving=True,
    start=re.compile(r"(?:Decode|Prefill) batch"),
    engine=re.compile(r"\b(DP\d+)\b"),
    fields=fields(
        ("running", value(r"#running-req")),
        ("waiting", value(r"#queue-req")),
        ("kv_cache_usage", value(r"full token usage")),
        ("kv_cache_usage", value(r"(?<!swa )token usage")),
        ("generation_tokens_per_s", value(r"gen throughput \(token/s\)")),
        ("prompt_tokens_per_s", value(r"input throughput \(token/s\)")),
    ),
    needs=(("running",),),
)

TENSORRT_LLM = LineFormat(
    name="tensorrt-llm",
    marks=("num_scheduled_requests", "Active Request Count"),
    serving=True,
    start=re.compile(r"\biter = \d|\{\"Active Request Count\""),
    fields=fields(
        ("running", value(r"num_scheduled_requests|\"Scheduled Requests\"")),
        ("kv_cache_usage", value(r"kv_cache_util", r"\s*%"), SHARE),
        ("kv_cache_usage", value(r"kv_cache_util")),
    ),
    needs=(("running",),),
)

FORMATS = (VLLM, SGLANG, TENSORRT_LLM)
