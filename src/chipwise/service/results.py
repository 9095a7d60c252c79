"""What the verbs of the service show: who one is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from chipwise.errors import InputError
from chipwise.present.blocks import Block, Text
from chipwise.present.result import Result
from chipwise.present.safe import safe
from chipwise.route.ledger import RemoteLedger, is_remote


@dataclass(frozen=True, slots=True, repr=False)
class WhoAmI(Result):
    """Who one is to a service."""

    VERB: ClassVar[str] = "service whoami"
    ledger: str
    user: str
    role: str
    team: str
    source: str

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {name: getattr(self, name) for name in ("ledger", "user", "role", "team", "source")}

    def blocks(self) -> list[Block]:
        """For people."""
        team = f", team {safe(self.team)}" if self.team else ""
        return [Text(f"{safe(self.user)}: {self.role}{team}, by {safe(self.source)}")]


def whoami(ledger: str) -> WhoAmI:
    """Who one is to the service at a URL."""
    if not is_remote(ledger):
        raise InputError("ledger", ledger or "nothing", "a service: unix:///PATH")
    with RemoteLedger(ledger) as service:
        identity = {"role": "", "team": "", "source": "", **service.identity()}
        return WhoAmI(service.where, *(identity[name] for name in ("user", "role", "team", "source")))
