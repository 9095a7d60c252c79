"""A tool's pieces filled in: variables, a config file and a command line, as a shell script."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from chipwise.launch import serving, training
from chipwise.launch.described import Launchable, TrainingRun
from chipwise.launch.tools import Part, Tool
from chipwise.workload.model import Model
from chipwise.workload.presets import preset_entry, preset_names

WIDTH = 100  # characters of a line of a command
HUB = "https://huggingface.co/"
PLACES = {"torchrun": "", "node_rank": "$NODE_RANK", "master": "$MASTER_ADDR"}


@dataclass(frozen=True, slots=True)
class Script:
    """What a run is started by."""

    env: tuple[str, ...]
    config: str  # YAML; "": none
    config_file: str
    command: tuple[str, ...]  # an option with its values a piece
    notes: tuple[str, ...]
    left_out: int = 0  # pieces, of a brief one
    install: str = ""  # what a machine without the tool runs first

    def lines(self) -> list[str]:
        """As shell: variables, the config file, the command."""
        out = [f"export {variable}" for variable in self.env]
        if self.config:
            out += [f"cat > {self.config_file} <<'END'", *self.config.splitlines(), "END"]
        return out + wrapped(self.command)


def script_of(run: Launchable, tool: Tool, places: Mapping[str, str] | None = None, brief: bool = False) -> Script:
    """A tool's pieces with the run's numbers in them.

    `places` says how a command learns which host it is on (default: NODE_RANK and MASTER_ADDR); a `brief` one has the
    pieces alone that the answer decided.
    """
    if isinstance(run, TrainingRun):
        values, holds = training.fields(run, tool), training.conditions(run, tool)
    else:
        values, holds = serving.fields(run, tool), serving.conditions(run, tool)
    model, known = checkpoint(run.workload.model)
    where = {**PLACES, "torchrun": _torchrun(run), **(places or {})}
    where["accelerate"] = _accelerate(run, where)
    values = {**values, **where, "model": model, "config_file": tool.config_file}
    wanted = _brief if brief and run.work == "train" else _all
    whole = {"env": tool.env, "config": tool.config, "command": tool.command}
    config = _texts(wanted(tool.config), values, holds)
    holds = {**holds, "config": bool(config)}
    env, command = (_texts(wanted(whole[part]), values, holds) for part in ("env", "command"))
    notes = _texts(_decided(tool.notes) if brief else tool.notes, values, holds)
    if not known and "MODEL" in " ".join(command):
        notes.append(f"MODEL stands for a checkpoint of {run.workload.model.name}")
    pieces = sum(len(_texts(parts, values, holds)) for parts in whole.values())
    left_out = pieces - len(env) - len(config) - len(command)
    install = tool.install.format(version=tool.version)
    if tool.id == "vllm" and run.accelerators.chip.family == "tpu":
        install = install.replace("vllm", "vllm-tpu")
    return Script(tuple(env), "\n".join(config), tool.config_file, tuple(command), tuple(notes), left_out, install)


def refused(run: Launchable, tool: Tool) -> str:
    """Why a tool has no launch of a run; "" where it has one."""
    if isinstance(run, TrainingRun):
        values, holds = training.fields(run, tool), training.conditions(run, tool)
    else:
        values, holds = serving.fields(run, tool), serving.conditions(run, tool)
    return "; ".join(_texts(tool.refusals, values, holds)[:1])


def checkpoint(model: Model) -> tuple[str, bool]:
    """The Hugging Face id of a model: the one that was asked for, else its own; MODEL where none is known.

    >>> from chipwise.workload.presets import preset
    >>> checkpoint(preset("llama-3.1-8b")), checkpoint(preset("Qwen/Qwen3-32B-FP8"))
    (('meta-llama/Llama-3.1-8B', True), ('Qwen/Qwen3-32B-FP8', True))
    """
    if model.taken_from.count("/") == 1:
        return model.taken_from, True
    path = model.source.removeprefix(HUB).split()[0] if model.source.startswith(HUB) else ""
    if not path and model.name in preset_names():
        path = next((alias for alias in preset_entry(model.name).aliases if "/" in alias), "")
    return (path, True) if path.count("/") == 1 else ("MODEL", False)


def wrapped(words: Sequence[str], width: int = WIDTH) -> list[str]:
    """Pieces of a command over lines that the shell reads as one.

    >>> wrapped(["torchrun x.py", "--a 1", "--b 2"], 20)
    ['torchrun x.py --a 1 \\\\', '  --b 2']
    """
    lines = [""]
    for word in (part for piece in words for part in _cut(piece, width)):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append(f"  {word}")
        else:
            lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:] if words else []


def _cut(piece: str, width: int) -> list[str]:
    """A piece, or its options one by one where it is longer than a line."""
    return [piece] if len(piece) <= width else re.split(r" (?=--)", piece)


def _torchrun(run: Launchable) -> str:
    hosts = run.hosts
    per_host = hosts.chips * run.accelerators.chip.devices
    if hosts.count == 1:
        return f"--standalone --nproc-per-node {per_host}"
    return (
        f"--nnodes {hosts.count} --nproc-per-node {per_host} --node-rank $NODE_RANK "
        f"--master-addr $MASTER_ADDR --master-port {serving.PORT}"
    )


def _accelerate(run: Launchable, where: Mapping[str, str]) -> str:
    processes = f"--num_processes {run.chips * run.accelerators.chip.devices}"
    if run.hosts.count == 1:
        return f"{processes} --num_machines 1"
    return (
        f"{processes} --num_machines {run.hosts.count} --machine_rank {where['node_rank']} "
        f"--main_process_ip {where['master']} --main_process_port {serving.PORT}"
    )


def _decided(notes: Iterable[Part]) -> list[Part]:
    """Those that hang on the run."""
    return [note for note in notes if note.when]


def _all(parts: Iterable[Part]) -> list[Part]:
    return list(parts)


def _brief(parts: Iterable[Part]) -> list[Part]:
    return [part for part in parts if part.brief]


def _texts(parts: Iterable[Part], values: Mapping[str, object], holds: Mapping[str, bool]) -> list[str]:
    return [part.text.format(**values).replace("torchrun  ", "torchrun ") for part in parts if part.holds(holds)]
