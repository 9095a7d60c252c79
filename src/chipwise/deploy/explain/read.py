"""Files of what engines say, by what is in them: objects of kubectl, or the queue of Slurm."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from chipwise.deploy.explain import kubernetes, slurm
from chipwise.deploy.explain.records import WaitingJob
from chipwise.errors import InputError
from chipwise.io.files import read_json
from chipwise.route.backend import BackendDown
from chipwise.route.backends.slurm.read import jobs_from_json

EXPECTED = (
    "what `kubectl get pods,jobs,jobsets,workloads,provisioningrequests,events -A -o json` or `squeue --json` prints"
)


def waiting_jobs(sources: Sequence[Path | Mapping[str, Any]], now: datetime) -> list[WaitingJob]:
    """What waits by all files together: events of one may tell of pods of another."""
    items: list[Mapping[str, Any]] = []
    jobs: list[WaitingJob] = []
    for source in sources:
        name = str(source) if isinstance(source, Path) else "mapping"
        document = read_json(source) if isinstance(source, Path) else source
        if isinstance(document.get("jobs"), list):
            try:
                jobs.extend(slurm.waiting(jobs_from_json(json.dumps(document), name)))
            except BackendDown as error:
                raise InputError("file", name, f"{EXPECTED} ({error})") from None
        else:
            items.extend(_objects(document, name))
    return [*jobs, *kubernetes.waiting(items, now)]


def _objects(document: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    rows = document.get("items") if str(document.get("kind", "")).endswith("List") else [document]
    if not isinstance(rows, list) or not all(
        isinstance(row, Mapping) and isinstance(row.get("kind"), str) for row in rows
    ):
        raise InputError("file", name, EXPECTED)
    return rows
