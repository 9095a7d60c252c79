"""TPU chips by the metric service of their programs: a stand-in that the vendor's client reads as it does the real one."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed")

from real_parsers import installed
from tpu_metric_service import tpu_program

from chipwise.bench.reading import Unreadable
from chipwise.observe.agent.tpu_runtime import PORTS, TpuRuntime, tpu_instrument

GIB = 2**30
FIGURES = {
    "tpu.runtime.hbm.memory.total.bytes": [32 * GIB] * 4,
    "tpu.runtime.hbm.memory.usage.bytes": [30 * GIB, 29 * GIB, 0, 5],
    "tpu.runtime.tensorcore.dutycycle.percent": [97.5, 88.25, 0.0, 100.0],
}
CLIENT = """
import json, sys
from tpu_info import device, metrics
usage = metrics.get_chip_usage_new(device.TpuChip.V6E, f"localhost:{sys.argv[1]}")
print(json.dumps([list(one) for one in usage]))
"""


def read(*ports):
    runtime = TpuRuntime({PORTS: ",".join(map(str, ports))})
    try:
        return {(one.device, one.series): one.value for one in runtime.read()}
    finally:
        runtime.close()


def test_the_vendors_client_reads_the_stand_in_as_we_do():
    folder = installed("tpu-info")
    with tpu_program(FIGURES) as port:
        env = {**os.environ, "PYTHONPATH": str(folder)}
        line = [sys.executable, "-c", CLIENT, str(port)]
        done = subprocess.run(line, env=env, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        ours = read(port)
    theirs = json.loads(done.stdout)
    assert [row[0] for row in theirs] == [0, 1, 2, 3]
    for chip, used, total, busy in theirs:
        figures = {"device_memory_used": used, "device_memory_total": total, "device_busy": busy / 100}
        assert {name: ours[str(chip), name] for name in figures} == pytest.approx(figures)
        assert figures["device_memory_used"] == FIGURES["tpu.runtime.hbm.memory.usage.bytes"][chip]


def test_programs_of_several_ports_are_read_and_one_that_ended_is_absent():
    with tpu_program(FIGURES) as port:
        alone = read(port)
        with tpu_program({}) as other:
            both = read(port, other)
        gone = read(other, port)
    assert alone == both == gone and len(alone) == 12
    assert read(port) == {}  # no program runs: nothing is told, and nothing is wrong


def test_a_service_that_hangs_or_answers_nonsense_is_told():
    name = "tpu.runtime.tensorcore.dutycycle.percent"
    with tpu_program(FIGURES, pause_s=2.0) as port:
        runtime = TpuRuntime({PORTS: str(port)}, limit_s=0.2)
        with pytest.raises(Unreadable, match=rf"port {port}: no answer within 0\.2 s"):
            runtime.read()
        runtime.close()
    with tpu_program({name: b"\x0a\xff"}) as port, pytest.raises(Unreadable, match="is no answer of a TPU runtime"):
        read(port)


def test_a_node_without_a_tpu_asks_nobody(tmp_path, monkeypatch):
    with pytest.raises(Unreadable, match="no TPU"):
        TpuRuntime({}, dev=tmp_path)
    for ports in ("http", "0", "8431,70000", ","):
        with pytest.raises(Unreadable, match="is no port"):
            TpuRuntime({PORTS: ports}, dev=tmp_path)
    (tmp_path / "accel0").touch()
    assert TpuRuntime({}, dev=tmp_path).name == "tpu"  # its program's port is known


def test_the_agent_takes_the_service_where_libtpu_can_t_be_asked(monkeypatch):
    import chipwise.observe.agent.tpu as module

    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with tpu_program(FIGURES) as port:
        monkeypatch.setenv(PORTS, str(port))
        instrument = tpu_instrument()
        assert isinstance(instrument, TpuRuntime) and len(instrument.read()) == 12
        instrument.close()
