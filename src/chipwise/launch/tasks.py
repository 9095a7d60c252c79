"""Tasks of SkyPilot and dstack: machines of the offer's cloud, and the run's command on them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from chipwise.catalog import Offer, load
from chipwise.errors import Refusal
from chipwise.launch.described import Launchable, Replicas
from chipwise.launch.script import Script, checkpoint
from chipwise.launch.tools import CloudTool, accelerator_names

PORT = 8000  # of vLLM and TensorRT-LLM; SGLang's is 30000
PORTS = {"sglang": 30000, "jetstream": 9000}
SKYPILOT = "skypilot-catalog"  # in the source of an offer
YOURS = ("DATASET", "MAXTEXT", "OUTPUT")  # variables of commands that stand for what the user has
MARKET = re.compile(r"^\d+x_([A-Za-z0-9-]+?)(?:_|$)")  # instances of RunPod and its like name the accelerator
ANYWHERE = ("any", "global", "")  # regions of price lists that are none
TASK_LENGTH = 40  # characters of a name: dstack's limit is 41

Task = dict[str, Any]


def skypilot_task(run: Launchable, tool: CloudTool, script: Script) -> tuple[Task, list[str]]:
    """A task of SkyPilot, and what it can't say."""
    resources, notes = _skypilot_resources(run, tool)
    task: Task = {"name": task_name(run)}
    nodes = 1 if run.accelerators.chip.family == "tpu" else run.hosts.count
    if nodes > 1:
        task["num_nodes"] = nodes
        notes.append("hosts have to be joined by a fast network: network_tier: best, where the cloud has one")
    task["resources"] = resources
    if isinstance(run, Replicas) and run.duration is None:
        resources["ports"] = _port(run)
        task["service"] = {"readiness_probe": "/v1/models", "replicas": run.replicas}
    elif isinstance(run, Replicas):
        notes.append(f"{run.replicas} replicas share the job: start the task as often, each with its part")
    if script.install:
        task["setup"] = script.install + "\n"
    if variables := yours(script):
        task["envs"] = dict.fromkeys(variables)
        notes.append(f"{' and '.join(variables)}: yours, given with --env")
    task["run"] = "\n".join(script.lines()) + "\n"
    return task, notes


def _skypilot_resources(run: Launchable, tool: CloudTool) -> tuple[Task, list[str]]:
    acc, offer = run.accelerators, run.offer
    resources: Task = {}
    infra, notes = _cloud(run, tool)
    if infra and offer is not None:
        resources["infra"] = "/".join([infra, *_regions(offer)])
    name = _name(run, tool)
    if acc.chip.family == "tpu":
        slices = 1 if isinstance(run, Replicas) else acc.slices
        if slices > 1:
            raise Refusal(
                f"SkyPilot starts one TPU slice, {acc} are {slices}",
                "XPK starts several",
            )
        return {**resources, "accelerators": f"{name}-{_tpu_size(run)}"}, notes
    market = MARKET.match(offer.instance) if offer is not None and infra else None
    hosts = run.hosts
    resources["accelerators"] = f"{market.group(1) if market else name}:{hosts.sold}"
    if infra and offer is not None and _known(offer):
        resources["instance_type"] = offer.instance
    return resources, [*notes, *_spare(run)]


def dstack_task(run: Launchable, tool: CloudTool, script: Script) -> tuple[Task, list[str]]:
    """A task or a service of dstack, and what it can't say."""
    acc, hosts = run.accelerators, run.hosts
    service = isinstance(run, Replicas) and run.duration is None
    if acc.chip.family == "tpu" and run.chips > acc.chip.fabric.host_chips:
        raise Refusal(
            f"dstack starts TPUs of one host, {acc} has more", "--launch-for skypilot, or GKE, starts larger slices"
        )
    if service and hosts.count > 1:
        raise Refusal(f"dstack starts a replica on one host, not on {hosts.count}", "--launch-for skypilot does")
    backend, notes = _cloud(run, tool)
    task: Task = {"type": "service" if service else "task", "name": task_name(run)}
    if service and isinstance(run, Replicas):
        task |= {"port": _port(run), "replicas": run.replicas}
        model, known = checkpoint(run.workload.model)
        if known:
            task["model"] = model
    elif isinstance(run, Replicas):
        notes.append(f"{run.replicas} replicas share the job: start the task as often, each with its part")
    if hosts.count > 1 and not service:
        task["nodes"] = hosts.count
    if variables := yours(script):
        task["env"] = variables  # by name alone: dstack asks for them
    task["commands"] = [*([script.install] if script.install else []), "\n".join(script.lines()) + "\n"]
    name = _name(run, tool)
    gpu = f"{name}-{_tpu_size(run)}" if acc.chip.family == "tpu" else f"{name}:{hosts.sold}"
    task["resources"] = {"gpu": gpu}
    if backend and run.offer is not None:
        task["backends"] = [backend]
        if regions := _regions(run.offer):
            task["regions"] = regions
        if acc.chip.family != "tpu" and _known(run.offer):
            task["instance_types"] = [run.offer.instance]
    task["spot_policy"] = "on-demand"
    return task, [*notes, *_spare(run)]


def _known(offer: Offer) -> bool:
    """Whether an instance has the name that its cloud gives it: those of SkyPilot's catalog do, price pages may not."""
    return SKYPILOT in offer.source and not offer.instance.startswith("(")


def yours(script: Script) -> list[str]:
    """The variables of a script that nothing sets: those in capitals that stand for the user's own.

    >>> yours(Script((), "", "", ("run --data $DATASET", "--out $OUTPUT --rank $SKYPILOT_NODE_RANK"), ()))
    ['DATASET', 'OUTPUT']
    """
    named = dict.fromkeys(re.findall(r"\$([A-Z][A-Z_]*)", "\n".join((*script.command, script.config))))
    set_here = {variable.partition("=")[0] for variable in script.env}
    return [name for name in named if name in YOURS and name not in set_here]


def task_name(run: Launchable) -> str:
    """A name that SkyPilot and dstack both take.

    >>> from types import SimpleNamespace as Some
    >>> task_name(Some(workload=Some(name="Llama 3.1_70B!")))
    'llama-3-1-70b'
    """
    slug = re.sub(r"[^a-z0-9]+", "-", run.workload.name.lower()).strip("-")
    return (slug if slug[:1].isalpha() else f"run-{slug}")[:TASK_LENGTH].rstrip("-")


def _cloud(run: Launchable, tool: CloudTool) -> tuple[str, list[str]]:
    """The tool's name of the offer's cloud, and what is to be said of it."""
    if run.offer is None:
        return "", [f"no offer was priced: {tool.name} picks the cloud"]
    known: Mapping[str, str] = tool.clouds
    if run.offer.cloud in known:
        return known[run.offer.cloud], []
    return "", [f"{tool.name} has no cloud {run.offer.cloud}, whose price was taken: it picks another"]


def _regions(offer: Offer) -> list[str]:
    """The region of an offer; none where the list names all of them, or a place that is no name."""
    return [] if offer.region in ANYWHERE or "/" in offer.region else [offer.region]


def _name(run: Launchable, tool: CloudTool) -> str:
    chip = run.accelerators.chip.id
    name = accelerator_names().get(chip, {}).get(tool.id, "")
    if not name:
        raise Refusal(f"{tool.name} has no name for {chip}", "--launch-for names another tool")
    return name


def _tpu_size(run: Launchable) -> int:
    """The number in the name of a slice: of cores or of chips, as Google counts them."""
    slices = load().slices[run.accelerators.chip.id]
    return run.chips * 2 if slices.counts == "cores" else run.chips


def _spare(run: Launchable) -> list[str]:
    hosts = run.hosts
    if hosts.sold <= hosts.chips:
        return []
    kept = f"an instance has {hosts.sold} chips, this takes {hosts.chips} of them"
    return [f"{kept}: the price counts chips used, the task rents whole instances"]


def _port(run: Launchable) -> int:
    return PORTS.get(run.stack.id, PORT)
