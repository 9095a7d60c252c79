"""An identity that was proven, and what its role allows.

A viewer reads everything. A submitter submits, and reads, cancels and retries what is its own. An operator does all.
"""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.errors import ChipwiseError, InputError

VIEWER, SUBMITTER, OPERATOR = ROLES = ("viewer", "submitter", "operator")  # each later one outranks those before
# what a request does -> the roles that may do it at all; `Identity.check` says whose jobs
COMMANDS: dict[str, tuple[str, ...]] = {
    "read": (VIEWER, SUBMITTER, OPERATOR),
    "status": (VIEWER, OPERATOR),
    "submit": (SUBMITTER, OPERATOR),
    "cancel": (SUBMITTER, OPERATOR),
    "retry": (SUBMITTER, OPERATOR),
    "drain": (OPERATOR,),
    "resume": (OPERATOR,),
}


class Forbidden(ChipwiseError):
    """What an identity may not do; nothing was written."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who sends a request, as the system, a token or an issuer vouches for it."""

    user: str
    role: str  # one of ROLES; empty: none
    team: str = ""
    source: str = ""  # what vouches: "OS user 1000"

    @property
    def reads_all(self) -> bool:
        """Whether it reads everybody's jobs."""
        return self.role in (VIEWER, OPERATOR)

    def check(self, command: str, owner: str | None = None, job: str = "") -> None:
        """Raise `Forbidden` unless the role allows a command on jobs of that owner (None: of nobody in particular).

        >>> Identity("ada", "submitter").check("cancel", "ada", "7")
        >>> Identity("bob", "submitter").check("cancel", "ada", "7")
        Traceback (most recent call last):
        ...
        chipwise.route.access.identity.Forbidden: job 7: no such job of 'bob'; a submitter sees and changes only its own
        """
        allowed = COMMANDS[command]
        if self.role not in allowed:
            raise Forbidden(
                f"role: {self.role or 'none'!r} of {self.user!r} may not {command}; expected {' or '.join(allowed)}"
            )
        if owner is None or owner == self.user or self.role == OPERATOR:
            return
        if command == "read" and self.reads_all:
            return
        # the same words whether there is such a job or not: numbers tell nothing about other people's
        raise Forbidden(f"job {job}: no such job of {self.user!r}; a submitter sees and changes only its own")

    def owner_of(self, declared: str, field: str) -> str:
        """Whose a job becomes that declares an owner: an operator submits for anybody, others for themselves.

        >>> Identity("ada", "submitter").owner_of("", "owner"), Identity("root", "operator").owner_of("ada", "owner")
        ('ada', 'ada')
        """
        if declared in ("", self.user):
            return self.user
        if self.role != OPERATOR:
            raise InputError(field, declared, f"{self.user}, who submits it, or no owner")
        return declared
