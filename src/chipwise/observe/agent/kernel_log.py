"""What the kernel says of devices from now on: Xids, ECC, buses, links, and programs killed for memory."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from chipwise.bench.reading import Unreadable
from chipwise.observe.agent.instrument import Measurement
from chipwise.observe.faults import FaultReader

PATH = Path("/dev/kmsg")  # a record a read (kernel: Documentation/ABI/testing/dev-kmsg)
MOST_RECORDS = 5000  # a look: a kernel that floods its log must not keep the agent
_LONGEST_RECORD = 8192
_KINDS = 512  # of faults counted: devices and Xids


class KernelLog:
    """Faults counted by class, device and Xid, from when the agent was started."""

    name = "kernel"
    every_s = 1.0

    def __init__(self, path: Path = PATH) -> None:
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._file, 0, os.SEEK_END)
        except OSError as error:
            raise Unreadable(f"{path} can't be read: {error.strerror}") from None
        self._counts: Counter[tuple[str, str, str]] = Counter()
        self._rest = b""

    def read(self) -> Sequence[Measurement]:
        """All faults so far."""
        for record in self._records():
            reader = FaultReader()
            reader.read("kernel: " + record, 1, progress=False)
            for fault in reader.faults():
                key = (fault.kind.value, fault.device or "", "" if fault.xid is None else str(fault.xid))
                if key in self._counts or len(self._counts) < _KINDS:
                    self._counts[key] += 1
        return [
            Measurement("host_faults", float(count), device, (("fault", kind), *((("xid", xid),) if xid else ())))
            for (kind, device, xid), count in self._counts.items()
        ]

    def close(self) -> None:
        """Let go of the log."""
        os.close(self._file)

    def _records(self) -> list[str]:
        out: list[str] = []
        while len(out) < MOST_RECORDS:
            try:
                octets = os.read(self._file, _LONGEST_RECORD)
            except BlockingIOError:
                break
            except BrokenPipeError:  # records were overwritten before they were read: go on with the oldest there is
                continue
            if not octets:
                break
            lines = (self._rest + octets).split(b"\n")
            self._rest = lines.pop()[-_LONGEST_RECORD:]
            out += [line.decode("utf-8", "replace").partition(";")[2] for line in lines if line[:1].isdigit()]
        return out
