"""Kubernetes' files read: every object with its place, held to the fields of its kind."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from chipwise.deploy.check.findings import Defect, Finding
from chipwise.deploy.check.schema import violations
from chipwise.deploy.data_files import data_text
from chipwise.errors import BrokenFile
from chipwise.io.files import MAX_YAML_BYTES, parse_yaml, read_text

# served still, and fields of the new version in it are dropped without a word; kubernetes-sigs/kueue, 2026-11-15
OLD = {"kueue.x-k8s.io/v1beta1": "kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1alpha1": "kueue.x-k8s.io/v1beta2"}
CHECKED_BY_CORE = "kubernetes_validate"  # kinds of Kubernetes itself, where this package is installed
CORE_VERSION = "1.33"  # of Kubernetes, whose schemas core kinds are held to


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeObject:
    """An object and where it stands."""

    file: str
    content: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """Its kind."""
        return str(self.content.get("kind", ""))

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.metadata.get("name", ""))

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Name, labels, annotations."""
        metadata = self.content.get("metadata")
        return metadata if isinstance(metadata, Mapping) else {}

    @property
    def spec(self) -> Mapping[str, Any]:
        """What is asked for."""
        spec = self.content.get("spec")
        return spec if isinstance(spec, Mapping) else {}

    def finding(self, defect: Defect, field: str, what: str, fix: str) -> Finding:
        """A finding in it."""
        return Finding(
            defect=defect, file=self.file, field=f"{self.kind} {self.name} {field}".strip(), what=what, fix=fix
        )


def read_objects(root: Path) -> tuple[list[KubeObject], list[Finding]]:
    """Every object of the tree's manifests, and files that can't be read."""
    objects: list[KubeObject] = []
    findings: list[Finding] = []
    for path in sorted((root / "kubernetes").rglob("*.yaml")):
        file = str(path.relative_to(root))
        try:
            texts = read_text(path, MAX_YAML_BYTES).split("\n---\n")
            contents = [parse_yaml(text, file, such="`kind: JobSet`") for text in texts if text.strip()]
        except BrokenFile as error:
            what = f"{error.value!r} can't be read"
            findings.append(Finding(defect=Defect.SYNTAX, file=file, field=error.field, what=what, fix=error.accepted))
            continue
        objects += [KubeObject(file=file, content=content) for content in contents]
    return objects, findings


@cache
def custom_resources() -> Mapping[str, Any]:
    """Fields of the kinds that Kueue and JobSet add."""
    schemas: Mapping[str, Any] = json.loads(data_text("custom_resources.json"))["specs"]
    return schemas


def check_fields(objects: list[KubeObject]) -> Iterator[Finding]:
    """Versions and fields of each object."""
    for item in objects:
        version = str(item.content.get("apiVersion", ""))
        if version in OLD:
            what = f"{version} is deprecated: fields of {OLD[version]} in it are dropped without a word"
            yield item.finding(Defect.OLD_API, "apiVersion", what, f"apiVersion: {OLD[version]}")
        schema = custom_resources().get(f"{OLD.get(version, version)} {item.kind}")
        if schema is not None:
            for field, what, fix in violations(dict(item.spec), schema, "spec"):
                yield item.finding(Defect.FIELD, field, what, fix)
        elif "." not in version.partition("/")[0] or version.partition("/")[0].endswith(".k8s.io"):
            yield from _check_core(item)
        for index, pods in enumerate(_job_templates(item)):
            job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": pods}
            yield from _check_core(KubeObject(file=item.file, content=job), item, f"spec.replicatedJobs[{index}]")


def core_is_checked() -> bool:
    """Whether kinds of Kubernetes itself are checked here."""
    from importlib.util import find_spec

    return find_spec(CHECKED_BY_CORE) is not None


def _job_templates(item: KubeObject) -> Iterator[Any]:
    jobs = item.spec.get("replicatedJobs") if item.kind == "JobSet" else None
    for job in jobs if isinstance(jobs, list) else ():
        template = job.get("template") if isinstance(job, Mapping) else None
        if isinstance(template, Mapping):
            yield template.get("spec")


def _check_core(item: KubeObject, owner: KubeObject | None = None, where: str = "") -> Iterator[Finding]:
    if not core_is_checked() or item.kind == "Kustomization":
        return
    from kubernetes_validate import ValidationError, validate

    try:
        validate(dict(item.content), CORE_VERSION, strict=True)
    except ValidationError as error:
        path = ".".join(str(part) for part in error.path)
        field = f"{where}.{path}".strip(".") if owner is not None else path
        yield (owner or item).finding(Defect.FIELD, field, error.message[:200], "a field as Kubernetes has it")
