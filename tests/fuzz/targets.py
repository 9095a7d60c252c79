"""Everything that reads what others write: files of users, answers of backends, files of attempts."""

from __future__ import annotations

import gzip
import json
import math
import os
import shutil
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from harness import Target

from chipwise.bench.file import read as read_bench
from chipwise.bench.file import text as bench_text
from chipwise.catalog import bench_files, load
from chipwise.catalog.chip_file import chip_like, own_offer, read_chip_file
from chipwise.catalog.files import forget
from chipwise.compare.diff import document as decision
from chipwise.compiled.hlo.parser import parse
from chipwise.cost.migration_check import read_check
from chipwise.errors import ChipwiseError
from chipwise.fleet.demand import read_demand
from chipwise.io.endpoint import read_token
from chipwise.prices.custom_prices import read_custom_prices
from chipwise.prices.focus_import import read_focus
from chipwise.prices.skypilot import read_skypilot
from chipwise.prices.stored import read_stored, stored_file, stored_text
from chipwise.route.audit_view import _read_heads as read_heads
from chipwise.route.backend import AttemptStatus
from chipwise.route.backends.kubernetes import read as kubernetes
from chipwise.route.backends.kubernetes.api import Cluster
from chipwise.route.backends.local.underway import Underway
from chipwise.route.backends.ray import backend as ray
from chipwise.route.backends.slurm import read as slurm
from chipwise.route.launch import Claim, claim_of, end_of, progress_of
from chipwise.route.load import load_jobs
from chipwise.route.load.pools import load_pools
from chipwise.route.pool import Pool
from chipwise.route.simulate.gavel_trace import read_gavel_trace
from chipwise.route.simulate.trace import _listed as listed_jobs  # without predictions, which take seconds
from chipwise.route.simulate.trace import read_trace as read_jobs_trace
from chipwise.service.admission import _jobs as sent_jobs
from chipwise.validate.bench_rows import point_of
from chipwise.validate.score import FLAT, read_rows, reader_of
from chipwise.verbs.observe import read_log
from chipwise.workload import load_serving, load_workload
from chipwise.workload.hf import from_hf_config
from chipwise.workload.hf_cache import cached_config
from chipwise.workload.params import count
from chipwise.workload.presets import preset
from chipwise.workload.trace import read_trace

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
TODAY = date(2026, 11, 16)
POOL = Pool("p", "kubernetes", "h100", "gpu", 64, 8)
RAY_POOL = Pool("r", "ray", "h100", "gpu", 64, 8)
CONFIGS = [
    {"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
     "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 131072, "torch_dtype": "bfloat16"},
    {"model_type": "qwen3_moe", "num_hidden_layers": 48, "hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 4,
     "intermediate_size": 6144, "vocab_size": 151936, "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768,
     "mlp_only_layers": [], "decoder_sparse_step": 1, "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}},
    {"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "num_hidden_layers": 34, "hidden_size": 2560,
     "intermediate_size": 10240, "sliding_window": 1024, "layer_types": ["full_attention", "sliding_attention"]}},
    {"model_type": "mpt", "n_layers": 2, "d_model": 64, "n_heads": 4, "vocab_size": 99, "max_seq_len": 64, "attn_config": {"alibi": True}},
    {"model_type": "vit", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128, "id2label": {"0": "a"}},
]  # fmt: skip
CENSUS = {
    "actors": [{"attempt": "u-1-1", "id": "a1", "state": "ALIVE", "died": "", "ended": 0.0}, {"attempt": "u-2-1", "id": "a2", "state": "DEAD", "died": "ray.kill", "ended": 9.0}],
    "records": {"u-1-1": {"id": "a1", "state": "running", "started": 5.0, "where": ["n1"]}, "u-3-1": {"id": "a3", "state": "succeeded", "exit_code": 0, "started": 1.0, "ended": 2.0, "reason": "x"}},
    "asked": ["u-2-1"],
}  # fmt: skip
NODES = [{"id": "n1", "alive": True, "labels": {"a": "b"}, "total": {"GPU": 8.0}, "free": {"GPU": 4.0}}]
OBJECTS = {
    "item": {"metadata": {"name": "j", "labels": {"chipwise.dev/attempt": "u-1-1"}, "annotations": {}},
             "status": {"conditions": [{"type": "Failed", "status": "True", "reason": "X", "message": "m", "lastTransitionTime": "2026-11-16T08:00:00Z"}], "startTime": "2026-11-16T07:00:00Z", "active": 1, "rayJobInfo": {}}},
    "pods": [{"metadata": {"labels": {}}, "spec": {"nodeName": "n", "containers": [{"resources": {"requests": {"nvidia.com/gpu": "8"}}}]},
              "status": {"phase": "Failed", "containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": 1, "startedAt": "2026-11-16T07:00:00Z", "finishedAt": "2026-11-16T08:00:00Z", "reason": "Error"}}}], "conditions": [{"type": "DisruptionTarget", "status": "True"}]}}],
    "nodes": [{"metadata": {"name": "n", "labels": {}}, "spec": {"taints": [], "unschedulable": False}, "status": {"allocatable": {"nvidia.com/gpu": "8"}, "conditions": [{"type": "Ready", "status": "True"}]}}],
    "queue": {"spec": {"resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "f", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "64"}]}]}]}, "status": {"flavorsUsage": [{"name": "f", "resources": [{"name": "nvidia.com/gpu", "total": "8"}]}], "conditions": []}},
    "local": {"status": {"conditions": [{"type": "Active", "status": "True"}], "flavorUsage": []}},
}  # fmt: skip
CATALOG = (
    ("chips", "chips.toml", "text"),
    ("stacks", "stacks.toml", "text"),
    ("slices", "slices.toml", "text"),
    ("figures", "figures.csv", "csv"),
    ("offers", "offers.csv", "csv"),
)
CHIP = b"""name: h100-quiet
like: h100
title: H100 with its power capped
bandwidth: {value: 3.0 TB/s, source: measured here, date: 2026-11-18}
memory: 80 GB
power: 500 W
peak: {bf16: 800 TFLOP/s, fp8: none}
price: {value: 2.2, source: our contract, date: 2026-11-18}
"""
CHIP_TOML = b"""name = "h100-quiet"
like = "h100"
bandwidth = "3.0 TB/s"
price = 2.2
[peak]
bf16 = "800 TFLOP/s"
fp8 = "none"
"""
CHECK = {"command": "check", "program": "a.py:f", "rows": [{"accelerators": {"chip": "v5e"}, "compiles": True, "refused": None},
         {"accelerators": {"chip": "h100"}, "compiles": False, "refused": {"stage": "compile", "reason": "no"}}]}  # fmt: skip
DOCUMENTS = [
    {"output_throughput": 100.0, "mean_ttft_ms": 12.5, "p99_itl_ms": 8.0, "itls": [0.1, 0.2]},
    {"scenario": {"load": 1}, "metrics": {"latency": {"mean": 1.0, "p99": 2}, "count": 7}},
    {"a": {"b": {"c": 1.5}}, "d": True},
]
KUBECONFIG = b"""current-context: a
contexts: [{name: a, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://10.0.0.1:6443"}}]
users: [{name: u, user: {token: x}}]
"""
# a line of every format of logs, as published ones have them
LINES = b"""completed step: 7, seconds: 5.667, TFLOP/s/device: 123.4, Tokens/s/device: 1234.5, total_weights: 65536, loss: 9.1
[rank0]:[titan] 2026-05-18 10:00:00,000 - root - INFO - step: 14  loss:  3.4567  memory: 40.00GiB(50.00%)  tps: 6,512  tflops: 400.00  mfu: 38.43%
 iteration       10/     500 | consumed samples: 320 | elapsed time per iteration (ms): 1234.5 | throughput per GPU (TFLOP/s/GPU): 400.1 | lm loss: 1.0E+00 |
 Step Time : 1.23s GPU utilization: 401.2MODEL_TFLOP/s/GPU
Training epoch 0, iteration 3/99 | lr: 1e-4 | global_step: 3 | reduced_train_loss: 5.1 | train_step_timing in s: 2.5
steps: 3 loss: 7.1 iter time (s): 1.2 samples/sec: 13.3
epoch=0/micro_step=3/global_step=3, RunningAvgSamplesPerSec=12.1, CurrSamplesPerSec=11.0
step 12/100 | loss 3.1 | dt 120.5ms | tok/sec 12345 | mfu 31.2%
Epoch 1:  22%|##2       | 4/18 [00:17<01:02,  4.47s/it, loss=10.072, v_num=1]\r
Progress on:train 1.20kit/10.0kit rate:2.3it/s remaining:1:02:03 elapsed:08:11 postfix:loss=3.21
  5%|#         | 10/200 [00:10<03:10,  1.00it/s]{'loss': 2.5, 'grad_norm': 1.0, 'learning_rate': 5e-05, 'epoch': 0.05}
{'train_runtime': 100.0, 'train_loss': 2.0, 'epoch': 1.0}
:::MLLOG {"namespace": "", "time_ms": 1, "event_type": "POINT_IN_TIME", "key": "tracked_stats", "value": {"train_loss": 2.1, "train_step_time": 1.5}, "metadata": {"step_num": 3}}
INFO 10:00:00 Avg prompt throughput: 100.0 tokens/s, Avg generation throughput: 200.0 tokens/s, Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 10.5%
Decode batch. #running-req: 3, #token: 100, token usage: 0.10, gen throughput (token/s): 123.4, #queue-req: 0
iter = 7, global_rank = 0, num_scheduled_requests: 3, kv_cache_util: 10%
[ 1234.567890] NVRM: Xid (PCI:0000:65:00): 79, pid=1, name=x, GPU has fallen off the bus.
Nov 18 10:00:00 host kernel: NVRM: Xid (PCI:0000:65:00): 45, caused by previous Xid 31
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB
Traceback (most recent call last):
ValueError: no such thing
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",modelName="NVIDIA H100"} 97
vllm:num_requests_running{model_name="x"} 3 1700000000000
"""
CLAIM = {
    "by": "123",
    "at": 1.8e9,
    "pid": 7,
    "start": 9,
    "boot": "b",
    "host": "h",
    "pool": "p",
    "chips": "0,1",
    "restarts": 0,
    "space": "4",
}
END = {"by": "123", "exit_code": 1, "started": 1.8e9, "ended": 1.8e9 + 5, "told": 15, "reason": "stopped"}


def written(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def files(*patterns: str) -> Any:
    return lambda: [path.read_bytes() for pattern in patterns for path in sorted(ROOT.glob(pattern))]


def head(pattern: str, lines: int) -> Any:
    """The first lines of files, so that many cases fit into the time."""
    return lambda: [b"\n".join(path.read_bytes().split(b"\n")[:lines]) + b"\n" for path in sorted(ROOT.glob(pattern))]


def dumped(*documents: Any) -> Any:
    return lambda: [json.dumps(document).encode() for document in documents]


@cache
def model() -> Any:
    return preset("llama-3.1-8b")


def loaded(data: bytes) -> Any:
    """JSON as the clients of Ray and Kubernetes hand it over; what is no JSON never reaches us."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def sound(status: AttemptStatus) -> None:
    """What the ledger can hold."""
    code = status.exit_code
    assert code is None or (type(code) is int and -(2**31) <= code < 2**31), f"exit code {code!r}"
    for at in (status.started, status.ended):
        assert at is None or (isinstance(at, int | float) and math.isfinite(at)), f"time {at!r}"
    words = (status.attempt, status.backend_id, status.state, status.where, status.reason)
    assert all(isinstance(word, str) for word in words), f"words {words!r}"


def bench(folder: Path, data: bytes) -> None:
    bench_text(read_bench(written(folder, "bench.json", data)))


def slurm_jobs(folder: Path, data: bytes) -> None:
    for job in slurm.jobs_from_json(data.decode("utf-8", "replace"), "squeue"):
        status = AttemptStatus("a", job.id, job.state, job.exit_code, job.started, job.ended, job.nodes, job.reason)
        sound(replace(status, restarts=job.restarts))


def ray_census(folder: Path, data: bytes) -> None:
    for status in ray.attempt_statuses(loaded(data)):
        sound(status)


def kubernetes_answers(folder: Path, data: bytes) -> None:
    document = loaded(data)
    parts = document if isinstance(document, dict) else {}
    for kind in ("job", "jobset", "rayjob"):
        sound(kubernetes.attempt_status(kind, parts.get("item"), "id", parts.get("pods")))
        kubernetes.ended_at(kind, parts.get("item"))
    kubernetes.node_capacity(POOL, parts.get("nodes"), parts.get("pods"))
    kubernetes.queue_capacity(POOL, parts.get("queue"), parts.get("local"))


def claim(folder: Path, data: bytes) -> None:
    written(folder, "claim", data)
    _held(claim_of(folder))


def _held(found: Claim | None) -> None:
    """A ledger has to hold what is taken of a claim."""
    if found is not None:
        sound(AttemptStatus("a", found.by, "running", None, found.at, None, found.host, "", found.restarts))


def record(folder: Path, data: bytes) -> None:
    underway = Underway(folder, "local")
    underway.folder.mkdir(exist_ok=True)
    written(underway.folder, "u-1-1", data)
    found = underway.record("u-1-1")
    if found is not None:
        _held(found.claim)
        found.restore(folder / "attempts" / "u-1-1", ended=True)


def end(folder: Path, data: bytes) -> None:
    written(folder, "end", data)
    found = end_of(folder)
    if found is not None:
        sound(AttemptStatus("a", found.by, "failed", found.exit_code, found.started, found.ended, "", found.reason))


def progress(folder: Path, data: bytes) -> None:
    written(folder, "progress", data)
    share = progress_of(folder)
    assert share is None or 0 <= share <= 1


def gavel(folder: Path, data: bytes) -> None:
    """The three files of a trace one after another, split by a line of equals signs."""
    parts = data.split(b"\n====\n")
    for name, part in zip(("jobs.csv", "throughput.csv", "cluster.csv"), [*parts, b"", b"", b""], strict=False):
        written(folder, name, part)
    read_gavel_trace(folder)


def gavel_seeds() -> list[bytes]:
    trace = EXAMPLES / "traces" / "gavel-seed0"
    names = ("jobs.csv", "throughput.csv", "cluster.csv")
    return [b"\n====\n".join(b"\n".join((trace / name).read_bytes().split(b"\n")[:30]) for name in names)]


def log(folder: Path, data: bytes) -> None:
    """As `chipwise observe read` shows it: the record and the page too."""
    reading = read_log(written(folder, "run.log", data))
    json.dumps(reading.record(), allow_nan=False)
    reading.blocks()


def chip(name: str) -> Any:
    """A chip of one's own: what it says, laid over the chip that it is like, and its price."""

    def read(folder: Path, data: bytes) -> None:
        described = read_chip_file(written(folder, name, data))
        like = load().chips.get(described.like)
        if like is not None:
            chip_like(described, like)
        own_offer(described)

    return read


def revision(folder: Path, data: bytes) -> None:
    """The revision that Hugging Face's cache names."""
    model_folder = folder / "hub" / "models--org--name"
    (model_folder / "refs").mkdir(parents=True, exist_ok=True)
    (model_folder / "snapshots" / "abc").mkdir(parents=True, exist_ok=True)
    written(model_folder / "snapshots" / "abc", "config.json", b"{}")
    written(model_folder / "refs", "main", data)
    with patch.dict(os.environ, {"HF_HUB_CACHE": str(folder / "hub")}):
        cached_config("hf:org/name")


def catalog(name: str) -> Any:
    """A catalog of one's own, one of whose files is the input."""

    def read(place: Path, data: bytes) -> None:
        own = place / "catalog"
        if not own.is_dir():
            shutil.copytree(ROOT / "src/chipwise/catalog/data", own, ignore=shutil.ignore_patterns("calibration"))
        kept = (own / name).read_bytes()
        written(own, name, data)
        try:
            with patch.dict(os.environ, {"CHIPWISE_CATALOG": str(own)}):
                forget()
                load()
        finally:
            forget()
            (own / name).write_bytes(kept)

    return read


def stored_prices(folder: Path, data: bytes) -> None:
    """The list that `prices update` wrote, with whatever became of it since."""
    with patch.dict(os.environ, {"CHIPWISE_DATA": str(folder)}):
        stored_file().parent.mkdir(parents=True, exist_ok=True)
        stored_file().write_bytes(data)
        read_stored()


def stored_seeds() -> list[bytes]:
    return [stored_text(load().offers[:12]).encode()]


def config(folder: Path, data: bytes) -> None:
    """As a workload's model: read, and its parameters counted."""
    count(from_hf_config(written(folder, "x.json", data)))


def reference_configs() -> list[bytes]:
    """A config of every decoder that is read, by name or by its fields."""
    text = (ROOT / "tests" / "integrity" / "reference_configs.json").read_text()
    return [json.dumps(row["config"]).encode() for row in json.loads(text)["rows"]]


def kubeconfig(folder: Path, data: bytes) -> None:
    Cluster(str(written(folder, "config", data)), "").check_link("kubeconfig")


def log_seeds() -> list[bytes]:
    """Each line of `LINES` by itself, all together, and the examples' first lines."""
    return [LINES, *head("examples/logs/*.log", 20)(), *(line + b"\n" for line in LINES.splitlines())]


def jobs_trace(folder: Path, data: bytes) -> None:
    listed_jobs(written(folder, "trace.yaml", data))


def recorded(folder: Path, data: bytes) -> None:
    read_jobs_trace(written(folder, "trace.csv", data), [RAY_POOL])


def rows(folder: Path, data: bytes) -> None:
    """As `chipwise validate --rows` reads them; what a row says wrong is said of the row."""
    kind, found = read_rows(written(folder, "rows.csv", data))
    reader = reader_of(kind)
    for row in found:
        if kind == FLAT:
            point_of(row)
        elif reader.eligible(row):
            try:
                reader.read(row)
            except ChipwiseError as error:
                assert "\n" not in str(error), "an error of several lines"


def bench_seeds() -> list[bytes]:
    out = []
    for path in (EXAMPLES / "bench" / "cpu.json", EXAMPLES / "bench" / "h200-1.json.gz"):
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        document = json.loads(text)
        document["points"] = document["points"][:6]
        out.append(json.dumps(document).encode())
    return out


def hlo_seeds() -> list[bytes]:
    samples = sorted((ROOT / "tests/unit/compiled/hlo/samples").glob("*.hlo.gz"), key=lambda path: path.stat().st_size)
    return [gzip.decompress(path.read_bytes()) for path in samples[:3]]


TARGETS = [
    Target("workload", lambda f, d: load_workload(written(f, "w.yaml", d)), files("examples/*-pretrain.yaml", "examples/*-imagenet.yaml", "examples/*lora.yaml"), "yaml"),
    Target("serving", lambda f, d: load_serving(written(f, "s.yaml", d)), files("examples/*-serve.yaml", "examples/*-offline.yaml"), "yaml"),
    Target("jobs", lambda f, d: load_jobs(written(f, "j.yaml", d), 0.0), files("examples/jobs/*.yaml"), "yaml"),
    Target("pools", lambda f, d: load_pools(written(f, "p.yaml", d)), files("examples/pools/*.yaml"), "yaml"),
    Target("fleet", lambda f, d: read_demand(written(f, "f.yaml", d), TODAY), files("examples/fleet/*.yaml"), "yaml"),
    Target("own-prices", lambda f, d: read_custom_prices(written(f, "own.csv", d), today=TODAY), files("examples/prices/own.csv"), "csv"),
    Target("focus-prices", lambda f, d: read_focus([written(f, "bill.csv", d)], {"EUR": 1.1}, 1), head("examples/prices/focus-*.csv", 12), "csv"),
    Target("focus-gz", lambda f, d: read_focus([written(f, "bill.csv.gz", d)], {"EUR": 1.1}, 1), lambda: [gzip.compress(d, mtime=0) for d in head("examples/prices/focus-*.csv", 4)()]),
    Target("skypilot-prices", lambda f, d: read_skypilot([written(f, "vms.csv", d)], "gcp", "2026-11-01", TODAY), head("examples/prices/skypilot/gcp/vms.csv", 12), "csv"),
    Target("bench", bench, bench_seeds, "json"),
    Target("bench-gz", lambda f, d: read_bench(written(f, "bench.json.gz", d)), lambda: [gzip.compress(d, mtime=0) for d in bench_seeds()]),
    Target("calibration", lambda f, d: bench_files.read(written(f, "c.json", d)), dumped({"schema": "chipwise.bench-calibration/1", "chip": "h200", "framework": "torch", "date": "2026-11-15", "tables": {}, "steps": []}), "json"),
    Target("decision", lambda f, d: decision(written(f, "d.json", d), "before"), files("examples/decisions/*.json"), "json"),
    Target("hf-config", config, dumped(*CONFIGS), "json"),
    Target("hf-any-config", config, reference_configs, "json"),
    Target("hf-revision", revision, lambda: [b"abc\n", b"abc"]),
    Target("chip-yaml", chip("chip.yaml"), lambda: [CHIP], "yaml"),
    Target("chip-toml", chip("chip.toml"), lambda: [CHIP_TOML]),
    *(Target(f"catalog-{kind}", catalog(file), files(f"src/chipwise/catalog/data/{file}"), shape) for kind, file, shape in CATALOG),
    Target("stored-prices", stored_prices, stored_seeds, "csv"),
    Target("check", lambda f, d: read_check(written(f, "c.json", d)), dumped(CHECK), "json"),
    Target("log", log, log_seeds),
    Target("log-gz", lambda f, d: read_log(written(f, "run.log.gz", d)), lambda: [gzip.compress(d, mtime=0) for d in log_seeds()[:3]]),
    Target("log-document", log, dumped(*DOCUMENTS), "json"),
    Target("kubeconfig", kubeconfig, lambda: [KUBECONFIG], "yaml"),
    Target("token", lambda f, d: read_token(written(f, "token", d)), lambda: [b"secret-token-of-16\n"]),
    Target("request-trace", lambda f, d: read_trace(written(f, "t.csv", d), model()), head("examples/traces/made-200.csv", 20), "csv"),
    Target("job-trace", jobs_trace, files("examples/traces/mixed-day.yaml"), "yaml"),
    Target("recorded-jobs", recorded, head("examples/traces/philly-days-20-21.csv", 20), "csv"),
    Target("gavel-trace", gavel, gavel_seeds, "csv"),
    Target("hlo", lambda f, d: parse(d.decode("utf-8", "replace")), hlo_seeds),
    Target("slurm-jobs", slurm_jobs, files("tests/unit/slurm_answers/squeue*.json"), "json"),
    Target("slurm-nodes", lambda f, d: slurm.nodes_from_json(d.decode("utf-8", "replace"), "sinfo"), files("tests/unit/slurm_answers/sinfo*.json"), "json"),
    Target("slurm-job-table", lambda f, d: slurm.jobs_from_table(d.decode("latin-1"), "squeue"), files("tests/unit/slurm_answers/squeue*.txt")),
    Target("slurm-node-table", lambda f, d: slurm.nodes_from_table(d.decode("latin-1"), "sinfo"), files("tests/unit/slurm_answers/sinfo*.txt")),
    Target("flat-rows", rows, head("examples/bench/h200-held-out.csv", 15), "csv"),
    Target("ray-census", ray_census, dumped(CENSUS), "json"),
    Target("ray-nodes", lambda f, d: ray.pool_capacity(RAY_POOL, loaded(d)), dumped(NODES), "json"),
    Target("kubernetes", kubernetes_answers, dumped(OBJECTS), "json"),
    Target("service-jobs", lambda f, d: sent_jobs(loaded(d), 0.0), dumped([{"name": "a", "command": ["true"], "estimates": {"cpu": "5s"}}], [{"name": "b", "workload": {"model": "gpt2", "train": {"tokens": "1B", "global_batch": 8, "sequence": 1024}}, "chips": 2, "command": ["x"]}]), "json"),
    Target("audit-heads", lambda f, d: read_heads(written(f, "h.json", d)), dumped({"heads": [{"chain": "router a", "number": 3, "hash": "0" * 64}]}), "json"),
    Target("training-rows", rows, head("validation/rows/training.csv", 15), "csv"),
    Target("serving-rows", rows, head("validation/rows/serving.csv", 15), "csv"),
    Target("inference-rows", rows, head("validation/rows/inference.csv", 15), "csv"),
    Target("later-rows", rows, head("validation/rows/inference_later.csv", 15), "csv"),
    Target("kernel-rows", rows, head("validation/rows/kernels.csv", 15), "csv"),
    Target("edge-rows", rows, head("validation/rows/edge.csv", 15), "csv"),
    Target("attempt-claim", claim, dumped(CLAIM), "json"),
    Target("attempt-record", record, dumped({**CLAIM, "grace": 30.0, "scope": "", "end": END}), "json"),
    Target("attempt-end", end, dumped(END), "json"),
    Target("attempt-progress", progress, lambda: [b"0.5", b"1", b"0.25\n"]),
]  # fmt: skip
