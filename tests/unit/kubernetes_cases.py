"""Launches for Kubernetes, manifests held to the schemas, and Kubernetes' own rule for $(NAME)."""

import functools
import json
import re
from pathlib import Path

import jsonschema
from kubernetes_server import now_text
from kubernetes_validate.utils import schema_contents
from referencing import Registry, Resource

from chipwise.catalog import load
from chipwise.predict.estimate import Estimate
from chipwise.route.backend import Launch
from chipwise.route.backends.kubernetes.render import manifest
from chipwise.route.job import Job, Variant
from chipwise.route.option import Option
from chipwise.route.pool import Pool

VERSION = "1.33.0"  # of Kubernetes
SCHEMAS = Path(__file__).parent / "kubernetes_schemas"
UID = "cw1"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"


def a_pool(name="h100", family="gpu", count=64, unit=1, terms="ondemand", **address):
    chip = name if name in load().chips else {"gpu": "h100", "tpu": "v5e"}[family]
    return Pool(name, "kubernetes", chip, family, count, unit, terms=terms, address=tuple(address.items()))


def a_launch(
    pool,
    chips=8,
    topology="",
    command=("python", "train.py"),
    attempt=f"{UID}-7-1",
    name="train",
    owner="",
    image="img:1",
    environment=None,
    secrets=(),
    variant="gpu",
    time_limit=None,
    folder=Path("/nowhere"),
):
    one = Variant(variant, pool.family, chips, command=tuple(command), image=image, secrets=tuple(secrets))
    option = Option(pool.name, variant, chips, topology, Estimate(60.0, 50.0, 70.0, "measured"), 1.0, 1.0)
    return Launch(
        attempt, 1, "7", Job(name, (one,), owner=owner), one, pool, option, folder, environment or {}, time_limit
    )


@functools.cache
def core(kind):
    """The strict schema of a core kind."""
    where = f"kubernetes-json-schema/v{VERSION}-local-strict"
    schema = schema_contents(f"{where}/{kind}.json", VERSION)
    definitions = Resource.from_contents(schema_contents(f"{where}/_definitions.json", VERSION))
    return jsonschema.Draft202012Validator(schema, registry=definitions @ (Resource.from_contents(schema) @ Registry()))


@functools.cache
def own(kind):
    return jsonschema.Draft202012Validator(json.loads((SCHEMAS / f"{kind}.json").read_text()))


def checked(launch, uid=UID):
    """The manifest of a launch, held to the schemas of its kind, templates included."""
    return valid(manifest(launch, uid))


def valid(made):
    """A manifest that the schemas of its kind accept."""
    json.dumps(made).encode()
    if made["kind"] == "Job":
        core("job-batch-v1").validate(made)
    elif made["kind"] == "JobSet":
        own("jobset").validate(made)
        for each in made["spec"]["replicatedJobs"]:
            core("job-batch-v1").validate(
                {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, "spec": each["template"]["spec"]}
            )
    else:
        own("rayjob").validate(made)
        cluster = made["spec"]["rayClusterSpec"]
        for each in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
            core("podtemplate-v1").validate(
                {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "x"}, "template": each["template"]}
            )
    names = [made["metadata"]["name"], *(v for _, v in labels(made))]
    assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", names[0]) and len(names[0]) <= 47
    for key, value in labels(made):
        assert re.fullmatch(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?", value) and len(value) <= 63, (key, value)
    return made


def labels(value):
    """Every label of an object and its templates."""
    if isinstance(value, dict):
        for key, inside in value.items():
            if key in ("labels", "nodeSelector"):
                yield from inside.items()
            yield from labels(inside)
    elif isinstance(value, list):
        for inside in value:
            yield from labels(inside)


def containers(made):
    """The containers of a manifest."""
    if isinstance(made, dict):
        yield from made.get("containers", ())
        for inside in made.values():
            yield from containers(inside)
    elif isinstance(made, list):
        for inside in made:
            yield from containers(inside)


def expanded(text, variables):
    """What Kubernetes makes of a string of a container's command, args or env.

    $(NAME) becomes the variable's value if there is one and stays as it is otherwise; $$ becomes $, so that $$(NAME)
    is never a reference. https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables
    """
    out, at = [], 0
    while at < len(text):
        if text[at] != "$" or at + 1 == len(text):
            out.append(text[at])
            at += 1
        elif text[at + 1] == "$":
            out.append("$")
            at += 2
        elif text[at + 1] == "(" and (end := text.find(")", at)) > 0:
            name = text[at + 2 : end]
            out.append(variables.get(name, f"$({name})"))
            at = end + 1
        else:
            out.append(text[at : at + 2])
            at += 2
    return "".join(out)


def condition(kind, reason="", message="", status="True"):
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": now_text(5)}


def pod(attempt="cw1-7-1", phase="Running", conditions=(), exit_code=None, node="node-1", waiting=None, **status):
    state = (
        {"terminated": {"exitCode": exit_code, "startedAt": now_text(60), "finishedAt": now_text(10)}}
        if exit_code is not None
        else {"waiting": waiting}
        if waiting
        else {"running": {"startedAt": now_text(60)}}
    )
    item = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"chipwise-attempt": attempt}},
        "spec": {"nodeName": node, "containers": [{"name": "program", "image": "x"}]},
        "status": {
            "phase": phase,
            "conditions": list(conditions),
            "containerStatuses": [
                {"name": "program", "image": "x", "imageID": "", "ready": True, "restartCount": 0, "state": state}
            ],
            **status,
        },
    }
    core("pod-v1").validate(item)
    return item
