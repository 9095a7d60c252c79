"""The launch of an answer: chosen by a tool's name, by the ending of a file, or the stack's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from chipwise.catalog import load
from chipwise.catalog.stacks import runs_on
from chipwise.errors import InputError, MissingInput, Refusal, UnknownName
from chipwise.io.atomic import atomic_write, check_writable
from chipwise.launch.described import Launchable, Replicas, TrainingRun
from chipwise.launch.job import ENDINGS as JOB_ENDINGS
from chipwise.launch.job import job_file
from chipwise.launch.script import Script, refused, script_of, wrapped
from chipwise.launch.tasks import Task, dstack_task, skypilot_task
from chipwise.launch.tools import CloudTool, Tool, cloud_tools, own_tool, tools
from chipwise.present.blocks import Block, Text, section
from chipwise.present.result import Result

JOB, STACK = "job", "stack"
TASKS = {"skypilot": skypilot_task, "dstack": dstack_task}
YAML = (".yaml", ".yml")
RUN = "YOUR_COMMAND"


@dataclass(frozen=True, slots=True, repr=False)
class Launch(Result):
    """A file that starts a run, for one tool, and what the tool can't be told."""

    VERB: ClassVar[str] = "launch"
    tool: str
    name: str
    version: str  # of the tool that the options were checked against; "" for chipwise's own
    date: str  # of that check
    text: str
    start: str  # the command that starts it, without the file
    notes: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {name: getattr(self, name) for name in ("tool", "version", "date", "start", "text", "notes")}

    def blocks(self) -> list[Block]:
        """For people: the file as it is."""
        return [Text(line) for line in self.text.splitlines()]

    def write(self, path: str | Path, field: str = "launch") -> Path:
        """Write the file, atomically; returns where."""
        target = Path(path)
        atomic_write(self.text.encode("utf-8"), target, field)
        return target

    def __str__(self) -> str:
        return self.text


def launch_names(work: str = "") -> list[str]:
    """Names of the tools that a launch can be written for.

    >>> launch_names("serve")
    ['vllm', 'sglang', 'tensorrt-llm', 'jetstream', 'skypilot', 'dstack', 'job']
    """
    own = [tool.id for tool in tools().values() if work in ("", tool.work)]
    return [*own, *cloud_tools(), JOB]


def launch(run: Launchable, tool: str | None = None, file: str | Path | None = None) -> Launch:
    """The launch of a run for a tool; by the ending of the file where no tool is named, else the stack's own."""
    name = tool or _by_ending(run, file)
    if name == JOB:
        return _job(run)
    if name in TASKS:
        return _task(run, cloud_tools()[name])
    known = tools().get(name or "")
    if name and name != STACK and (known is None or known.work != run.work):
        if tool is None:
            raise InputError("launch", str(file), f"a file for one of {', '.join(launch_names(run.work))}")
        raise UnknownName("launch_for", name, launch_names(run.work))
    program = known or _program(run)
    if program is None:
        raise Refusal(f"no launch is known for {run.stack.name}", _instead(run))
    return _own(run, program, file)


def check_launch_file(file: Path | None, tool: str | None) -> None:
    """Refuse, before anything is worked out, a tool that is not known or a file whose ending says nothing."""
    if tool is not None and file is None:
        raise MissingInput([("launch",)])
    check_writable(file, "launch")
    if tool is not None and tool not in launch_names():
        raise UnknownName("launch_for", tool, launch_names())
    if file is not None and tool is None and file.suffix in YAML and not _ending(file):
        plain = ", ".join(["NAME.sh", "NAME.sky.yaml", "NAME.dstack.yml", "NAME.maxtext.yml", "NAME.job.yaml"])
        raise InputError("launch", str(file), f"a name that says what it is for ({plain}), or --launch-for NAME")


def _ending(file: str | Path) -> str:
    """The tool that the ending of a file names, sky.yaml and NAME.sky.yaml alike; "" where it names none.

    >>> _ending("run.sky.yaml"), _ending("job.yaml"), _ending("run.sh"), _ending("whisky.yaml")
    ('skypilot', 'job', '', '')
    """
    endings = {ending: tool.id for tool in tools().values() for ending in tool.endings}
    endings |= {ending: tool.id for tool in cloud_tools().values() for ending in tool.endings}
    endings |= dict.fromkeys(JOB_ENDINGS, JOB)
    name = f".{Path(file).name.lower()}"
    return next((tool for ending, tool in endings.items() if name.endswith(ending)), "")


def _by_ending(run: Launchable, file: str | Path | None) -> str:
    return (_ending(file) if file is not None else "") or STACK


def _own(run: Launchable, tool: Tool, file: str | Path | None) -> Launch:
    if not _knows(tool, run):
        model = run.workload.model
        what = f"{model.name} ({model.family}) on {run.accelerators.chip.id}"
        raise Refusal(f"{tool.name} has no launch of {what}", _instead(run))
    if why := refused(run, tool):
        raise Refusal(f"no launch is written for {tool.name}: {why}", _instead(run))
    script = script_of(run, tool)
    notes = _notes(run, tool, script)
    if isinstance(run, Replicas) and run.replicas > 1:
        notes.append(f"starts one of {run.replicas} replicas: run it for each, behind a router")
    plain = file is not None and str(file).endswith(YAML) and bool(tool.config) and run.work == "train"
    if plain:
        how = [f"{variable} \\" for variable in script.env] + wrapped(script.command)
        lines = [
            *_head(run, tool.name, tool.version, notes),
            *(f"# {line}" for line in how),
            *script.config.splitlines(),
        ]
        return _launch(tool, lines, "python3 -m maxtext.trainers.pre_train.train", notes)
    lines = ["#!/usr/bin/env bash", *_head(run, tool.name, tool.version, notes), "set -e", *script.lines()]
    return _launch(tool, lines, "bash", notes)


def _launch(tool: Tool | CloudTool, lines: Sequence[str], start: str, notes: Sequence[str]) -> Launch:
    text = "\n".join(lines).rstrip("\n") + "\n"
    return Launch(tool.id, tool.name, tool.version, tool.date, text, start, tuple(notes))


def _notes(run: Launchable, tool: Tool | None, script: Script) -> list[str]:
    notes = list(script.notes)
    if tool is not None and run.stack.id not in tool.stacks:
        notes.append(f"the answer is that of {run.stack.name}, not of {tool.name}")
    notes += _alike(run)
    return notes


def _inner(run: Launchable, places: Mapping[str, str] | None) -> tuple[Script, list[str]]:
    """The command of the stack's own program inside a task or a job."""
    tool = _program(run)
    why = refused(run, tool) if tool is not None and _knows(tool, run) else ""
    if tool is None or not _knows(tool, run) or why:
        words = f"{RUN} stands for what trains or serves {run.workload.model.name} with {run.stack.name}"
        words += f" ({tool.name}: {why})" if tool is not None and why else ""
        return Script((), "", "", (RUN,), ()), [words]
    here = places
    if places and run.hosts.count == 1:  # one host: nothing to find out
        here = {name: text for name, text in places.items() if name != "torchrun"}
    script = script_of(run, tool, here)
    return script, _notes(run, tool, script)


def _task(run: Launchable, tool: CloudTool) -> Launch:
    script, notes = _inner(run, tool.run)
    task, more = TASKS[tool.id](run, tool, script)
    notes += more
    serves = task.get("type") == "service" or "service" in task
    lines = [*_head(run, tool.name, tool.version, notes), _dump(task)]
    return _launch(tool, lines, tool.serve if serves else tool.start, notes)


def _job(run: Launchable) -> Launch:
    torchrun = {"torchrun": ""} if run.work == "train" else None  # the router's backends set what torchrun reads
    script, notes = _inner(run, torchrun)
    job, more = job_file(run, script)
    notes += more
    lines = [*_head(run, "chipwise jobs", "", notes), _dump(job)]
    text = "\n".join(lines).rstrip("\n") + "\n"
    return Launch(JOB, "chipwise jobs", "", "", text, "chipwise jobs submit", tuple(notes))


def _head(run: Launchable, name: str, version: str, notes: Sequence[str]) -> list[str]:
    """Comments at the top: what it is of, what it is for, what is missing."""
    from chipwise.version import __version__

    made = f"for {name} {version}".rstrip()
    lines = [f"chipwise {__version__}: {subject(run)}, {made}", *(f"note: {words}" for words in notes)]
    return [f"# {line}" for line in lines]


def subject(run: Launchable) -> str:
    """What is launched, in a few words."""
    if isinstance(run, TrainingRun):
        return f"{run.workload.name} on {run.accelerators} as {run.layout}"
    axes = ",".join(f"{axis}={getattr(run, axis)}" for axis in ("tp", "pp", "dp", "ep") if getattr(run, axis) > 1)
    each = f"{run.replicas} x {axes or 'tp=1'}"
    return f"{run.workload.name} on {run.accelerators} as {each}"


def section_of(run: Launchable | None) -> list[Block]:
    """A short section beside an answer: what the answer decided, in the words of the stack's own program."""
    if run is None:
        return []
    tool = _program(run)
    others = ", ".join(name for name in _known(run) if tool is None or name != tool.id)
    if tool is None or not _knows(tool, run):
        return section("Launch", [f"none is known for {run.stack.name}; --launch-for names a tool: {others}"])
    if why := refused(run, tool):
        return section("Launch", [f"none is written for {tool.name}: {why}; --launch-for names a tool: {others}"])
    script = script_of(run, tool, brief=True)
    left = [f"... and {script.left_out} more pieces, of the model and its data"] if script.left_out else []
    copies = [f"one of {run.replicas} replicas:"] if isinstance(run, Replicas) and run.replicas > 1 else []
    more = f"--launch FILE writes the whole of it; for another tool with --launch-for {others}"
    lines = [*copies, *script.lines(), *left, *(f"note: {words}" for words in (*script.notes, *_alike(run))), more]
    return section(f"Launch with {tool.name} {tool.version}", lines)


def _alike(run: Launchable) -> list[str]:
    """That replicas which were timed for prompts alone are started as the others."""
    if not isinstance(run, Replicas) or not run.prefill_replicas:
        return []
    return [f"not expressed: {run.prefill_replicas} more for prefill alone; all are started alike"]


def _known(run: Launchable) -> list[str]:
    """Names of the tools that this run can be launched with."""
    own = [name for name, tool in tools().items() if _can(tool, run)]
    return [*own, *cloud_tools(), JOB]


def _instead(run: Launchable) -> str:
    return f"launches are known for {', '.join(_known(run))}"


def _can(tool: Tool, run: Launchable) -> bool:
    return tool.work == run.work and _knows(tool, run) and not refused(run, tool)


def _program(run: Launchable) -> Tool | None:
    """The stack's own program, which is the one that was timed."""
    return own_tool(run.stack.id, isinstance(run, TrainingRun) and run.workload.train.lora_rank > 0)


def _knows(tool: Tool, run: Launchable) -> bool:
    """Whether a tool has models of the kind, and runs on the chips."""
    chip, stacks = run.accelerators.chip, load().stacks
    runs = any(runs_on(stacks[stack], chip) for stack in tool.stacks or ("pytorch",) if stack in stacks)
    return runs and (not tool.families or run.workload.model.family in tool.families)


def _dump(task: Task) -> str:
    """YAML with scripts as blocks that people can read."""
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    def text(dumper: Any, words: str) -> Any:
        style = "|" if "\n" in words else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", words, style=style)

    Dumper.add_representer(str, text)
    return str(yaml.dump(task, Dumper=Dumper, sort_keys=False, width=1000, allow_unicode=True))
