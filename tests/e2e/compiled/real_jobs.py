"""Real compilers on small programs."""

import json
import os
import subprocess
import sys
from pathlib import Path

from chipwise.catalog.names import parse
from chipwise.compiled.job import Job, Spec, outcome_from_json
from chipwise.compiled.targets import target_of
from chipwise.compiled.worker.process import worker_environment
from patience import PATIENCE_S

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"


def job(name, on="v5e:1", kind="function", folder=PROGRAMS, options=None, mesh=None, **data):
    """A job for one of the programs here."""
    return Job(Spec(kind, name, {"folder": str(folder), **data}), target_of(parse(on)), options or {}, mesh or {})


def compile_together(cases, folder):
    """Outcomes of many jobs, all compiled in one process."""
    asked = {}
    for label, (name, more) in cases.items():
        data = {"folder": str(more.get("folder", PROGRAMS))}
        case = {"kind": "function", "name": name, "data": data, "on": "v5e:1", "options": {}, "mesh": {}}
        asked[label] = case | {key: value for key, value in more.items() if key != "folder"}
    (folder / "cases.json").write_text(json.dumps(asked))
    line = [sys.executable, "-P", str(HERE / "outcomes.py"), str(folder / "cases.json"), str(folder / "results.json")]
    done = subprocess.run(
        line, env=worker_environment(os.environ), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    results = json.loads((folder / "results.json").read_text())
    return {label: outcome_from_json(result) for label, result in results.items()}
