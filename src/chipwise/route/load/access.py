"""The `access` section of a pools file as rules."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from chipwise.errors import InputError
from chipwise.route.access import ROLES, Access, Members, Quota, Quotas

if TYPE_CHECKING:
    from chipwise.route.spec.access import AccessSpec, MembersSpec, QuotaSpec, QuotasSpec


def access_of(spec: AccessSpec | None) -> Access:
    """The rules of the section; none where there is no section."""
    if spec is None:
        return Access()
    roles = {role: _members(members) for role in ROLES if (members := getattr(spec, role)) is not None}
    teams = {name: _members(members) for name, members in spec.teams.items()}
    quotas = _quotas(spec.quotas)
    unknown = next((name for name in quotas.teams if name not in teams), None)
    if unknown is not None:
        raise InputError("access.quotas.teams", unknown, "a team that access.teams has")
    return Access(roles, teams, spec.others or "", quotas)


def _members(spec: MembersSpec) -> Members:
    return Members(frozenset(spec.users), frozenset(spec.groups))


def _quotas(spec: QuotasSpec | None) -> Quotas:
    if spec is None:
        return Quotas()
    return Quotas(
        _quota(spec.each_user),
        {name: _quota(quota) for name, quota in spec.users.items()},
        {name: _quota(quota) for name, quota in spec.teams.items()},
    )


def _quota(spec: QuotaSpec | None) -> Quota:
    if spec is None:
        return Quota()
    return Quota(*(inf if value is None else float(value) for value in (spec.chips, spec.chip_hours, spec.usd)))
