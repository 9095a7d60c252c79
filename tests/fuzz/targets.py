"""Everything that reads what others write: files of users, answers of backends, files of attempts."""

from __future__ import annotations

import gzip
import json
import math
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from harness import Target

from chipwise.bench.file import read as read_bench
from chipwise.bench.file import text as bench_text
from chipwise.catalog import bench_files
from chipwise.compare.diff import document as decision
from chipwise.compiled.hlo.parser import parse
from chipwise.errors import ChipwiseError
from chipwise.fleet.demand import read_demand
from chipwise.prices.custom_prices import read_custom_prices
from chipwise.prices.focus_import import read_focus
from chipwise.prices.skypilot import read_skypilot
from chipwise.route.audit_view import _read_heads as read_heads
from chipwise.route.backend import AttemptStatus
from chipwise.route.backends.kubernetes import read as kubernetes
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
from chipwise.workload import load_serving, load_workload
from chipwise.workload.hf import from_hf_config
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
    Target("hf-config", lambda f, d: from_hf_config(written(f, "x.json", d)), dumped(*CONFIGS), "json"),
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
    Target("kernel-rows", rows, head("validation/rows/kernels.csv", 15), "csv"),
    Target("edge-rows", rows, head("validation/rows/edge.csv", 15), "csv"),
    Target("attempt-claim", claim, dumped(CLAIM), "json"),
    Target("attempt-record", record, dumped({**CLAIM, "grace": 30.0, "scope": "", "end": END}), "json"),
    Target("attempt-end", end, dumped(END), "json"),
    Target("attempt-progress", progress, lambda: [b"0.5", b"1", b"0.25\n"]),
]  # fmt: skip
