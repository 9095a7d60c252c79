"""Jobs that clients send: nothing in them is trusted, and no file of this machine is read for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from chipwise.errors import InputError
from chipwise.route.access import Identity
from chipwise.route.job import Job
from chipwise.route.ledger import Ledger
from chipwise.route.ledger.actor import Actor
from chipwise.route.load import Pools
from chipwise.route.load.jobs import jobs_of
from chipwise.route.submit import Submission, Submitter, submit_to

FILES = (("model", "hf"), ("serve", "trace"))  # keys of a workload that name files


def submit_documents(
    ledger: Ledger, documents: Any, policy: Any, pools: Pools, identity: Identity, actor: Actor, now: float
) -> Submission:
    """Check the documents of jobs again, make them the identity's, estimate them here, and write them, all or none."""
    if policy is not None and not isinstance(policy, str):
        raise InputError("policy", type(policy).__name__, "the name of a policy")
    jobs = [
        replace(job, owner=identity.owner_of(job.owner, f"jobs[{i}].owner"))
        for i, job in enumerate(_jobs(documents, now))
    ]
    teams = [identity.team if job.owner == identity.user else pools.access.team_of(job.owner) for job in jobs]
    return submit_to(ledger, jobs, pools, Submitter(actor, teams, scoped=True), policy=policy, now=now)


def _jobs(documents: Any, now: float) -> list[Job]:
    if not isinstance(documents, list) or not all(isinstance(document, dict) for document in documents):
        raise InputError("jobs", type(documents).__name__, "a list of jobs, each as a job file has it")
    for i, document in enumerate(documents):
        _refuse_files(document, f"jobs[{i}]")
    return jobs_of({"jobs": documents}, Path("/"), now)


def _refuse_files(document: Mapping[str, Any], where: str) -> None:
    """Refuse what names a file: this machine's files are not the client's to have read."""
    workload = document.get("workload")
    if isinstance(workload, str):
        raise InputError(f"{where}.workload", workload, "a workload's contents: the service reads no files")
    for section, key in FILES:
        inner = workload.get(section) if isinstance(workload, dict) else None
        if isinstance(inner, dict) and key in inner:
            raise InputError(
                f"{where}.workload.{section}.{key}",
                str(inner[key]),
                "a workload without files of its own: the service reads none",
            )
    variants = document.get("variants")
    for name, variant in variants.items() if isinstance(variants, dict) else ():
        if isinstance(variant, dict) and variant.get("program") is not None:
            raise InputError(
                f"{where}.variants.{name}.program",
                str(variant["program"]),
                "no program: the service compiles none, `chipwise check` does",
            )
