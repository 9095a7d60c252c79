"""The sweep of `make calibration` with the real compiler: one product, resumed, and where it stops."""

import os
import subprocess
import sys

import pytest

from chipwise.calibrate.tpu_rows import FILE, read_rows
from chipwise.compiled.worker.process import worker_environment
from patience import PATIENCE_S

pytestmark = [pytest.mark.compiler("tpu"), pytest.mark.slow]


@pytest.mark.parametrize("chip", ["v5e", "v7x"])
def test_the_compiler_gives_cycles_for_a_product_and_the_next_run_goes_on(tmp_path, chip):
    path = tmp_path / FILE
    line = [sys.executable, "-P", "-m", "chipwise.calibrate.tpu_compile", chip, str(path), "1"]
    for count in (1, 2):
        subprocess.run(line, env=worker_environment(os.environ), check=True, capture_output=True, timeout=PATIENCE_S)
        rows = read_rows(path)
        assert len(rows) == len({row.key for row in rows}) == count
    first = rows[0]
    assert (first.m, first.n, first.k, first.order) == ("1024", "1024", "1024", "nn")
    flops_a_cycle = {"v5e": 131_072, "v7x": 524_288}[chip]
    assert 0.1 < 2 * 1024**3 / flops_a_cycle / first.cycles < 1.0
    assert first.parts == 1
    assert first.hbm_bytes + first.beside_bytes >= 3 * 2 * 1024**2
    assert first.jax and first.libtpu
