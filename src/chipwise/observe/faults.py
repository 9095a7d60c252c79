"""Faults that a log shows: of devices by the kernel's words, of jobs by what frameworks and schedulers print.

What a fault does to others is not counted: time-outs of ranks that waited for the one that failed, Xid 45 after
another Xid, 163 beside 162. A traceback counts where nothing goes on after it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from chipwise.observe.data_files import rows
from chipwise.observe.records import CAUSES, Fault, FaultClass, Severity

_XID = re.compile(r"NVRM: Xid \((PCI:[0-9A-Fa-f:.]++)[^)]*+\): (\d+)(?:,|\b)(.*)")
_OFF_BUS = re.compile(r"\bfallen off the bus")
_DEVICE = re.compile(r"\b(?:PCI:)?([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.\d)?)")
_KERNEL_WORDS = ("kernel: ", "NVRM", "] ")
_KERNEL = re.compile(r"^\[ *\d+\.\d+\] |\bkernel: |\bNVRM: ")  # journal, driver, dmesg
_PREVIOUS = re.compile(r"caused by previous Xid (\d+)")
_RECOVERY = re.compile(r"GPU recovery action changed from .* to 0x0 \(None\)")
_LONGEST = 300  # characters of a line that are kept
# (class, words that a line has, pattern): the first that fits counts
_WORDS: tuple[tuple[FaultClass, tuple[str, ...], re.Pattern[str]], ...] = (
    (
        FaultClass.OOM,
        ("memory", "oom", "OUT_OF_ME", "RESOURCE_EXHAUSTED"),
        re.compile(
            r"(?:CUDA|HIP|XPU|NPU) out of memory|OutOfMemoryError|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation"
            r"|Ran out of memory in memory space"
            r"|RESOURCE_EXHAUSTED: (?:Out of memory|Attempting to (?:allocate|reserve))"
            r"|Out of memory: Kill|[Oo]ut of memory while trying to allocate|\boom[-_]kill|invoked oom-killer"
            r"|\bOUT_OF_ME(?:MORY\b|\+)|No available memory for the cache blocks|[Mm]emory cgroup out of memory"
        ),
    ),
    (
        FaultClass.PREEMPTED,
        ("preempt", "PREEMPT", "Preempt", "maintenance", "evict", "Evict"),
        re.compile(
            r"DUE TO PREEMPTION|\bPREEMPTED\b"
            r"|(?:instance|VM|node|job|worker|slice|TPU)\b[^.]{0,40}\b(?:was|has been|is being) "
            r"(?:preempted|evicted)|compute\.instances\.preempted|[Pp]reemption (?:notice|signal|event|sync point)"
            r"|[Rr]eceived preemption|impending-node-termination|TERMINATE_ON_HOST_MAINTENANCE",
        ),
    ),
    (
        FaultClass.MEMORY,
        ("ECC", "RAS", "emory error", "ncorrectable"),
        re.compile(
            r"uncorrectable ECC error|ECC(?:_| )UNCORRECTABLE|cudaErrorECCUncorrectable"
            r"|amdgpu.*uncorrectable(?: hardware)? errors?"
            r"|amdgpu.*(?:RAS|poison).*(?:uncorrect|consum)|row remap(?:ping)? fail",
            re.IGNORECASE,
        ),
    ),
    (
        FaultClass.LINK,
        ("NVLink", "nvlink", "NVLINK", "ICI", "xgmi", "XGMI"),
        re.compile(
            r"uncorrectable NVLink error|NVLink.{0,40}(?:fatal|down|inactive|failed)|cudaErrorNvlinkUncorrectable"
            r"|\bICI\b.{0,60}(?:link (?:is )?(?:down|unusable|unhealthy|failure)|timed? ?out)"
            r"|xgmi.{0,40}(?:error|fail)",
            re.IGNORECASE,
        ),
    ),
    (
        FaultClass.BUS,
        ("off the bus", "lost", "PCIe", "pcieport"),
        re.compile(
            r"fallen off the bus|GPU is lost|amdgpu.*device lost|PCIe Bus Error: severity=(?:Uncorrected|Fatal).*"
            r"|AER: .*Uncorrected \(Fatal\)"
        ),
    ),
    (
        FaultClass.THERMAL,
        ("hermal", "hrottl", "temperature", "verheat"),
        re.compile(
            r"(?:HW|SW)[ _]?Thermal[ _]?Slowdown\s*[:=]\s*(?:Active|1)\b"
            r"|thermal (?:shutdown|throttling (?:active|detected))"
            r"|temperature above threshold, cpu clock throttled|GPU.{0,40}overheat"
            r"|amdgpu.*(?:over|critical) temperature",
            re.IGNORECASE,
        ),
    ),
    (
        FaultClass.DRIVER,
        ("driver", "Driver", "NVML", "vfio", "GSP", "amdgpu", "SYSTEM_NOT_READY"),
        re.compile(
            r"Driver/library version mismatch|CUDA driver version is insufficient|cudaErrorSystemDriverMismatch"
            r"|CUDA_ERROR_SYSTEM_NOT_READY|Couldn't open iommu group /dev/vfio"
            r"|amdgpu.*GPU reset(?:\(\d+\))? (?:begin|failed)"
            r"|amdgpu.*ring \S+ timeout|RmInitAdapter failed"
        ),
    ),
    (
        FaultClass.PROGRAM,
        ("illegal", "device-side", "Segmentation", "CUBLAS", "signal"),
        re.compile(
            r"CUDA error: an illegal (?:memory access|instruction)|device-side assert triggered|Segmentation fault"
            r"|Fatal Python error|CUDA error: misaligned address"
        ),
    ),
    (
        FaultClass.HANG,
        ("atchdog", "imed out", "imeout", "heartbeat", "hang", "deadlock"),
        re.compile(
            r"[Ww]atchdog caught collective operation timeout|Some NCCL operations have failed or timed out"
            r"|stopped sending heartbeats|[Mm]egascale.{0,60}hang|[Cc]ollective operation timed out"
            r"|Detected (?:a )?(?:potential )?hang\b"
        ),
    ),
)
EFFECTS = frozenset({45, 163})  # Xids that follow another one: it is the one to look at
_ALONE = (FaultClass.HANG, FaultClass.PROGRAM)  # effects, where a cause stands beside them
_EXCEPTION = re.compile(
    r"^(?:\[[^\]]*\]:?\s*)*([A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Killed|Timeout))\b(?::\s*(.*))?$"
)
_NOT_AT_FAULT = ("KeyboardInterrupt", "SystemExit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Xid:
    """What NVIDIA's driver means by a number, and what to do."""

    number: int
    kind: FaultClass
    severity: Severity
    meaning: str
    action: str


@cache
def xids() -> dict[int, Xid]:
    """The numbers known."""
    return {
        int(row["xid"]): Xid(
            number=int(row["xid"]),
            kind=FaultClass(row["class"]),
            severity=Severity(row["severity"]),
            meaning=row["meaning"],
            action=row["action"],
        )
        for row in rows("xids.csv")
    }


class FaultReader:
    """Finds faults line by line."""

    def __init__(self) -> None:
        self.kernel_lines = 0
        self._faults: list[Fault] = []
        self._traceback = False
        self._exception: Fault | None = None  # the last, and whether anything went on after it

    def read(self, line: str, number: int, progress: bool, at: float | None = None) -> None:
        """Take a line; `progress`: it shows a step or a window, so what failed before was survived."""
        if progress:
            self._traceback, self._exception = False, None
            return
        if "Traceback (most recent call last)" in line:
            self._traceback = True
        if any(word in line for word in _KERNEL_WORDS) and _KERNEL.search(line):
            self.kernel_lines += 1
            if fault := _of_kernel(line, number, at):
                self._faults.append(fault)
                return
        for kind, words, pattern in _WORDS:
            if any(word in line for word in words) and pattern.search(line):
                device = _DEVICE.search(line)
                self._faults.append(
                    Fault(kind=kind, device=device[1] if device else None, line=_short(line), number=number, at=at)
                )
                break
        if self._traceback and (match := _EXCEPTION.match(line.strip())) and match[1] not in _NOT_AT_FAULT:
            self._exception = Fault(kind=FaultClass.PROGRAM, line=_short(line), number=number, at=at)
            self._traceback = False

    def faults(self) -> list[Fault]:
        """The faults, each device's once, causes without their effects."""
        faults = _without_companions(self._faults)
        kinds = {fault.kind for fault in faults}
        if kinds & CAUSES:
            faults = [fault for fault in faults if fault.kind not in _ALONE or fault.xid is not None]
        elif FaultClass.PROGRAM in kinds:
            faults = [fault for fault in faults if fault.kind is not FaultClass.HANG]
        if not faults and self._exception is not None:
            faults = [self._exception]
        return _once(faults)


def _of_kernel(line: str, number: int, at: float | None) -> Fault | None:
    match = _XID.search(line)
    if match is None:
        if not _OFF_BUS.search(line):
            return None
        device = _DEVICE.search(line)
        return Fault(kind=FaultClass.BUS, device=device[1] if device else None, line=_short(line), number=number, at=at)
    cause = _PREVIOUS.search(match[3])  # of Xid 45: what it cleans up after
    code = int(cause[1] if cause else match[2])
    xid = xids().get(code)
    if _RECOVERY.search(line):  # nothing to recover from
        return None
    kind = xid.kind if xid else FaultClass.DRIVER
    return Fault(kind=kind, device=match[1].removeprefix("PCI:"), xid=code, line=_short(line), number=number, at=at)


def _without_companions(faults: list[Fault]) -> list[Fault]:
    """Xid 45 cleans up after another, 154 says what to do about one on its device, and 163 goes with 162."""
    numbers = {fault.xid for fault in faults if fault.xid is not None}
    others = numbers - {45}
    named = {fault.device for fault in faults if fault.xid not in (None, 45, 154)}
    return [
        fault
        for fault in faults
        if not (fault.xid == 45 and others)
        and not (fault.xid == 154 and fault.device in named)
        and not (fault.xid == 163 and 162 in numbers)
    ]


def _once(faults: list[Fault]) -> list[Fault]:
    """The first of each class, device and number; a device with an Xid needs no other words."""
    out: dict[tuple[FaultClass, str | None, int | None], Fault] = {}
    coded = {(fault.kind, fault.device) for fault in faults if fault.xid is not None}
    coded_kinds = {kind for kind, _ in coded}
    for fault in faults:
        if fault.xid is None and (
            (fault.kind, fault.device) in coded or (fault.device is None and fault.kind in coded_kinds)
        ):
            continue
        out.setdefault((fault.kind, fault.device, fault.xid), fault)
    return list(out.values())


def _short(line: str) -> str:
    return " ".join(line.split())[:_LONGEST]
