"""The `access` section of the pools file: who has which role, which team, and how much each may use."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from chipwise.route.spec.fields import FINITE, MOST_CHIPS, Money, Name, Title
from chipwise.workload.fields import Strict

Amount = Annotated[float, Field(ge=0, le=1e12), FINITE]
QuotaChips = Annotated[int, Field(strict=True, ge=0, le=MOST_CHIPS)]
Titles = Annotated[list[Title], Field(max_length=10_000)]


class MembersSpec(Strict):
    """People: by name, by group of the operating system."""

    users: Titles = Field([], description="Users of the operating system.")
    groups: Titles = Field([], description="Groups of the operating system.")


class QuotaSpec(Strict):
    """The most that a user or a team may use."""

    chips: QuotaChips | None = Field(None, description="At once.")
    chip_hours: Amount | None = Field(None, description="In a calendar month (UTC).")
    usd: Money | None = Field(None, description="US dollars in a calendar month (UTC).")


class QuotasSpec(Strict):
    """Quotas; what no quota names is not limited."""

    each_user: QuotaSpec | None = Field(None, description="Of every user whom `users` does not name.")
    users: dict[Title, QuotaSpec] = Field({}, description="By user.")
    teams: dict[Name, QuotaSpec] = Field({}, description="By team, for all of its members together.")


class AccessSpec(Strict):
    """Who may do what through `chipwise service run`, and how much."""

    operator: MembersSpec | None = Field(
        None, description="May do everything; root and the service's own user may too."
    )
    submitter: MembersSpec | None = Field(None, description="Submit; read, cancel and retry their own jobs.")
    viewer: MembersSpec | None = Field(None, description="Read all jobs and change none.")
    others: Literal["viewer", "submitter"] | None = Field(
        None, description="The role of OS users whom no list names; default: they are refused."
    )
    teams: dict[Name, MembersSpec] = Field({}, description="Who is in which team; the first that fits counts.")
    quotas: QuotasSpec | None = Field(None, description="How much users and teams may use.")
