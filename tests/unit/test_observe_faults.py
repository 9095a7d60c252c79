"""Faults by the lines that show them; what they do to others is not a fault of its own."""

import pytest

from chipwise.observe.faults import xids
from chipwise.observe.log import read_lines
from chipwise.observe.records import FaultClass

XID = "node17 kernel: NVRM: Xid (PCI:0000:9b:00): {}, pid=48211, name=python3, words"
STEP = "completed step: {}, seconds: 1.5, loss: 2.5"
WATCHDOG = (
    "[rank{0}]:[E321 02:07:08.408 ProcessGroupNCCL.cpp:607] [Rank {0}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=1580, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600060 milliseconds before timing out."
)
CASES = [
    ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79 GiB", "oom"),
    ("jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm.", "oom"),
    ("Out of memory: Killed process 812 (python3) total-vm:812kB", "oom"),
    ("1234.batch  train  OUT_OF_ME+  0:125", "oom"),
    ("slurmstepd: error: *** JOB 812 ON node3 CANCELLED AT 2026-03-01T10:00:00 DUE TO PREEMPTION ***", "preempted"),
    ("RuntimeError: CUDA error: uncorrectable ECC error encountered", "memory"),
    ("amdgpu 0000:03:00.0: amdgpu: 4 uncorrectable hardware errors detected in gfx block", "memory"),
    ("RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution", "link"),
    ("[ 1843.3] NVRM: GPU at PCI:0000:b3:00: GPU-1 has fallen off the bus.", "bus"),
    ("               NVRM: fallen off the bus and is not responding to commands.", "bus"),
    ("    HW Thermal Slowdown               : Active", "thermal"),
    ("Failed to initialize NVML: Driver/library version mismatch", "driver"),
    ("RuntimeError: CUDA error: device-side assert triggered", "program"),
    (WATCHDOG.format(3), "hang"),
]  # fmt: skip
CALM = [
    "    HW Thermal Slowdown               : Not Active",
    "INFO: gpu_memory_utilization=0.9, preemption_mode=None, timeout=600",
    "watchdog timeout set to 600 s", "Saved checkpoint; evicting nothing; hang on", "ECC Mode : Enabled",
    "GPU-0 Xid errors: 0", "Preemptions: 0", "slurmstepd: error: *** JOB 812 CANCELLED DUE TO TIME LIMIT ***",
    "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.158.01",
    "node17 kernel: NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)",
]  # fmt: skip


def faults(*lines):
    return [(fault.kind, fault.device, fault.xid) for fault in read_lines(lines).faults]


@pytest.mark.parametrize(("line", "kind"), CASES)
def test_a_fault_has_the_class_of_what_failed(line, kind):
    assert [fault[0] for fault in faults(line)] == [kind]


@pytest.mark.parametrize("line", CALM)
def test_lines_that_speak_of_faults_are_not_faults(line):
    assert faults(line) == []


def test_every_class_is_tried():
    assert {kind for _, kind in CASES} == set(FaultClass)


@pytest.mark.parametrize("number", sorted(xids()))
def test_every_xid_is_read_with_its_device(number):
    assert faults(XID.format(number)) == [(xids()[number].kind, "0000:9b:00", number)]


def test_an_xid_that_is_not_known_is_the_drivers():
    assert faults(XID.format(999)) == [("driver", "0000:9b:00", 999)]


def test_xids_that_clean_up_follow_the_one_that_failed():
    other = XID.replace("9b", "ba")
    assert faults(XID.format(95), other.format(45), XID.format(45)) == [("memory", "0000:9b:00", 95)]
    assert faults(XID.format(45)) == [("program", "0000:9b:00", 45)]
    assert faults(XID.format(163), other.format(162)) == [("link", "0000:ba:00", 162)]
    caused = "kernel: NVRM: Xid (PCI:0000:dc:00): 45, pid=1, name=python3, Ch 00000001 caused by previous Xid 149"
    assert faults(caused, caused) == [("link", "0000:dc:00", 149)]


def test_with_mig_the_instance_is_left_to_the_line():
    assert faults("kernel: NVRM: Xid (PCI:0000:9b:00 GPU-I:05): 94, pid=1, name=python3") == [
        ("memory", "0000:9b:00", 94)
    ]


def test_ranks_that_waited_for_the_one_that_failed_are_not_at_fault():
    assert [kind for kind, *_ in faults(*map(WATCHDOG.format, range(200)), CASES[0][0])] == ["oom"]
    assert [kind for kind, *_ in faults(*map(WATCHDOG.format, range(8)))] == ["hang"]
    assert [kind for kind, *_ in faults(WATCHDOG.format(1), XID.format(79))] == ["bus"]


def test_a_traceback_counts_where_nothing_goes_on_after_it():
    lines = [
        "Traceback (most recent call last):",
        '  File "train.py", line 3, in <module>',
        "ValueError: shapes differ",
    ]
    assert [kind for kind, *_ in faults(STEP.format(1), *lines)] == ["program"]
    assert faults(STEP.format(1), *lines, STEP.format(2)) == []
    assert faults(*lines[:2], "KeyboardInterrupt") == []
