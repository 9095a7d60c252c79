"""What libtpu says, as a line of JSON for each line asked: `python -m chipwise.observe.agent.tpu_child METRIC...`."""

from __future__ import annotations

import json
import sys
from importlib import import_module


def main() -> None:
    """Answer until nobody asks any more."""
    monitoring = import_module("libtpu.sdk").tpumonitoring
    names = [name for name in sys.argv[1:] if name in set(monitoring.list_supported_metrics())]
    while sys.stdin.readline():
        answer = {}
        for name in names:
            try:
                answer[name] = [str(value) for value in monitoring.get_metric(name).data()]
            except RuntimeError:  # this one can't be had now
                continue
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
