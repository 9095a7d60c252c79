"""Run the commands shown in README.md and docs/, and put their real output beneath them. Run by `make docs`.

A block that begins with ```console holds lines `$ chipwise ...` and their output. `head=N` after the word keeps the
first N lines of each output. `session` after the word runs the block's commands one after another on one ledger; all
others have a ledger and data of their own. tests/e2e/test_docs.py runs the same commands.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```console(?P<options>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
CUT = "..."
HOME = "~/.local/share/chipwise"  # where a user's own data lie: shown for the folder that stands in for it


@dataclass(frozen=True)
class Shown:
    """A command as a page shows it, and the output beneath it."""

    page: Path
    command: str
    output: tuple[str, ...]
    before: tuple[str, ...] = ()  # commands of its session that ran earlier


def pages() -> list[Path]:
    """Every page that may show commands."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def shown(page: Path) -> list[Shown]:
    """The commands of a page."""
    found = []
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        earlier: list[str] = []
        for command, output in parts(block["body"]):
            found.append(Shown(page, command, tuple(output), tuple(earlier)))
            if "session" in block["options"].split() and command.startswith("chipwise "):
                earlier.append(command)
    return found


def parts(body: str) -> list[tuple[str, list[str]]]:
    """Commands of a block with their lines of output."""
    out: list[tuple[str, list[str]]] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            out.append((line[2:], []))
        elif out:
            out[-1][1].append(line)
    return out


def run(command: str, before: Sequence[str] = ()) -> tuple[int, str]:
    """Exit status and output of a `chipwise` command, run after others; files go to a folder that is removed.

    The user's own calibrations, prices and ledger are not read: pages show what comes with chipwise.
    """
    with tempfile.TemporaryDirectory() as folder:
        for each in before:
            run_in(folder, each)
        return run_in(folder, command)


def run_in(folder: str, command: str) -> tuple[int, str]:
    """Exit status and output of a command whose data lie in a folder."""
    words = shlex.split(command)
    if words[0] != "chipwise":
        raise ValueError(f"not a chipwise command: {command}")
    meant = {}
    files = {"--out", "--folder", "--plot"} | ({"-o", "--output"} if words[1:2] == ["report"] else set())
    for option in files & set(words):
        at = words.index(option) + 1
        elsewhere = Path(folder) / f"{option}{Path(words[at]).suffix}"
        meant[str(elsewhere)], words[at] = words[at], str(elsewhere)
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-m", "chipwise", *words[1:]], cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": path, "CHIPWISE_DATA": folder, "XDG_DATA_HOME": folder,
             "CHIPWISE_LEDGER": str(Path(folder) / "ledger.db"), "CHIPWISE_PRICES": "", "CHIPWISE_FX": ""})
    said = done.stdout + done.stderr
    for elsewhere, word in meant.items():
        said = said.replace(elsewhere, word)
    return done.returncode, said.replace(folder, HOME)


def refreshed(page: Path) -> str:
    """The page with every output as it is today."""

    def anew(block: re.Match[str]) -> str:
        head = re.search(r"head=(\d+)", block["options"])
        session = tempfile.TemporaryDirectory() if "session" in block["options"].split() else None
        lines = []
        for command, old in parts(block["body"]):
            lines.append(f"$ {command}")
            if not command.startswith("chipwise "):
                lines += old
                continue
            status, text = run_in(session.name, command) if session else run(command)
            if status not in (0, 2) and "exit status 1" not in text:
                raise SystemExit(f"{page.name}: `{command}` left with {status}: {text.strip()}")
            new = text.rstrip("\n").split("\n")
            keep = int(head[1]) if head else len(new)
            lines += new[:keep] + ([CUT] if len(new) > keep else [])
        if session:
            session.cleanup()
        return f"```console{block['options']}\n" + "\n".join(lines).rstrip("\n") + "\n```"

    return BLOCK.sub(anew, page.read_text(encoding="utf-8"))


def main() -> None:
    """Refresh every page."""
    for page in pages():
        text = refreshed(page)
        if text != page.read_text(encoding="utf-8"):
            page.write_text(text, encoding="utf-8")
            print(f"refreshed {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
