"""How long it takes to estimate jobs in every pool: new workloads, and many that are alike. CPU seconds."""

from __future__ import annotations

import time
from pathlib import Path

from chipwise.route.estimates import estimator
from chipwise.route.job import Job
from chipwise.route.load import load_pools
from chipwise.route.load.jobs import jobs_of

ROOT = Path(__file__).resolve().parent.parent
WORKLOADS = (
    "llama-3.1-8b-pretrain",
    "llama-2-70b-lora",
    "resnet-50-imagenet",
    "mixtral-8x7b-pretrain",
    "vit-b-16-imagenet",
    "dit-xl-2-imagenet",
)
ALIKE = 1000


def job(workload: str, chips: int, name: str = "run") -> Job:
    raw = {
        "name": name,
        "workload": f"examples/{workload}.yaml",
        "chips": chips,
        "command": ["train"],
        "checkpoint": {"every": "30min"},
    }
    return jobs_of(raw, ROOT, 0.0)[0]


def main() -> None:
    pools, using = load_pools(ROOT / "examples/pools/mixed.yaml").pools, estimator()
    using.options(job("bert-large-pretrain", 8), pools)  # what is loaded once
    asked = [job(workload, chips) for workload in WORKLOADS for chips in (8, 16, 32, 64)]
    begin, pairs = time.process_time(), 0
    for each in asked:
        options, unable = using.options(each, pools)
        pairs += len(options) + sum(1 for one in unable if one.variant)
    spent = time.process_time() - begin
    print(f"new workloads: {pairs} variants in pools, {spent / pairs * 1e3:.1f} ms each")
    begin = time.process_time()
    alike = [job("llama-2-70b-lora", 16, f"run-{i}") for i in range(ALIKE)]
    read = time.process_time() - begin
    begin = time.process_time()
    for each in alike:
        using.options(each, pools)
    spent = time.process_time() - begin
    print(f"{ALIKE:,} similar jobs in {len(pools)} pools: {read:.2f} s to read, {spent:.2f} s to estimate")


if __name__ == "__main__":
    main()
