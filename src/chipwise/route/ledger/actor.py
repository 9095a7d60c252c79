"""Who acts on a ledger, as its audit log has it."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

from chipwise.io.owner import user_name


@dataclass(frozen=True, slots=True)
class Actor:
    """Somebody whose commands are written down, in the chain of whoever writes."""

    chain: str  # of the writer: a router, a service, or a user at a machine
    who: str
    role: str
    source: str = ""  # what vouches for it


def os_actor() -> Actor:
    """The user whom this process runs as. Whoever can write the database itself is an operator."""
    uid = os.geteuid()
    name = user_name(uid)
    return Actor(f"{name}@{socket.gethostname()}", name, "operator", f"OS user {uid}")
