"""Loads, lowers or compiles many programs in one process: ``loaded.py CASES.json RESULTS.json``.

A case is {"kind", "name", "data", "on", "axes", "until"}; until is "load", "lower" or "compile".
"""

import json
import sys
from pathlib import Path

from chipwise.catalog.names import parse
from chipwise.compiled import loaders
from chipwise.compiled.gpu import compiled_with, options, speed_of_light
from chipwise.compiled.job import Spec
from chipwise.compiled.targets import target_of
from chipwise.compiled.worker.worker import topology_devices
from chipwise.errors import InputError


def answer(case):
    import jax

    target = target_of(parse(case.get("on", "v5e:2x2")))
    spec = Spec(case["kind"], case["name"], case.get("data", {}))
    program = loaders.load(spec, topology_devices(target), case.get("axes", {}))
    leaves = jax.tree.leaves(program.args)
    found = {
        "shapes": [list(leaf.shape) for leaf in leaves],
        "shards": [list(leaf.sharding.shard_shape(leaf.shape)) for leaf in leaves],
        "donate": program.donate,
        "mesh": dict(program.mesh.shape) if program.mesh else None,
        "notes": program.notes,
        "varies": program.varies,
        "choices": program.choices,
    }
    if case.get("until", "compile") == "load":
        return found
    lowered = program.lower()
    if case.get("until") == "lower":
        return found
    if target.platform == "cuda":
        compiled, notes = compiled_with(lowered, {**options(target), **case.get("options", {})})
        found["notes"] += notes
        found["sol"] = [[each.instruction, each.seconds] for each in speed_of_light(compiled.as_text())]
    else:
        compiled = lowered.compile()
    memory = compiled.memory_analysis()
    return found | {
        "arguments": memory.argument_size_in_bytes,
        "outputs": memory.output_size_in_bytes,
        "aliased": memory.alias_size_in_bytes,
        "text": compiled.as_text(),
    }


if __name__ == "__main__":
    results = {}
    for label, case in json.loads(Path(sys.argv[1]).read_text()).items():
        try:
            results[label] = answer(case)
        except Exception as error:
            results[label] = {
                "error": type(error).__name__,
                "input": isinstance(error, InputError),
                "message": str(error),
                "source": getattr(error, "source", ""),
            }
    Path(sys.argv[2]).write_text(json.dumps(results))
