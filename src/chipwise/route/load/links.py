"""How backends are reached: a link that anybody on the way could read or answer must be asked for."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from chipwise.errors import InputError
from chipwise.io.urls import is_loopback

INSECURE = "insecure"  # the key that allows it


def check_links(backend: str, address: Mapping[str, str], where: str) -> None:
    """Refuse a pool whose token and jobs would go over a network in clear, unless its address allows it."""
    if address.get(INSECURE, "false") not in ("true", "false"):
        raise InputError(f"{where}.{INSECURE}", address[INSECURE], "true or false")
    rest = address.get("rest", "")
    if backend != "slurm" or not rest.startswith("http://") or address.get(INSECURE) == "true":
        return
    try:
        host = urlsplit(rest).hostname or ""
    except ValueError:
        host = ""
    if not is_loopback(host):
        raise InputError(
            f"{where}.rest",
            f"http://{host or '...'}",
            "https://host:port, unix:/path, or http on loopback: token and jobs would be sent in clear "
            f"(`{INSECURE}: true` beside it allows that)",
        )
