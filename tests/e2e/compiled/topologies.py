"""Asks libtpu for every slice the catalog knows: ``topologies.py RESULTS.json``."""

import json
import sys
from pathlib import Path

from chipwise.catalog import load
from chipwise.catalog.names import parse
from chipwise.compiled.targets import target_of
from chipwise.compiled.worker.worker import topology_devices

if __name__ == "__main__":
    found = {}
    for chip, slices in load().slices.items():
        shapes = ["x".join(map(str, shape)) for shape in slices.shapes]
        cubes = [f"{slices.cube}x{slices.cube}x{slices.cube * many}" for many in (1, 2, 3)] if slices.cube else []
        for shape in [*shapes, *cubes, f"2*{shapes[1]}"]:
            target = target_of(parse(f"{chip}:{shape}"))
            devices = topology_devices(target)
            found[str(target)] = [len(devices), target.devices * target.slices, target.slices]
    Path(sys.argv[1]).write_text(json.dumps(found))
