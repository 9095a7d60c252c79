"""TPU chips of this node by the metric service of the programs that use them: no libtpu is needed to ask it.

A program on a TPU serves its runtime's metrics by gRPC on this host, on port 8431 or on those that
TPU_RUNTIME_METRICS_PORTS names, one a process (google/cloud-accelerator-diagnostics, tpu_info 0.14.2: its
tpu_metric_service.proto and metrics.py, read 2026-11-20). Nobody answers while no program runs: that is no failure.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from chipwise.bench.reading import Unreadable
from chipwise.observe.agent.instrument import Instrument, Measurement
from chipwise.observe.agent.tpu import TpuChips, check_device
from chipwise.observe.protobuf import BYTES, FIXED64, VARINT, Malformed, fields, messages

PORT = "8431"
PORTS = "TPU_RUNTIME_METRICS_PORTS"
LIMIT_S = 2.0  # for one answer, of a service on this host
METHOD = "/tpu.monitoring.runtime.RuntimeMetricService/GetRuntimeMetric"
# What the runtime calls it, what it is here, and what to multiply with
RUNTIME_METRICS: tuple[tuple[str, str, float], ...] = (
    ("tpu.runtime.tensorcore.dutycycle.percent", "device_busy", 0.01),
    ("tpu.runtime.hbm.memory.usage.bytes", "device_memory_used", 1.0),
    ("tpu.runtime.hbm.memory.total.bytes", "device_memory_total", 1.0),
    ("tpu.runtime.hbm.utilization.percent", "device_memory_active", 0.01),
)


def tpu_instrument() -> Instrument:
    """The chips by libtpu where it is installed, else by the service of the programs that use them."""
    try:
        return TpuChips()
    except Unreadable as no_library:
        try:
            return TpuRuntime()
        except Unreadable as no_service:
            reasons = dict.fromkeys((str(no_library), str(no_service)))
            raise Unreadable("; ".join(reasons)) from None


class TpuRuntime:
    """Every chip that a program of this node uses."""

    name = "tpu"
    every_s = 5.0  # the runtime renews its figures about as often

    def __init__(
        self, environment: Mapping[str, str] = os.environ, dev: Path = Path("/dev"), limit_s: float = LIMIT_S
    ) -> None:
        named = environment.get(PORTS, "")
        if not named:
            check_device(dev)
        ports = [port.strip() for port in (named or PORT).split(",") if port.strip()]
        wrong = next((port for port in ports if not port.isdecimal() or not 0 < int(port) < 65536), None)
        if wrong is not None or not ports:
            raise Unreadable(f"{PORTS}: {wrong or named!r} is no port")
        if find_spec("grpc") is None:
            raise Unreadable("the runtime's metric service is asked by gRPC: pip install grpcio")
        self._grpc: Any = import_module("grpc")
        self._limit_s = limit_s
        self._channels = {
            port: self._grpc.secure_channel(f"localhost:{port}", self._grpc.local_channel_credentials())
            for port in ports
        }

    def read(self) -> Sequence[Measurement]:
        """What the runtimes of all programs say; nothing while none runs."""
        return [one for port in self._channels for one in self._of_program(port)]

    def _of_program(self, port: str) -> Iterator[Measurement]:
        ask = self._channels[port].unary_unary(METHOD)
        for name, series, scale in RUNTIME_METRICS:
            try:
                answer = ask(request_of(name), timeout=self._limit_s)
            except self._grpc.RpcError as error:
                code = error.code()
                if code is self._grpc.StatusCode.UNAVAILABLE:
                    return  # no program runs, or it has ended
                if code is self._grpc.StatusCode.DEADLINE_EXCEEDED:
                    raise Unreadable(f"port {port}: no answer within {self._limit_s:g} s") from None
                continue  # this runtime does not know this one
            try:
                values = list(values_of(answer))
            except (Malformed, struct.error) as error:
                raise Unreadable(f"port {port}: {name} is no answer of a TPU runtime ({error})") from None
            for device, value in values:
                yield Measurement(series, value * scale, device)

    def close(self) -> None:
        """Let go of the connections."""
        for channel in self._channels.values():
            channel.close()


def request_of(name: str) -> bytes:
    """A MetricRequest: field 1 is the metric's name.

    >>> request_of("abc")
    b'\\n\\x03abc'
    """
    octets = name.encode()
    assert len(octets) < 128
    return bytes([1 << 3 | BYTES, len(octets)]) + octets


def values_of(response: bytes) -> Iterator[tuple[str, float]]:
    """The chip and the value of each gauge in a MetricResponse."""
    for metric in messages(response, 1):  # TPUMetric
        for row in messages(metric, 3):  # Metric
            device, value = "", None
            for attribute in messages(row, 1):
                for attribute_value in messages(attribute, 2):
                    numbers = [
                        amount for number, kind, amount in fields(attribute_value) if (number, kind) == (3, VARINT)
                    ]
                    device = str(numbers[-1]) if numbers else device or "0"  # 0 is not written: it is the default
            for gauge in messages(row, 3):
                value = 0.0  # the default, which is not written
                for number, kind, amount in fields(gauge):
                    if (number, kind) == (1, FIXED64):
                        (value,) = struct.unpack("<d", amount)
                    elif (number, kind) == (2, VARINT):
                        value = float(amount - 2**64 if amount >= 2**63 else amount)
            if value is not None:
                yield device, value
