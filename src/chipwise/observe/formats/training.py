"""How programs that train print their steps, a row each.

Read from what the programs print and from logs that people published, on 2026-11-18: MaxText
src/maxtext/common/metric_logger.py and AI-Hypercomputer/maxtext issues 8, 761, 4847; torchtitan components/metrics.py
and pytorch/torchtitan pull requests 1287, 2389, 3393; Megatron-LM training/training.py, NVIDIA/Megatron-LM issue 756,
NVIDIA-NeMo/Megatron-Bridge pull request 841; DeepSpeed issues 1825 and 3742 and its pipeline engine; NVIDIA-NeMo
issue 7957; nanotron's and nanoGPT's training loops.
"""

from __future__ import annotations

import re

from chipwise.observe.formats.line_format import SHARE, LineFormat, fields, value
from chipwise.observe.numbers import NUMBER

MS = 1e-3

MAXTEXT = LineFormat(
    name="maxtext",
    marks=("completed step:",),  # a profiler's step says `completed profiler activation`: its time is the profiler's
    start=re.compile(r"completed step:"),
    fields=fields(
        ("step", value(r"completed step")),
        ("step_seconds", value(r"\bseconds")),
        ("tflops_per_device", value(r"TFLOP/s/device")),
        ("tflops_per_device", value(r"TFLOP/s")),
        ("tokens_per_s_per_device", value(r"Tokens/s/device")),
        ("loss", value(r"(?<![\w_])loss")),
    ),
    needs=(("step",), ("step_seconds",)),
)

TORCHTITAN = LineFormat(
    name="torchtitan",
    marks=("tps:", "wps:"),
    start=re.compile(r"\bstep:\s*\d"),
    fields=fields(
        ("step", value(r"\bstep")),
        ("loss", value(r"(?<![\w_])(?:global_avg_)?loss")),
        ("tokens_per_s_per_device", value(r"\b[tw]ps")),
        ("tflops_per_device", value(r"\btflops")),
        ("mfu", value(r"\bmfu", r"\s*%"), SHARE),
    ),
    needs=(("step",), ("tokens_per_s_per_device",)),
)

MEGATRON = LineFormat(
    name="megatron",
    marks=("elapsed time per iteration", "elapsed_time_per_iteration"),
    # letters first: a search for what may begin with anything tries every place of a line
    start=re.compile(r"samples/sec:[^|]*\|\s*[iI]teration:?\s+\d|[iI](?<!\w[iI])teration:?\s+\d"),
    fields=fields(
        ("step", value(r"\b[iI]teration")),
        ("step_seconds", value(r"elapsed time per iteration \(ms\)|elapsed_time_per_iteration_ms"), MS),
        ("step_seconds", value(r"elapsed time per iteration \(s\)|elapsed_time_per_iteration_s")),
        ("tflops_per_device", value(r"throughput(?: per GPU)? \((?:MODEL_)?TFLOP/s/GPU\)")),
        ("tflops_per_device", value(r"(?<!hardware_)(?:model_)?tflops_per_gpu|\bTFLOPs|approx flops per GPU")),
        (
            "tokens_per_s_per_device",
            value(
                r"tokens[-_ ]per[-_ ]sec(?:ond)?[-_ ]per[-_ ]gpu|tokens/s(?:ec)?/GPU|tokens per gpu per second \(tgs\)"
            ),
        ),
        ("tokens_per_s", value(r"tokens[-_ ]per[-_ ]sec(?:ond)?(?![-_ ]per)|tokens/s(?:ec)?(?!/)")),
        ("loss", value(r"(?:lm[-_ ]loss|reduced_train_loss)(?: value)?")),
        ("loss", value(r"(?<![\w_-])loss(?! scale)")),
    ),
    needs=(("step",), ("step_seconds",)),
)

NEMO = LineFormat(
    name="nemo",
    marks=("train_step_timing in s", "reduced_train_loss"),
    start=re.compile(r"Training epoch \d|Epoch \d+:"),
    fields=fields(
        ("step", value(r"\bglobal_step")),
        ("step", value(r"\biteration")),
        ("step_seconds", value(r"train_step_timing in s")),
        ("tflops_per_device", value(r"TFLOPS_per_GPU")),
        ("loss", value(r"reduced_train_loss")),
    ),
    needs=(("step",),),
)

DEEPSPEED = LineFormat(
    name="deepspeed",
    marks=("SamplesPerSec=", "skipped=", "iter time (s):"),
    start=re.compile(
        r"\bstep=\d+, skipped=|epoch=\d+/micro_step=|\b\d+/\d+, (?:RunningAvg)?SamplesPerSec=|\bsteps: \d+ loss:"
    ),
    fields=fields(
        ("step", value(r"\bglobal_step|\bsteps|(?<![_\w])step")),
        ("step", r"^\d+/(\d+), "),
        ("step_seconds", value(r"iter time \(s\)")),
        ("loss", value(r"(?<![\w_])loss")),
    ),
    needs=(("step",),),
)

OWN_LOOP = LineFormat(  # of `chipwise.observe.step`
    name="chipwise",
    marks=("chipwise step=",),
    start=re.compile(r"\bchipwise step=\d"),
    fields=fields(
        ("step", value(r"\bstep")),
        ("step_seconds", value(r"\bstep_seconds")),
        ("tokens_per_s", value(r"\btokens_per_s")),
        ("tflops_per_device", value(r"\btflops_per_device")),
        ("mfu", value(r"\bmfu")),
        ("loss", value(r"\bloss")),
    ),
    needs=(("step",),),
)

_STEP = r"(?<![\w./-])(?:global[ _]?step|num_updates|train[ _]step|steps?|iter(?:ation)?)"
_DEVICE = r"(?:gpu|device|chip)"
_PER_S = r"(?:/s(?:ec(?:ond)?)?|[_ ]per[_ ]sec(?:ond)?)"
GENERAL = LineFormat(
    name="steps",
    marks=("step", "Step", "iter", "Iter", "num_updates"),
    general=True,
    start=re.compile(rf"(?i){_STEP}\s*[:=#]?\s*\[?\s*\d"),
    fields=fields(
        ("step", rf"(?i){_STEP}\s*[:=#]?\s*\[?\s*(\d[\d,]*)"),
        (
            "step_seconds",
            rf"(?i)\b(?:dt|(?:step|iter(?:ation)?)[ _]?time|time|step_avg)[ _]?(?:\(ms\))?\s*[:=]?\s*({NUMBER})\s*ms\b",
            MS,
        ),
        ("step_seconds", rf"\|\s*({NUMBER}) ms\b", MS),
        (
            "step_seconds",
            rf"(?i)\b(?:step|iter(?:ation)?)[ _]?time(?: \(s\))?\s*[:=]\s*({NUMBER})\s*(?:s\b|sec|[,|;]|$)",
        ),
        ("step_seconds", rf"(?i)\bdt\s*[:=]\s*({NUMBER})\s*s\b"),
        ("step_seconds", rf"(?i)\b({NUMBER})\s?s(?:ec)?/(?:it|step)\b"),
        ("tokens_per_s_per_device", value(rf"(?i:tok(?:en)?s?{_PER_S}(?:/|[_ ]per[_ ]){_DEVICE}|\btgs)")),
        ("tokens_per_s", value(rf"(?i:(?:throughput/)?tok(?:en)?s?{_PER_S}(?!(?:/|[_ ]per[_ ]){_DEVICE})|\b[wt]ps)")),
        ("tokens_per_s", rf"(?i)({NUMBER}[kKM]?) tok(?:en)?s?/s(?:ec)?\b(?!/)"),
        ("tflops_per_device", value(rf"(?i:\btflops?(?:/s)?(?:/{_DEVICE})?)")),
        ("mfu", rf"(?i)\bmfu\s*[:=]?\s*({NUMBER})\s*%", SHARE),
        ("mfu", rf"(?i)\b({NUMBER})%(?: bf16)? mfu\b", SHARE),
        ("mfu", r"(?i)\bmfu\s*[:=]?\s*(0?\.\d+)\b(?!\s*%)"),
        ("loss", value(r"(?i:(?<![\w_])(?:train[ _/]?)?loss(?: train)?)")),
    ),
    needs=(("step",), ("loss", "step_seconds", "tokens_per_s", "tokens_per_s_per_device", "mfu")),
)

FORMATS = (MAXTEXT, TORCHTITAN, MEGATRON, NEMO, DEEPSPEED, OWN_LOOP, GENERAL)
