"""Verbs that put machines up: deploy_write, deploy_check, deploy_explain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chipwise.deploy.check.view import TreeCheck
    from chipwise.deploy.deployment import Term
    from chipwise.deploy.explain.view import WaitingJobs
    from chipwise.deploy.view import WrittenDeployment
    from chipwise.knowledge import Knowledge


def deploy_write(
    source: str | Path | Mapping[str, Any],
    to: str | Path,
    *,
    target: str = "gke",
    name: str | None = None,
    only: Sequence[str] = (),
    region: str | None = None,
    zone: str | None = None,
    term: str | Mapping[str, str] | None = None,
    topology: Mapping[str, str] | None = None,
    reservation: Mapping[str, str] | None = None,
    row: str | None = None,
    period: str | None = None,
    knowledge: Knowledge | None = None,
) -> WrittenDeployment:
    """Write a pools file, a comparison or a fleet plan as the files that put its machines up, into a folder.

    `target` says for what: ``gke``. `term` is ``ondemand``, ``spot``, ``reserved`` or ``flex-start``, for all pools or
    by pool; `topology` and `reservation` are by pool; `only` names the pools that are written, default: all. Of a
    comparison `row` is taken, default: its pick; of a plan a `period`, default: the first.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = deploy_write("examples/pools/kubernetes.yaml", folder)
    >>> [pool.machine for pool in written.deployment.pools]
    ['a3-highgpu-8g', 'ct5lp-hightpu-4t', 'ct5lp-hightpu-4t']
    """
    from chipwise.deploy.plan import Choices, deployment_of
    from chipwise.deploy.read import read_source
    from chipwise.deploy.targets.find import find_target
    from chipwise.deploy.view import WrittenDeployment
    from chipwise.deploy.write import write

    destination = find_target(target)
    by_pool = {"": term} if isinstance(term, str) else term or {}
    terms = {pool: _term(text) for pool, text in by_pool.items()}
    made = read_source(source, row=row, period=period, terms=terms, knowledge=knowledge)
    choices = Choices(
        name=name,
        only=only,
        region=region,
        zone=zone,
        terms=terms,
        topologies=topology or {},
        reservations=reservation or {},
    )
    deployment = deployment_of(made, destination, choices)
    folder = Path(to)
    return WrittenDeployment(
        deployment=deployment, target=target, folder=folder, files=write(deployment, destination, folder)
    )


def deploy_check(folder: str | Path) -> TreeCheck:
    """Check a tree that `deploy_write` wrote, and that was perhaps edited, as a whole before it is applied.

    Terraform against the provider's schema, manifests against the fields of their kinds, and the chain from a pod to
    its chips: queue, quota, topology, hosts, labels, tolerations, reservation, budget.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = deploy_write("examples/pools/kubernetes.yaml", folder)
    ...     deploy_check(folder).good
    True
    """
    from chipwise.deploy.check.run import check_tree
    from chipwise.deploy.check.view import TreeCheck

    return TreeCheck(folder=Path(folder), checked=check_tree(Path(folder)))


def _term(text: str) -> Term:
    from chipwise.deploy.deployment import Term
    from chipwise.errors import UnknownName

    if text not in list(Term):
        raise UnknownName("term", text, list(Term))
    return Term(text)


def deploy_explain(
    *sources: str | Path | Mapping[str, Any], job: str | None = None, knowledge: Knowledge | None = None
) -> WaitingJobs:
    """Why jobs wait: each with a typed reason, the words of its engine and what to do, of what kubectl or Slurm print.

    `sources` are files, or the same as dictionaries: objects of ``kubectl get ... -o json`` (pods, jobs, job sets,
    workloads of Kueue, provisioning requests, events) or the answer of ``squeue --json``. `job` names one of them.

    >>> gated = {"kind": "Workload", "metadata": {"name": "train"}, "status": {"conditions": [
    ...     {"type": "QuotaReserved", "status": "False", "message": "resource cpu unavailable in ClusterQueue"}]}}
    >>> [str(job.wait) for job in deploy_explain(gated).jobs]
    ['resource not covered']
    """
    from datetime import UTC, datetime

    from chipwise.deploy.explain.read import waiting_jobs
    from chipwise.deploy.explain.view import WaitingJobs
    from chipwise.errors import InputError, UnknownName

    if not sources:
        raise InputError("sources", "nothing", "files of what kubectl or squeue print")
    files = [Path(source) if isinstance(source, str) else source for source in sources]
    waiting = waiting_jobs(files, datetime.now(UTC))
    if job is not None:
        names = [each.name for each in waiting]
        if job not in names:
            raise UnknownName("job", job, names)
        waiting = [each for each in waiting if each.name == job]
    return WaitingJobs(jobs=tuple(waiting))
