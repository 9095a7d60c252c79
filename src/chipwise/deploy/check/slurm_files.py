"""Files of Slurm's configuration: lines of keys and values, what they include, and lists of hosts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from chipwise.deploy.check.findings import Defect, Finding
from chipwise.deploy.check.schema import nearest
from chipwise.io.files import read_text

MOST_NODES = 100_000  # of one list: a typing error in a range is told, not expanded
LISTS = frozenset({"nodename", "nodes", "file", "suspendexcnodes"})  # keys with lists
RANGE = re.compile(r"\[([0-9,-]+)\]")
# keys of lines that name nodes and partitions (slurm.conf(5), 22.05 to 25.05), and of gres.conf and topology.conf
KEYS = {
    "NodeName": "NodeName NodeHostname NodeAddr BcastAddr Boards CoreSpecCount CoresPerSocket CpuBind CPUs CpuSpecList"
    " Feature Features Gres MemSpecLimit Port Procs RealMemory Reason RestrictedCoresPerGPU Sockets SocketsPerBoard"
    " State ThreadsPerCore TmpDisk Topology Weight Name Type Count File Cores Links Flags AutoDetect MultipleFiles",
    "PartitionName": "PartitionName AllocNodes AllowAccounts AllowGroups AllowQos Alternate CpuBind Default"
    " DefaultTime DefCpuPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode DenyAccounts DenyQos DisableRootJobs"
    " ExclusiveUser ExclusiveTopo GraceTime Hidden LLN MaxCPUsPerNode MaxCPUsPerSocket MaxMemPerCPU MaxMemPerNode"
    " MaxNodes MaxTime MinNodes Nodes OverSubscribe OverTimeLimit PowerDownOnIdle PreemptMode PriorityJobFactor"
    " PriorityTier QOS ReqResv ResumeTimeout RootOnly SelectTypeParameters State SuspendTime SuspendTimeout Topology"
    " TRESBillingWeights",
    "SwitchName": "SwitchName Switches Nodes LinkSpeed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfLine:
    """A line: its keys and values, in small letters as Slurm takes them."""

    file: str
    line: int
    values: dict[str, str]

    @property
    def kind(self) -> str:
        """The key that it begins with."""
        return next(iter(self.values), "")


def read_conf(folder: Path, name: str) -> tuple[list[ConfLine], list[Finding]]:
    """The lines of a file and of those that it includes, and what can't be read of them."""
    lines: list[ConfLine] = []
    findings: list[Finding] = []
    path = folder / "slurm" / name
    file = f"slurm/{name}"
    if not path.is_file():
        fix = "write the tree again, or leave out the line that includes it"
        return [], [Finding(defect=Defect.SYNTAX, file=file, field="", what="there is no such file", fix=fix)]
    for number, text in enumerate(read_text(path).splitlines(), 1):
        words = text.split("#", 1)[0].split()
        if not words:
            continue
        if words[0].lower() == "include" and len(words) == 2:
            included, broken = read_conf(folder, words[1])
            lines += included
            findings += broken
            continue
        values = {}
        for word in words:
            key, equals, value = word.partition("=")
            if not (key and equals):
                what = f"{word} is no KEY=VALUE"
                findings.append(
                    Finding(defect=Defect.SYNTAX, file=file, line=number, field=key, what=what, fix="KEY=VALUE")
                )
            values[key.lower()] = value
        line = ConfLine(file=file, line=number, values=values)
        lines.append(line)
        findings += [*_unknown(line, words), *_broken_lists(line)]
    return lines, findings


def _unknown(line: ConfLine, words: list[str]) -> Iterator[Finding]:
    keys = next((KEYS[kind].split() for kind in KEYS if kind.lower() == line.kind), None)
    if keys is None:
        return
    accepted = {key.lower() for key in keys}
    for word in words:
        key = word.partition("=")[0]
        if key.lower() not in accepted:
            what = f"Slurm knows no {key} on a line that begins with {words[0].partition('=')[0]}"
            yield Finding(
                defect=Defect.UNKNOWN_ARGUMENT,
                file=line.file,
                line=line.line,
                field=key,
                what=what,
                fix=nearest(key, keys),
            )


def _broken_lists(line: ConfLine) -> Iterator[Finding]:
    for key in LISTS & set(line.values):
        try:
            hosts(line.values[key])
        except ValueError:
            what = f"{line.values[key]} is no list of hosts or files"
            yield Finding(defect=Defect.SYNTAX, file=line.file, line=line.line, field=key, what=what, fix="NAME-[0-3]")


def hosts(text: str) -> list[str]:
    """The hosts of a list in Slurm's notation.

    >>> hosts("a-[0-1]-[0-1],b"), hosts("c-[01-02,7]")
    (['a-0-0', 'a-0-1', 'a-1-0', 'a-1-1', 'b'], ['c-01', 'c-02', 'c-7'])
    """
    names: list[str] = []
    for part in re.findall(r"[^,\[]*(?:\[[^\]]*\][^,\[]*)*", text):
        if not part:
            continue
        pieces = RANGE.split(part)  # text and ranges in turn
        if any("[" in piece or "]" in piece for piece in pieces[::2]):
            raise ValueError(text)
        choices = [_numbers(piece) if place % 2 else [piece] for place, piece in enumerate(pieces)]
        names += ["".join(choice) for choice in product(*choices)]
        if len(names) > MOST_NODES:
            raise ValueError(text)
    return names


def _numbers(text: str) -> list[str]:
    numbers: list[str] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        end = int(last) if dash else int(first)
        if end - int(first) > MOST_NODES:
            raise ValueError(text)
        numbers += [str(number).zfill(len(first)) for number in range(int(first), end + 1)]
    return numbers
