"""A stand-in of the metric service that a program on a TPU has: its messages are written by hand, by their fields.

tests/e2e/test_tpu_runtime.py holds it to the vendor's own client.
"""

import struct
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc

SERVICE = "tpu.monitoring.runtime.RuntimeMetricService"
WHOLE = {  # figures by chip: those of whole numbers are int64 in the service, others double
    "tpu.runtime.hbm.memory.total.bytes": True,
    "tpu.runtime.hbm.memory.usage.bytes": True,
    "tpu.runtime.tensorcore.dutycycle.percent": False,
}


def varint(number):
    out = b""
    while number > 0x7F:
        out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
    return out + bytes([number])


def message(place, octets):
    return varint(place << 3 | 2) + varint(len(octets)) + octets


def gauge(value, whole):
    """A default is not written, as protobuf has it."""
    if not value:
        return b""
    return varint(2 << 3) + varint(int(value)) if whole else varint(1 << 3 | 1) + struct.pack("<d", value)


def response(name, figures):
    """A MetricResponse: TPUMetric {name = 1, metrics = 3 of {attribute = 1, gauge = 3}}."""
    rows = b""
    for chip, value in enumerate(figures):
        number = varint(3 << 3) + varint(chip) if chip else b""
        attribute = message(1, b"device-id") + message(2, number)
        rows += message(3, message(1, attribute) + message(3, gauge(value, WHOLE[name])))
    return message(1, message(1, name.encode()) + rows)


@contextmanager
def tpu_program(figures, pause_s=0.0):
    """A program whose runtime tells these figures; where it listens. `pause_s` before each answer."""

    def answer(request, context):
        time.sleep(pause_s)
        name = request[2 : 2 + request[1]].decode()
        if name not in figures:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"no metric {name}")
        given = figures[name]
        return given if isinstance(given, bytes) else response(name, given)

    server = grpc.server(ThreadPoolExecutor(2))
    handlers = {"GetRuntimeMetric": grpc.unary_unary_rpc_method_handler(answer)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    port = server.add_secure_port("localhost:0", grpc.local_server_credentials())
    server.start()
    try:
        yield port
    finally:
        server.stop(None).wait()
