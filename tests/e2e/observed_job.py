"""A ledger with a training job that runs, and where it prints to."""

import json
import random
import time
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

from ledger_cases import POOLS, job, options, start

from chipwise.route.backend import AttemptStatus
from chipwise.route.ledger import NewJob, open_ledger

TRAINING = {"model": "llama-3.1-8b", "train": {"precision": "bf16", "steps": 720, "global_batch": 64, "sequence": 4096}}
STEP_S = 5.0  # as predicted: an hour of 720 steps


def printed(began, count, seconds=STEP_S, of=None, seed=1):
    """Steps as Megatron prints them, and when the last of them was."""
    rng = random.Random(seed)
    lines, at = [], began
    for step in range(1, count + 1):
        took = seconds * (1 + rng.gauss(0, 0.02))
        at += took
        total = f"/ {of}" if of else ""
        stamp = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
        lines.append(
            f"[{stamp}] iteration {step}{total} | elapsed time per iteration (ms): {took * 1e3:.1f} | lm loss: 2.5 |"
        )
    return "\n".join(lines) + "\n", at


def running_job(folder):
    """A running attempt, submitted with a workload and half an hour old."""
    url, now = str(folder / "ledger.db"), time.time()
    began = now - 300 * STEP_S
    with open_ledger(url) as ledger:
        new = NewJob(replace(job("train"), workload=json.dumps(TRAINING)), options())
        (name,) = ledger.submit([new], began - 60)
        (row,) = ledger.decide("r1", "fastest", [start(name)], began - 30, 1e9, POOLS)
        ledger.mark_submitted(row.id, "4711", began - 20)
        ledger.observe(row.id, AttemptStatus(row.id, "4711", "running", started=began), began)
        ledger.settle({"local": ("mark", str(folder))}, "r1", "host", 1, "fastest", began, 30.0)
    place = folder / "attempts" / row.id
    place.mkdir(parents=True)
    return SimpleNamespace(ledger=url, job=name, attempt=row.id, output=place / "output", began=began, now=now)
