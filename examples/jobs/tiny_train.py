"""A stand-in for a training program: counts steps, keeps them in CHIPWISE_CHECKPOINT, goes on from there.

It trains nothing and needs nothing but Python, so that routing can be tried on any machine.
"""

import json
import os
import sys
import time
from pathlib import Path

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 20
SECONDS = 0.05  # of a step

folder = Path(os.environ.get("CHIPWISE_CHECKPOINT") or os.environ.get("CHIPWISE_FOLDER") or ".")
folder.mkdir(parents=True, exist_ok=True)
kept = folder / f"{os.environ.get('CHIPWISE_JOB', 'tiny').replace('/', '_')}.json"
step = json.loads(kept.read_text())["step"] if kept.exists() else 0
where = f"{os.environ.get('CHIPWISE_CHIPS', '1')} x {os.environ.get('CHIPWISE_CHIP', 'cpu')}"
print(
    f"{os.environ.get('CHIPWISE_VARIANT', 'alone')} on {where}, {os.environ.get('CHIPWISE_LAYOUT', 'no layout')}:",
    f"step {step} of {STEPS}",
    flush=True,
)
while step < STEPS:
    time.sleep(SECONDS)
    step += 1
    draft = kept.with_suffix(".part")
    draft.write_text(json.dumps({"step": step}))
    draft.replace(kept)  # whole or absent, whenever it is stopped
    if os.environ.get("CHIPWISE_FOLDER"):  # how far it is, for the router
        Path(os.environ["CHIPWISE_FOLDER"], "progress").write_text(f"{step / STEPS:.4f}")
print(f"done: {step} steps", flush=True)
kept.unlink()
