"""Hosts that a secret may be sent to in clear: this machine alone."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether a host, as written, is this machine and nothing else: an address, or `localhost`.

    >>> [is_loopback(host) for host in ("localhost", "127.0.0.9", "::1", "", "db", "10.0.0.1", "0.0.0.0")]
    [True, True, True, False, False, False, False]
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
