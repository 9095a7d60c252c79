"""The line that installs an optional part, as it works where it is read."""

from __future__ import annotations

from pathlib import Path

SOURCE = Path(__file__).resolve().parents[3]  # of a clone, the folder of its pyproject.toml


def install_line(extra: str) -> str:
    """The command that installs an extra: of the clone that runs, or of the package.

    >>> install_line("ray").startswith("pip install ") and install_line("ray").endswith("[ray]'")
    True
    """
    if not (SOURCE / "pyproject.toml").is_file() or SOURCE / "src" not in Path(__file__).resolve().parents:
        return f"pip install 'chipwise[{extra}]'"
    here = Path.cwd() == SOURCE
    return f"pip install -e '{'.' if here else SOURCE}[{extra}]'"
