"""Files that hold results instead of lines: JSON of benchmarks, Prometheus' text.

Names of series are those of dcgm-exporter, nvidia_gpu_exporter, AMD's device-metrics-exporter, the TPU device plugin of
GKE, and vLLM (their repositories, read 2026-11-16).
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from typing import Any

from chipwise.observe.formats.line_format import Findings
from chipwise.observe.records import ServingWindow

MAX_METRICS = 20_000
_SERIES = re.compile(r"^([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+\d+)?\s*$")
_LABEL = re.compile(r'([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"')
# what DCGM gives for what it can't read: 64 and 32 bits, whole and not (dcgm_structs.h, DCGM_*_BLANK and kin)
BLANKS_32 = range(0x7FFFFFF0, 0x7FFFFFF8)
BLANKS_64 = range(140737488355328, 140737488355336)  # as a float; nothing that is read is so large, nor larger
_BLANK = frozenset([*BLANKS_32, *BLANKS_64, *(float(0x7FFFFFFFFFFFFFF0 + n) for n in range(8))])
_SERVING = {  # as vLLM names them, and without the prefix as NIM does; SGLang's own
    "num_requests_running": "running",
    "num_requests_waiting": "waiting",
    "kv_cache_usage_perc": "kv_cache_usage",
    "gpu_cache_usage_perc": "kv_cache_usage",
    "num_running_reqs": "running",
    "num_queue_reqs": "waiting",
    "token_usage": "kv_cache_usage",
    "gen_throughput": "generation_tokens_per_s",
}


def labels_of(text: str) -> dict[str, str]:
    r"""The labels of a series.

    >>> labels_of('gpu="0",modelName="NVIDIA H100 \\"SXM\\""')["gpu"]
    '0'
    """
    return dict(_LABEL.findall(text))


def readable(amount: float) -> bool:
    """Whether an exporter could read what it tells: neither infinite nor a blank.

    >>> readable(70.0), readable(float("nan")), readable(9223372036854775794.0)
    (True, False, False)
    """
    return math.isfinite(amount) and amount not in _BLANK


class ExpositionReader:
    """A page of Prometheus' metrics. A value that an exporter leaves out or blanks is absent, not zero."""

    name = "prometheus"

    def __init__(self) -> None:
        self.findings = Findings()
        self.typed = 0
        self.series: dict[str, dict[str, float]] = defaultdict(dict)
        self._window: dict[str, Any] = {}

    def read(self, line: str) -> bool:
        """Take a series."""
        if line.startswith(("# TYPE ", "# HELP ")):
            self.typed += 1
            return True
        match = _SERIES.match(line)
        if match is None or not self.typed:
            return False
        try:
            amount = float(match[3])
        except ValueError:
            return False
        if not readable(amount) or len(self.findings.metrics) >= MAX_METRICS:
            return True
        name, labels = match[1], match[2] or ""
        self.series[name][labels] = amount
        self._serve(name, amount)
        return True

    def _serve(self, name: str, amount: float) -> None:
        key = _SERVING.get(name.rpartition(":")[2])
        if key is None:
            return
        if key == "kv_cache_usage":
            self._window[key] = max(amount, self._window.get(key, 0.0))
        else:
            self._window[key] = amount + self._window.get(key, 0.0)  # over the engines of a server

    def end(self) -> None:
        """Name the series: by its labels where a name has several."""
        for name, rows in self.series.items():
            for labels, amount in rows.items():
                self.findings.metrics[name if len(rows) == 1 else f"{name}{{{labels}}}"] = amount
        if self._window:
            self.findings.serving.append(ServingWindow(**self._window))


def document(text: str) -> tuple[str, Findings] | None:
    """The figures of a JSON document of results, by their path, with the kind of document."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    findings = Findings()
    _flatten("", data, findings.metrics)
    return _kind(data), findings


def _kind(data: dict[str, Any]) -> str:
    if "output_throughput" in data and any(key.endswith("ttft_ms") for key in data):
        return "vllm-bench"
    if "scenario" in data and "metrics" in data:
        return "llm-d"
    return "json"


def _flatten(path: str, value: Any, out: dict[str, float]) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            _flatten(f"{path}.{key}" if path else str(key), inner, out)
    elif isinstance(value, int | float) and not isinstance(value, bool) and _bounded(value, out):
        out[path] = float(value)


def _bounded(value: float, out: dict[str, float]) -> bool:
    return math.isfinite(value) and abs(value) < 1e300 and len(out) < MAX_METRICS
