"""The rules of a pools file that turn a proven name into a role and a team."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from chipwise.route.access.identity import ROLES, Identity
from chipwise.route.access.quota import Quotas


@dataclass(frozen=True, slots=True)
class Members:
    """A set of people: by name, by group of the operating system."""

    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    def has(self, user: str, groups: Collection[str] = ()) -> bool:
        """Whether somebody is among them."""
        return user in self.users or not self.groups.isdisjoint(groups)


@dataclass(frozen=True, slots=True)
class Access:
    """Who has which role, who is in which team, and how much each may use."""

    roles: Mapping[str, Members] = field(default_factory=dict)
    teams: Mapping[str, Members] = field(default_factory=dict)
    others: str = ""  # the role of OS users whom no list names; empty: none
    quotas: Quotas = field(default_factory=Quotas)

    def os_user(self, user: str, groups: Collection[str], uid: int, trusted: Collection[int]) -> Identity:
        """The identity of a user of the operating system; root and the service's own user are operators."""
        role = ROLES[-1] if uid in trusted else self._role(user, groups) or self.others
        return Identity(user, role, self._team(user, groups), f"OS user {uid}")

    def team_of(self, user: str) -> str:
        """The team that lists a user by name; empty where none does."""
        return self._team(user)

    def _role(self, user: str, groups: Collection[str]) -> str:
        for role in reversed(ROLES):
            if role in self.roles and self.roles[role].has(user, groups):
                return role
        return ""

    def _team(self, user: str, groups: Collection[str] = ()) -> str:
        return next((team for team, members in self.teams.items() if members.has(user, groups)), "")
