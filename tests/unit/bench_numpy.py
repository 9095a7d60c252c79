"""A framework on numpy: real work and real timings on this machine's CPU, with points that go wrong on purpose."""

import gc
import os
import time

import numpy as np

from chipwise.bench.frameworks.interface import Case, Device, OutOfMemory, Unsupported
from chipwise.errors import InputError
from chipwise.ops.point import Point

WRONG, CRASH, HUGE, BROKEN = 13, 17, 2**60, 19  # sizes that ask for a wrong result, a crash, memory, an exception
TYPES = {"fp32": np.float32, "int8": np.int8}


class NumpyFramework:
    name = "numpy"

    def __init__(self):
        self.device = Device("cpu", "numpy's CPU", 2.0**30, 1, cache_bytes=2.0**20)
        self.built = 0

    def versions(self):
        return {"numpy": np.__version__}

    def build(self, point):
        self.built += 1
        if point.dtype not in TYPES:
            raise Unsupported(f"numpy has no {point.dtype}")
        return {"gemm": self.gemm, "copy": self.copy}[point.kind](point)

    def gemm(self, point):
        m, n, k = (point.sizes[name] for name in "mnk")
        if m == CRASH:
            print("about to abort", flush=True)
            os.abort()
        if m == BROKEN:
            raise RuntimeError("something\nbroke")
        random = np.random.default_rng(0)
        left = [random.standard_normal((m, k), np.float32) for _ in range(2)]
        right = random.standard_normal((k, n), np.float32)

        def check():
            wanted = left[0].astype(np.float64) @ right.astype(np.float64)
            found = left[0] @ right if m != WRONG else left[0] @ right * 2
            return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))

        return Case(lambda i: left[i % 2] @ right, 2.0 * m * n * k, 4.0 * (m * k + k * n + m * n), check=check)

    def copy(self, point):
        size = point.sizes["bytes"]
        if size >= HUGE:
            raise OutOfMemory(f"{size} bytes are more than this device has")
        source = [np.ones(size // 4, np.float32) for _ in range(2)]
        return Case(lambda i: source[i % 2].copy(), moved_bytes=2.0 * size)

    def sample(self, call, calls, first):
        start = time.perf_counter()
        for i in range(first, first + calls):
            call(i)
        return time.perf_counter() - start

    def peak_bytes(self):
        return None

    def reset(self):
        gc.collect()

    def out_of_memory(self, error):
        return isinstance(error, MemoryError)


def open_numpy(platform):
    if platform != "cpu":
        raise InputError("device", platform, "cpu: numpy runs on nothing else")
    return NumpyFramework()


def gemm(m=64, n=64, k=64, dtype="fp32"):
    return Point("kernels", "gemm", dtype, {"m": m, "n": n, "k": k})


def copy(size=2**20):
    return Point("kernels", "copy", "fp32", {"bytes": size})


def points(suite, device, size, framework):
    """A plan with everything that can happen to a point."""
    if suite != "kernels":
        return []
    return [gemm(), gemm(WRONG), gemm(CRASH), copy(), copy(HUGE), gemm(dtype="fp8"), gemm(BROKEN), gemm(96)]


def calm(suite, device, size, framework):
    return [gemm(), copy(), gemm(96)] if suite == "kernels" else []


def endless(suite, device, size, framework):
    return [gemm(32 + i) for i in range(5000)]
