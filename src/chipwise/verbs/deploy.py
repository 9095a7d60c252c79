"""Verbs that put machines up: deploy_write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chipwise.deploy.deployment import Term
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


def _term(text: str) -> Term:
    from chipwise.deploy.deployment import Term
    from chipwise.errors import UnknownName

    if text not in list(Term):
        raise UnknownName("term", text, list(Term))
    return Term(text)
