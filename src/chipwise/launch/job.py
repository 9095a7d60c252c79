"""A job file of `chipwise jobs submit`: the run's command, chips and layout, and the workload or the time it takes."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from chipwise.errors import ChipwiseError, Refusal
from chipwise.launch.described import Launchable, TrainingRun
from chipwise.launch.script import Script
from chipwise.predict.model.layouts import parse_layout
from chipwise.units import DAY
from chipwise.workload.load import load_workload
from chipwise.workload.model import PICTURES, Workload

ENDINGS = (".job.yaml", ".job.yml")
FAMILIES = ("gpu", "tpu")  # those of the router's pools


def job_file(run: Launchable, script: Script) -> tuple[dict[str, Any], list[str]]:
    """The contents of a job file, and what it can't say."""
    chip = run.accelerators.chip
    if chip.family not in FAMILIES:
        raise Refusal(f"the router has no pools of {chip.id}", f"its families are {' and '.join(FAMILIES)}")
    variant: dict[str, Any] = {"on": [chip.id]}
    job: dict[str, Any] = {
        "name": run.workload.name,
        "command": ["bash", "-c", "\n".join(script.lines()) + "\n"],
        "chips": run.chips,
    }
    notes: list[str] = []
    if isinstance(run, TrainingRun):
        contents = workload_contents(run.workload)
        if contents:
            job["workload"] = contents
        else:
            notes.append("not expressed: the model, which is none known by name: `workload:` may name its file")
        named = str(run.layout)
        if contents and _readable(named, run):
            variant["layout"] = named
        else:
            notes.append(f"not expressed: the layout {named}")
    if "workload" not in job:
        job["estimates"] = {chip.id: _declared(run, notes)}
    if not isinstance(run, TrainingRun) and run.replicas > 1:
        notes.append(f"one replica of {run.replicas}: submit the job as often")
    job["variants"] = {chip.family: variant}
    return job, notes


def workload_contents(workload: Workload) -> dict[str, Any] | None:
    """A workload as its file has it; None where the model is not one known by name."""
    t = workload.train
    defaults = {"lora_rank": 0, "lora_targets": "attention", "lora_base": "", "stack": "", "samples_unit": "sequences"}
    train = {key: value for key, value in asdict(t).items() if value != defaults.get(key, object())}
    train.pop("samples_unit", None)
    if t.samples_unit in PICTURES:
        train.pop("sequence", None)
    if t.lora_rank:
        train["lora"] = {"rank": train.pop("lora_rank"), "targets": t.lora_targets}
        train.pop("lora_targets", None)
        if base := train.pop("lora_base", ""):
            train["lora"]["base"] = base
    contents = {"name": workload.name, "model": workload.model.name, "train": train}
    try:
        again = load_workload(_yaml(contents))
    except ChipwiseError:
        return None
    return contents if again == workload else None


def _readable(layout: str, run: TrainingRun) -> bool:
    t, m = run.workload.train, run.workload.model
    try:
        return parse_layout(layout, run.chips, t.global_batch, m.heads) == run.layout
    except ChipwiseError:
        return False


def _declared(run: Launchable, notes: list[str]) -> dict[str, str]:
    if run.duration is None:
        notes.append("a service has no end: the job is declared to run for a day")
        return {"time": f"{DAY:.0f}s"}
    low, value, high = run.duration.low, run.duration.value, run.duration.high
    return {"time": f"{value:.0f}s", "low": f"{low:.0f}s", "high": f"{high:.0f}s"}


def _yaml(contents: dict[str, Any]) -> str:
    import yaml

    return str(yaml.safe_dump(contents, sort_keys=False))
