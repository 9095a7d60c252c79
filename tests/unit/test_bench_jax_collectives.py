"""Collectives in JAX, over four devices that the host plays in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from patience import PATIENCE_S

pytest.importorskip("jax")
pytestmark = pytest.mark.thorough

PROGRAM = """
from chipwise.bench.frameworks.jax_device import open_jax
from chipwise.ops.point import Point


framework = open_jax("cpu")
assert framework.device.count == 4
for kind in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all"):
    for devices, size, dtype in ((4, 4096, "fp32"), (2, 1000, "bf16"), (3, 1000, "fp32")):
        case = framework.build(Point("collectives", kind, dtype, {"bytes": size, "devices": devices}))
        seconds = framework.sample(case.call, calls=2, first=0)
        shape = {shard.data.shape for shard in case.call(0).addressable_shards}
        print(kind, devices, dtype, case.check(), seconds > 0, *(n for (n,) in shape))
"""


def test_collectives_agree_with_numpy_and_give_each_device_its_part() -> None:
    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = {tuple(line.split()[:3]): line.split()[3:] for line in done.stdout.splitlines()}
    assert len(rows) == 12
    for (kind, _, dtype), (error, timed, *_) in rows.items():
        exact = kind in ("all_gather", "all_to_all")
        assert float(error) <= (0.0 if exact else 1e-6 if dtype == "fp32" else 6e-3)
        assert timed == "True"
    sizes = {kind: int(rows[kind, "4", "fp32"][-1]) for kind, *_ in rows}
    assert sizes == {"all_reduce": 1024, "all_gather": 4096, "reduce_scatter": 256, "all_to_all": 1024}
