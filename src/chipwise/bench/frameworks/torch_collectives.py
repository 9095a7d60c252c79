"""Collectives through torch.distributed: NCCL between GPUs, gloo between processes of a CPU.

Each device has a process of its own: this one is the first, the others are started as
``python -m chipwise.bench.frameworks.torch_collectives RANK COUNT PORT KIND DTYPE BYTES PLATFORM`` and do as many
collectives as they are told on their standard input, until it closes.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import weakref
from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist

from chipwise.bench.frameworks.interface import Case, Device, Unsupported
from chipwise.bench.frameworks.torch_kernels import CHECKED_BYTES, DTYPES
from chipwise.ops.point import Point
from chipwise.ops.work import work_of

UNIT = 8  # collectives told at once, so that the telling doesn't count
WAIT = timedelta(seconds=60)


def build(point: Point, on: str, device: Device) -> Case:
    """One collective over `devices` devices; each is fed `bytes`."""
    count = point.sizes["devices"]
    if count < 2:
        raise Unsupported("a collective needs at least 2 devices")
    if on != "cpu" and count > device.count:
        raise Unsupported(f"{point.kind} over {count} devices needs {count}; there are {device.count} here")
    if on == "cpu" and point.kind in ("reduce_scatter", "all_to_all"):
        raise Unsupported(f"gloo has no {point.kind}")
    if point.dtype not in DTYPES:
        raise Unsupported(f"collectives move {', '.join(DTYPES)}")
    _leave()
    platform, port = on.partition(":")[0], _free_port()
    others = [_start(rank, count, port, point, platform) for rank in range(1, count)]
    run, check = join(0, count, port, point, platform)

    def call(i: int) -> object:
        for other in others:
            assert other.stdin is not None
            other.stdin.write(f"{UNIT}\n")
            other.stdin.flush()
        for _ in range(UNIT):
            run()
        return None

    weakref.finalize(call, _end, others)
    work = work_of(point)
    small = point.sizes["bytes"] <= CHECKED_BYTES

    def checked() -> float:
        call(0)
        return check()

    return Case(call, work.flops, work.moved_bytes, work.items, check=checked if small else None, unit=UNIT)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _start(rank: int, count: int, port: int, point: Point, platform: str) -> subprocess.Popen[str]:
    words = [str(rank), str(count), str(port), point.kind, point.dtype, str(point.sizes["bytes"]), platform]
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "chipwise.bench.frameworks.torch_collectives", *words],
        stdin=subprocess.PIPE,
        text=True,
    )


def _end(others: list[subprocess.Popen[str]]) -> None:
    for other in others:
        other.kill()
        other.wait()
        if other.stdin is not None:
            other.stdin.close()


def _leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


def join(
    rank: int, count: int, port: int, point: Point, platform: str
) -> tuple[Callable[[], None], Callable[[], float]]:
    """Enter the group: what does one collective, and what says how far the first device's result is from float64.

    Every device is fed numbers that each can compute of the others, so that the result can be checked.
    """
    where = "cpu" if platform == "cpu" else f"cuda:{rank}"
    if platform != "cpu":
        torch.cuda.set_device(rank)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group(
        "gloo" if platform == "cpu" else "nccl",
        init_method=f"tcp://127.0.0.1:{port}",
        rank=rank,
        world_size=count,
        timeout=WAIT,
    )
    dtype = DTYPES[point.dtype]
    share = max(point.sizes["bytes"] // (dtype.itemsize * count), 1)

    def fed(of: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(of)
        return torch.randn(share * count, generator=generator).to(dtype)

    given = fed(rank).to(where)
    wide = point.kind == "all_gather"
    out = torch.empty(
        share * count * (count if wide else 1) // (count if point.kind == "reduce_scatter" else 1),
        dtype=dtype,
        device=where,
    )

    # PyTorch 2.13 gave both new names
    gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
    scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor

    calls = 0

    def run() -> None:
        nonlocal calls
        if point.kind == "all_reduce":
            if calls % UNIT == 0:  # once in a call: the copy is no part of the collective
                out.copy_(given)
            calls += 1
            dist.all_reduce(out)
        elif point.kind == "all_gather":
            gather(out, given)
        elif point.kind == "reduce_scatter":
            scatter(out, given)
        else:
            dist.all_to_all_single(out, given)

    def check() -> float:
        parts = torch.stack([fed(rank).double() for rank in range(count)])
        reference = {
            "all_reduce": parts.sum(0) * count ** (UNIT - 1),  # summed over and over in a call
            "all_gather": parts.ravel(),
            "reduce_scatter": parts.sum(0)[:share],
            "all_to_all": parts[:, :share].ravel(),
        }[point.kind]
        return float(torch.linalg.vector_norm(out.double().cpu() - reference) / torch.linalg.vector_norm(reference))

    return run, check


def main(words: list[str]) -> None:
    """One of the other devices: collectives as told, until there is no one to tell."""
    rank, count, port = (int(word) for word in words[:3])
    kind, dtype, size, platform = words[3:]
    point = Point("collectives", kind, dtype, {"bytes": int(size), "devices": count})
    run, _ = join(rank, count, port, point, platform)
    for line in sys.stdin:
        for _ in range(int(line)):
            run()
        if platform != "cpu":
            torch.cuda.synchronize()


if __name__ == "__main__":
    main(sys.argv[1:])
