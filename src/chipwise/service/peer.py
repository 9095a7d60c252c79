"""Peer credentials: the user at the other end of a unix socket, as the kernel wrote it down when it connected."""

from __future__ import annotations

import os
import socket
import struct
from dataclasses import dataclass

from chipwise.io.owner import user_name

_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid (unix(7))


@dataclass(frozen=True, slots=True)
class Peer:
    """A user of this machine."""

    uid: int
    user: str  # the system's name, or uid:N where it has none
    groups: frozenset[str]


def peer_of(connection: socket.socket) -> Peer:
    """The user who connected; nothing that the client sends can change it."""
    _, uid, gid = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return Peer(uid, user_name(uid), _groups(uid, gid))


def _groups(uid: int, gid: int) -> frozenset[str]:
    """The groups that the system lists a user in."""
    import grp
    import pwd

    try:
        entry = pwd.getpwuid(uid)
        numbers = {gid, *os.getgrouplist(entry.pw_name, entry.pw_gid)}
    except KeyError:
        numbers = {gid}
    names = set()
    for number in numbers:
        try:
            names.add(grp.getgrgid(number).gr_name)
        except KeyError:
            names.add(f"gid:{number}")
    return frozenset(names)
