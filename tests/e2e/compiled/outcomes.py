"""Compiles many small programs in one process, for tests of messages: ``outcomes.py CASES.json RESULTS.json``.

Chipwise itself gives each compile a process; these cases only differ in what the tracer or the compiler says.
"""

import faulthandler
import json
import sys
import tempfile
from pathlib import Path

from chipwise.catalog.names import parse
from chipwise.compiled.job import Job, Spec, outcome_as_json
from chipwise.compiled.targets import target_of
from chipwise.compiled.worker.source_tracker import SourceTracker
from chipwise.compiled.worker.worker import outcome_of

HANGS_S = 500.0  # for one program: a compile of half a minute takes minutes beside others on two cores

if __name__ == "__main__":
    results = {}
    for label, case in json.loads(Path(sys.argv[1]).read_text()).items():
        spec = Spec(case["kind"], case["name"], case["data"])
        job = Job(spec, target_of(parse(case["on"])), case["options"], case["mesh"])
        print(label, file=sys.stderr, flush=True)
        faulthandler.dump_traceback_later(HANGS_S, exit=True)  # says where
        with tempfile.TemporaryDirectory() as folder:
            results[label] = outcome_as_json(outcome_of(job, Path(folder), SourceTracker(), lambda stage: None))
    Path(sys.argv[2]).write_text(json.dumps(results))
