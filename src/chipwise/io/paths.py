"""Where a user's own data lie."""

from __future__ import annotations

import os
from pathlib import Path


def data_folder() -> Path:
    """Ledger, attempts and calibrations: $CHIPWISE_DATA, or `chipwise` in the data folder.

    The data folder is $XDG_DATA_HOME where that is a whole path (the XDG specification has others ignored), else
    ~/.local/share.
    """
    if given := os.environ.get("CHIPWISE_DATA"):
        return Path(given).expanduser()
    shared = os.environ.get("XDG_DATA_HOME", "")
    return (Path(shared) if shared.startswith("/") else Path.home() / ".local" / "share") / "chipwise"


def cache_folder() -> Path:
    """What can be made again: `chipwise` in $XDG_CACHE_HOME, else in ~/.cache. RuntimeError where nobody has a home."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "chipwise"
