"""One chip's products through libtpu, in a process of its own: ``python -m chipwise.calibrate.tpu_compile CHIP FILE``.

Each product is a module of its own, compiled for one device, so that its cycles are its alone. Rows are written as
they come; a run that was cut short goes on where it stopped.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from chipwise.calibrate.tpu_rows import Row, key_of, read_rows, write_rows
from chipwise.calibrate.tpu_shapes import SweepRequest, design
from chipwise.catalog import Accelerators, Chip, load
from chipwise.compiled.hlo import parse
from chipwise.compiled.reference import recipe
from chipwise.compiled.targets import target_of, topology_arguments
from chipwise.compiled.timing.extract import extract
from chipwise.errors import ChipwiseError

HOST = 4  # chips of the smallest topology that libtpu makes by itself; one device of it does the work
POLITE = 15  # niceness: a whole sweep takes about twenty CPU minutes
PRODUCTS = ("matmul", "conv")


def main(arguments: list[str]) -> int:
    """Compile what is missing in FILE for CHIP; a third argument ends it after so many products."""
    chip, path = load().chips[arguments[0]], Path(arguments[1])
    most = int(arguments[2]) if len(arguments) > 2 else sys.maxsize
    try:
        rows = read_rows(path)
    except ChipwiseError as error:
        print(f"chipwise: {error}", file=sys.stderr)
        return 2
    compiled = {row.key for row in rows if row.chip == chip.id}
    todo = [request for request in design(chip) if key_of(request) not in compiled][:most]
    if not todo:
        return 0
    compile_one = _compiler(chip)
    for i, request in enumerate(todo):
        start = time.process_time()
        compiled_row = compile_one(request)
        # read again: another sweep may have written
        others = [row for row in read_rows(path) if (row.chip, row.key) != (compiled_row.chip, compiled_row.key)]
        write_rows(path, [*others, compiled_row])
        r, seconds = request, time.process_time() - start
        shape = f"{r.kind} {r.dtype} {r.batch}x{r.m}x{r.n}x{r.k} {r.order}"
        print(f"{chip.id} {i + 1}/{len(todo)} {shape}: {compiled_row.cycles:.0f} cycles, {seconds:.1f} s", flush=True)
    return 0


def _compiler(chip: Chip) -> Callable[[SweepRequest], Row]:
    """A function that compiles one product for a chip; jax is imported here and nowhere else."""
    import jax
    from jax.experimental import topologies
    from jax.sharding import SingleDeviceSharding

    target = target_of(Accelerators(chip, HOST, load().slices[chip.id].shape_for(HOST) or ()))
    devices = topologies.get_topology_desc(**topology_arguments(target)).devices
    sharding = SingleDeviceSharding(devices[0])
    versions = (version("jax"), version("libtpu"))

    def run(request: SweepRequest) -> Row:
        step, shapes, dtype = program(request)
        arguments = [jax.ShapeDtypeStruct(shape, dtype, sharding=sharding) for shape in shapes]
        options: dict[str, Any] = recipe(chip) if request.tuned else {}
        compiled = jax.jit(step).lower(*arguments).compile(compiler_options=options)
        named = " ".join(f"{name}={value}" for name, value in options.items())
        return _row(chip.id, request, compiled.as_text() or "", named, versions)

    return run


def program(request: SweepRequest) -> tuple[Callable[..., Any], list[tuple[int, ...]], Any]:
    """The function, the shapes of its two arguments and their type."""
    import jax
    import jax.numpy as jnp

    types = {"bf16": jnp.bfloat16, "fp32": jnp.float32, "int8": jnp.int8, "fp8": jnp.float8_e4m3fn}
    out = {"bf16": jnp.bfloat16, "fp32": jnp.float32, "int8": jnp.int32, "fp8": jnp.bfloat16}[request.dtype]
    precision = "highest" if request.dtype == "fp32" else None  # six passes, as the catalog counts fp32
    if request.kind == "conv":
        images, side, cin, cout, kernel, stride = request.window

        def convolve(x: Any, w: Any) -> Any:
            return jax.lax.conv_general_dilated(x, w, (stride, stride), "SAME",
                                                dimension_numbers=("NHWC", "HWIO", "NHWC"))  # fmt: skip

        return convolve, [(images, side, side, cin), (kernel, kernel, cin, cout)], types[request.dtype]
    lead = (request.batch,) if request.batch > 1 or request.kind == "attention" else ()
    left = (request.k, request.m) if request.order == "tn" else (request.m, request.k)
    right = (request.n, request.k) if request.order == "nt" else (request.k, request.n)
    axis = len(lead)
    contract = ((axis if request.order == "tn" else axis + 1,), (axis + 1 if request.order == "nt" else axis,))
    batch = (tuple(range(axis)), tuple(range(axis)))

    def multiply(a: Any, b: Any) -> Any:
        return jax.lax.dot_general(a, b, (contract, batch), precision=precision, preferred_element_type=out)

    return multiply, [(*lead, *left), (*lead, *right)], types[request.dtype]


def _row(chip_id: str, request: SweepRequest, text: str, options: str, versions: tuple[str, str]) -> Row:
    """What the optimized module says of its product."""
    ops = [op for op, _ in extract(parse(text)).ops()]
    products = [op for op in ops if op.kind in PRODUCTS]
    cycles = sum(op.cycles for op in products)
    moved = sum(op.hbm for op in products)
    beside = sum(op.hbm for op in ops if op.kind not in PRODUCTS and op.kind != "wait")
    names = ("kind", "dtype", "batch", "m", "n", "k", "order", "window")
    what: dict[str, Any] = dict(zip(names, request.key, strict=True))
    return Row(chip=chip_id, **what, cycles=cycles, hbm_bytes=moved, beside_bytes=beside, parts=len(products),
               options=options, jax=versions[0], libtpu=versions[1])  # fmt: skip


if __name__ == "__main__":
    os.nice(POLITE)
    sys.exit(main(sys.argv[1:]))
