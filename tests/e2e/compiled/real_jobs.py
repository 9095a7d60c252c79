"""Real compilers on small programs. Skipped where they are not installed (`pip install 'chipwise[tpu-compiler]'`)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from chipwise.catalog.names import parse
from chipwise.compiled.job import Job, Spec, outcome_from_json
from chipwise.compiled.process import worker_environment
from chipwise.compiled.targets import target_of
from chipwise.compiled.versions import installed

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
USABLE = {each.toolchain.id for each in installed() if each.usable}


def needs(*toolchains):
    """Skip a test where a compiler is not installed."""
    missing = [each for each in toolchains if each not in USABLE]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


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
    done = subprocess.run(line, env=worker_environment(os.environ), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    results = json.loads((folder / "results.json").read_text())
    return {label: outcome_from_json(result) for label, result in results.items()}

