"""The messages of JAX, torch.export, XLA and Mosaic that users meet, and what they mean.

Each rule looks at a `Case` and gives a `Refused` or None; the first that answers wins. Exceptions are known by the
names of their classes, since nothing here may import jax or torch. Every text was taken from a real failure.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from chipwise.compiled.job import Refused
from chipwise.compiled.worker.case import Case
from chipwise.units import format_bytes

Rule = Callable[[Case], Refused | None]

_UNIT = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = r"([\d.]+)\s*([KMGT]?)i?B?"
_HBM = (
    # "... the total memory required for HLO temporaries (18.04G) exceeds available HBM (15.75G)": despite its name
    # the first figure holds arguments and outputs too.
    re.compile(rf"total memory required for [^(]*\({_SIZE}\) exceeds available HBM \({_SIZE}\)"),
    re.compile(rf"Used {_SIZE} of {_SIZE} hbm", re.IGNORECASE),
)
_ALLOCATION = re.compile(
    rf'Size: {_SIZE}\s+(?:.*\n)*?\s*Operator: op_name="([^"]*)"(?:\s+source_file="([^"]*)" source_line=(\d+))?'
)
_CUSTOM = re.compile(
    r"Custom emitter for (\S+) not found|"  # TPU
    r"No FFI handler registered for (\S+)|"  # GPU
    r"[Nn]o (?:registered )?implementation for (?:untyped )?custom call to \"?([^\s\"]+)|"
    r"Unknown custom call target \"?([^\s\"]+)|custom[- ]call target '([^']+)'"
)
_WIDE = re.compile(
    r"Unexpected operand type for (\w+): (?:c128|f64)|X64 rewriting|While rewriting computation to not contain X64|"
    r"(?:c128|f64|complex128|float64)[^\n]*(?:not supported|unsupported|[Uu]nimplemented)"
)
_VALUE = re.compile(
    r"Failed to parse '?(.*?)'? into flag (\w+)|While setting option (\w+), '?(.*?)'? is not a valid (\w+)"
)
_SUSPECT = re.compile(r"Suspected Python Code Location:\s*\n\s+(\S+?):(\d+)(?::\d+)?\s+\[")


def _bytes(number: str, unit: str) -> float:
    return float(number) * _UNIT[unit.upper()]


def hbm(case: Case) -> Refused | None:
    """The device's memory is too small."""
    match = next((hit for pattern in _HBM if (hit := pattern.search(case.text))), None)
    if match is None:
        return None
    needed, available = _bytes(match[1], match[2]), _bytes(match[3], match[4])
    over = 100 * (needed / available - 1)
    reason = (
        f"out of memory: one device of {case.job.target} needs {format_bytes(needed)}, "
        f"{format_bytes(available)} is usable ({over:.3g} % too much)"
    )
    largest = _ALLOCATION.search(case.text)
    op, source = (largest[3], f"{largest[4]}:{largest[5]}" if largest[4] else "") if largest else ("", "")
    change = (
        "use more or larger chips, shard more, take smaller batches, "
        "recompute activations (jax.checkpoint) or donate arguments"
    )
    refused = case.refused(reason, change, "memory", op)
    # The traceback ends where the program was compiled, which is not where memory is lost.
    detail = f"\n{case.progressed.arguments()}"
    return replace(refused, source=source, hbm_needed=needed, hbm_available=available, detail=detail)


def vmem(case: Case) -> Refused | None:
    """A Pallas kernel or a fusion asks for more on-chip memory than there is."""
    allocation = re.search(
        r"Allocation \(size=(\d+)\) would exceed memory \(size=(\d+)\)(?:.*:: (\S+)$)?", case.text, re.S
    )
    scoped = re.search(rf"size {_SIZE} and limit {_SIZE} exceeded scoped vmem limit", case.text)
    block, op = "", "pallas_call" if "tpu_custom_call" in case.text else ""
    if allocation and "space=vmem" in case.text:
        window = re.search(r"window shape is ([^,]+\[[\d,]*\])", case.text)
        block = f" for a block of {window[1]}" if window else ""
        needs, has, op = float(allocation[1]), float(allocation[2]), "pallas_call"
    elif scoped:
        needs, has = _bytes(scoped[1], scoped[2]), _bytes(scoped[3], scoped[4])
        named = re.search(r'op_name="([^"]*)"', case.text)
        op = named[1] if named else op
    else:
        return None
    reason = f"a kernel needs {format_bytes(needs)} of on-chip memory (VMEM){block}; {format_bytes(has)} can be had"
    change = "take smaller blocks (pallas_call's grid and BlockSpec), or raise xla_tpu_scoped_vmem_limit_kib"
    return case.refused(reason, change, "memory", op, case.locate(op))


def shared_memory(case: Case) -> Refused | None:
    """A Pallas kernel that asks for more shared memory than a GPU's multiprocessor has."""
    match = re.search(r"exceeds available shared memory: smem_bytes=(\d+) > max_smem_bytes=(\d+)", case.text)
    if not match:
        return None
    needs, has = format_bytes(float(match[1])), format_bytes(float(match[2]))
    reason = f"a kernel needs {needs} of shared memory; a block of {case.job.target.chip} can have {has}"
    return case.refused(reason, "take smaller blocks (pallas_call's grid and BlockSpec)", "memory", "pallas_call")


def suspect(case: Case) -> str:
    """The place in the user's code that XLA names."""
    match = _SUSPECT.search(case.text)
    return f"{match[1]}:{match[2]}" if match else ""


def traced_value(case: Case) -> Refused | None:
    """A value that is only known when the program runs decides its shape or its path."""
    names, text = case.names, case.text
    if "TracerBoolConversionError" in names:
        reason = "data-dependent control flow: an `if`, `while` or `and` depends on a value only known at run time"
        return case.refused(reason, "use jax.lax.cond, jax.lax.while_loop or jnp.where", "trace", "bool(array)")
    if "NonConcreteBooleanIndexError" in names:
        reason = "dynamic shape: indexing by a boolean mask gives as many elements as the mask has ones"
        change = "keep the shape: jnp.where(mask, x, 0), or jnp.nonzero(mask, size=N)"
        return case.refused(reason, change, "trace", "x[mask]")
    if "TracerArrayConversionError" in names:
        reason = "a NumPy function was given a traced array, whose values are only known at run time"
        return case.refused(reason, "use the jax.numpy function of the same name", "trace", "numpy")
    if "TracerIntegerConversionError" in names or "concrete values of integer type" in text:
        reason = "dynamic shape: a size, a range or an index of Python depends on a value only known at run time"
        change = "make it a Python int (static_argnums), or use jax.lax.fori_loop"
        return case.refused(reason, change, "trace", "int(array)")
    if "ConcretizationTypeError" in names:
        op = re.search(r"The size argument of (\S+)|arose in the (\S+) argument|arose with the `(\w+)` function", text)
        reason = "dynamic shape: a value only known at run time is needed to trace the program"
        change = "give it as a Python int: static_argnums, or `size=` of jnp.nonzero, jnp.unique and jnp.where"
        return case.refused(reason, change, "trace", next(filter(None, op.groups())) if op else "")
    if "GuardOnDataDependentSymNode" in names or "data-dependent" in text.lower():
        reason = "data-dependent control flow or shape: torch.export can't follow a value only known at run time"
        change = "use torch.where, torch.cond or a fixed size; torch._check can bound a size"
        return case.refused(reason, change, "export", _torch_op(text))
    if "InconclusiveDimensionOperation" in names or "UnexpectedDimVar" in names:
        return case.refused(f"dynamic shape: {case.first_line}", "give the open dimensions sizes", "trace")
    return None


def _torch_op(text: str) -> str:
    match = re.search(r"aten\.[\w.]+", text)
    return match[0] if match else ""


def unsupported(case: Case) -> Refused | None:
    """An operation the target has no code for."""
    names, text, target = case.names, case.text, str(case.job.target)
    if "UnsupportedOp" in names:
        op, source, hint = (str(getattr(case.error, name)) for name in ("op", "source", "hint"))
        dynamic = "data-dependent control flow: " if op.startswith("a branch") else "unsupported operation: "
        return case.refused(f"{dynamic}{op} has no translation to XLA", hint, "export", op, source)
    primitive = re.search(r"translation rule for primitive '(\w+)' not found for platform (\w+)", text)
    if primitive:
        reason = f"unsupported operation: {primitive[1]} does not exist for {primitive[2].upper()}"
        change = "compute it on the host (jax.pure_callback), or use another algorithm"
        return case.refused(reason, change, "trace", primitive[1])
    library = re.search(r"operation (cu\w+)\(.*\) failed", text)
    if library:
        reason = f"unsupported operation: tracing it asks NVIDIA's library ({library[1]}), which is missing here"
        change = "install NVIDIA's CUDA libraries, as PyTorch's CUDA build does, or leave it out of what is checked"
        return case.refused(reason, change, "trace", library[1])
    kernel = re.search(r"Unimplemented primitive in (Pallas \w+) lowering[^:]*: ([\w-]+)", text)
    if kernel:
        reason = f"unsupported operation: {kernel[2]} can't be used inside a {kernel[1]} kernel"
        return case.refused(reason, "compute it outside the kernel, or from operations Pallas has", "trace", kernel[2])
    custom = _CUSTOM.search(text)
    if custom:
        name = next(group for group in custom.groups() if group)
        reason = f"custom kernel: {name} is code of its own (CUDA, Triton or an FFI target) that {target} does not have"
        change = "write it in JAX or as a Pallas kernel, or fall back to plain operations"
        if case.job.target.platform == "cuda":
            change = f"register it when the program is imported (jax.ffi.register_ffi_target), or {change}"
        return case.refused(reason, change, "compile", name, suspect(case))
    if "triton" in text.lower() and case.job.target.platform == "tpu":
        reason = "custom kernel: a Triton kernel runs on GPUs only"
        change = "write it as a Pallas TPU kernel, or fall back to plain operations"
        return case.refused(reason, change, "trace", "triton")
    wide = _WIDE.search(text)
    if wide:
        kind = "complex128" if "c128" in text or "complex128" in text else "float64"
        op = (wide[1] or "").lower()
        reason = f"{kind} has no {op or 'such operation'} on {target}"
        source = suspect(case) or case.locate(op)
        return case.refused(reason, "use float32 or complex64 (jax_enable_x64 off)", "compile", op, source)
    return None


def pallas_block(case: Case) -> Refused | None:
    """A Pallas block whose last dimensions don't fit the tiles."""
    if "The Pallas TPU lowering currently requires" not in case.text:
        return None
    match = re.search(r"pallas_call (\w+) at (\S+?:\d+)", case.text)
    block = re.search(r"has block shape \(([^=]*(?:=\d+\), )?.*?)\), array shape \(([\d, ]*)\)", case.text)
    sizes = ", ".join(re.findall(r"block_size=(\d+)", block[1])) or block[1] if block else "?"
    reason = f"a Pallas block of ({sizes}) does not fit the tiles of a TPU"
    change = "make the last two dimensions multiples of 8 and 128, or those of the whole array"
    return case.refused(reason, change, "trace", match[1] if match else "pallas_call", match[2] if match else "")


def option(case: Case) -> Refused | None:
    """Compiler options that don't exist, don't parse, or belong to another chip."""
    unknown = re.search(r"No such compile option: '([^']*)'", case.text)
    if unknown:
        reason = f"the compiler for {case.job.target} has no option {unknown[1]}"
        change = "check its spelling; options of TPUs begin with xla_tpu_, of GPUs with xla_gpu_"
        return _option(case, reason, unknown[1], change)
    value = _VALUE.search(case.text)
    if value:
        name, given = value[2] or value[3], value[1] or value[4]
        return _option(case, f"option {name}: {given!r} is not a value it takes", name, "give a value of its type")
    named = [name for name in case.job.options if name in case.text]
    if named and "INVALID_ARGUMENT" in case.text:
        return _option(case, f"option {named[0]}: {_after_code(case.first_line)}", named[0], "give a value it takes")
    if "FAILED_PRECONDITION" in case.text and case.job.options:
        name = named[0] if named else ", ".join(case.job.options)
        reason = f"option {name} is not for {case.job.target.chip}: {_after_code(case.first_line)}"
        return _option(case, reason, name, f"leave {name} out for {case.job.target.chip}")
    return None


def _option(case: Case, reason: str, name: str, change: str) -> Refused:
    return replace(case.refused(reason, change, "compile", name), source="")


def _after_code(line: str) -> str:
    return re.sub(r"^[A-Z_]+: ", "", line)[:200]


def sharding(case: Case) -> Refused | None:
    """Meshes and shardings that don't go with the shapes or with each other."""
    text = case.text
    parts = re.search(r"array axis (\d+) is partitioned (\d+) times, but the dimension size is (\d+)", text)
    if parts:
        axis, count, size = parts.groups()
        reason = f"a sharding splits dimension {axis} of size {size} into {count} parts: {size} % {count} != 0"
        change = f"make that dimension a multiple of {count}, or shard it over fewer devices"
        return case.refused(reason, change, "trace")
    if "DuplicateSpecError" in case.names:
        return case.refused(f"a sharding names a mesh axis twice: {case.first_line}", "use each axis once", "trace")
    absent = re.search(r"Resource axis: (\w+) of .* is not found in mesh: (\(.*?\))", text)
    if absent:
        reason = f"a sharding names the axis {absent[1]}, the mesh has {absent[2]}"
        return case.refused(reason, "use an axis of the mesh, or give the mesh that axis", "trace")
    unbound = re.search(r"unbound axis name: (\w+)", text)
    if unbound:
        reason = f"a collective names the axis {unbound[1]}, which no mesh or shard_map around it has"
        return case.refused(reason, "call it under jax.shard_map over that axis", "trace", "collective")
    if "Received incompatible devices for jitted computation" in text:
        reason = "arguments lie on different devices: every sharding must use the same mesh"
        return case.refused(reason, "build all shardings from one mesh over all devices", "trace")
    return None


def importing(case: Case) -> Refused | None:
    """A module that does not import."""
    if case.stage != "import":
        return None
    name, error = case.job.spec.name, case.error
    folder = case.job.spec.data.get("folder") or "."
    did = f"chipwise imported {name} from {folder} in a process of its own, with no accelerator"
    if isinstance(error, ModuleNotFoundError):
        reason = f"{name} could not be imported: it needs the module {error.name}, which is not installed here"
        return case.refused(reason, f"install {error.name} beside chipwise, or start where it can be found; {did}")
    if isinstance(error, SyntaxError):
        return case.refused(f"{name} is not valid Python: {error.msg}", f"see the line named; {did}")
    if isinstance(error, SystemExit):
        reason = f"{name} ended the process while it was imported (sys.exit({error.code!r}))"
        return case.refused(reason, f'put what runs at import under `if __name__ == "__main__":`; {did}')
    return None


RULES: tuple[Rule, ...] = (
    *(option, vmem, shared_memory, hbm),
    *(traced_value, pallas_block, unsupported, sharding, importing),
)
