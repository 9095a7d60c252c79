"""Run the commands shown in README.md and docs/, and put their real output beneath them. Run by `make docs`.

A block that begins with ```console holds lines `$ chipwise ...` and their output. `head=N` after the word keeps the
first N lines of each output. `session` after the word runs the block's commands one after another on one ledger; all
others have a ledger and data of their own. A command that ends with ` &` runs beside those after it in its session, and
is shown with the first line it prints. `needs=tpu` names compilers without which a block is left as it is. `slow` says
that a command takes minutes: `make test-slow` runs it. A block that begins with ```python is run after those before it
on its page if a ```text block, for what it prints, follows it. tests/e2e/test_docs.py runs the same commands.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```console(?P<options>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
SNIPPET = re.compile(r"^```python\n(?P<code>.*?)^```\n\n```text\n(?P<output>.*?)^```$", re.MULTILINE | re.DOTALL)
CUT = "..."
PATIENCE_S = 60.0  # for what a session has started to end
Start = Callable[[list[str], dict[str, str]], "subprocess.CompletedProcess[str]"]
MARK = "-- end of a snippet --"
TODAY = "2026-11-18"  # of what pages show: the ages of prices are those of this day
HOME = "~/.local/share/chipwise"  # where a user's own data lie: shown for the folder that stands in for it


@dataclass(frozen=True)
class Shown:
    """A command as a page shows it, and the output beneath it."""

    page: Path
    command: str
    output: tuple[str, ...]
    session: tuple[str, ...]  # the commands that run on one ledger, this one among them
    place: int  # in its session
    needs: tuple[str, ...] = ()  # the vendors' compilers that it takes
    slow: bool = False  # takes minutes


def pages() -> list[Path]:
    """Every page that may show commands."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def shown(page: Path) -> list[Shown]:
    """The commands of a page."""
    found = []
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        told = [each for each in parts(block["body"]) if each[0].startswith("chipwise ")]
        together = tuple(command for command, _ in told) if "session" in block["options"].split() else ()
        for place, (command, output) in enumerate(told):
            session = (together, place) if together else ((command,), 0)
            slow = "slow" in block["options"].split()
            found.append(Shown(page, command, tuple(output), *session, needs(block["options"]), slow))
    return found


def needs(options: str) -> tuple[str, ...]:
    """The compilers that a block takes."""
    named = re.search(r"needs=(\S+)", options)
    return tuple(named[1].split(",")) if named else ()


def parts(body: str) -> list[tuple[str, list[str]]]:
    """Commands of a block with their lines of output."""
    out: list[tuple[str, list[str]]] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            out.append((line[2:], []))
        elif out:
            out[-1][1].append(line)
    return out


def started(words: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """The finished `chipwise WORDS`."""
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), env.get("PYTHONPATH")]))
    line = [sys.executable, "-m", "chipwise", *words]
    return subprocess.run(line, cwd=ROOT, env={**env, "PYTHONPATH": path}, capture_output=True, text=True, check=False)


def run(session: Sequence[str], start: Start = started) -> list[tuple[int, str]]:
    """Exit status and output of `chipwise` commands, run one after another; their files go to a folder that is removed.

    The user's own calibrations, prices and ledger are not read: pages show what comes with chipwise.
    """
    with tempfile.TemporaryDirectory() as folder, ExitStack() as beside:
        beside.callback(wait_for_all, folder)  # last: a program that a router started writes there when it ends
        return [
            run_beside(folder, command.removesuffix(" &"), beside)
            if command.endswith(" &")
            else run_in(folder, command, start)
            for command in session
        ]


def run_beside(folder: str, command: str, until: ExitStack) -> tuple[int, str]:
    """Start a command that runs on; 0 and the first line that it prints."""
    env = {**os.environ, **own_data(folder)}
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT / "src"), env.get("PYTHONPATH")]))
    line = [sys.executable, "-m", "chipwise", *words_in(folder, command)]
    process = until.enter_context(subprocess.Popen(line, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True))
    until.callback(process.terminate)
    assert process.stdout is not None
    return 0, process.stdout.readline().replace(folder, HOME)


def wait_for_all(folder: str) -> None:
    """Wait for programs that have a folder in their words: its end would be made again by theirs."""
    until = time.monotonic() + PATIENCE_S
    while any(folder.encode() in words_of(entry) for entry in Path("/proc").glob("[0-9]*")):
        if time.monotonic() > until:
            raise SystemExit(f"a program that a session started still runs in {folder}")
        time.sleep(0.05)


def words_of(entry: Path) -> bytes:
    """The words of a process; none where it has ended."""
    with suppress(OSError):
        return (entry / "cmdline").read_bytes()
    return b""


def words_in(folder: str, command: str) -> list[str]:
    """The words of a command after `chipwise`, with the folder in place of a user's own data."""
    words = [word.replace(HOME, folder) for word in shlex.split(command)]
    if words[0] != "chipwise":
        raise ValueError(f"not a chipwise command: {command}")
    return words[1:]


def run_in(folder: str, command: str, start: Start) -> tuple[int, str]:
    """Exit status and output of a command whose data lie in a folder."""
    words = ["chipwise", *words_in(folder, command)]
    meant = {}
    files = {"--out", "--folder", "--plot", "--launch", "--to"}
    for option in files & set(words):
        at = words.index(option) + 1
        elsewhere = Path(folder) / f"{option}{''.join(Path(words[at]).suffixes)}"
        meant[str(elsewhere)], words[at] = words[at], str(elsewhere)
    if words[1] == "deploy":  # writes a folder, which later commands of the session read
        for at in (i for i, word in enumerate(words) if words[i - 1] == "--to" or (Path(folder) / word).is_dir()):
            elsewhere = Path(folder) / words[at]
            meant[str(elsewhere)], words[at] = words[at], str(elsewhere)
    done = start(words[1:], {**os.environ, **own_data(folder)})
    said = done.stdout + done.stderr
    for elsewhere, word in meant.items():
        said = said.replace(elsewhere, word)
    return done.returncode, said.replace(folder, HOME)


def own_data(folder: str) -> dict[str, str]:
    """Variables that keep a user's own data from being read and written."""
    ledger = str(Path(folder) / "ledger.db")
    none = {"CHIPWISE_PRICES": "", "CHIPWISE_FX": "", "CHIPWISE_TODAY": TODAY}
    return {"CHIPWISE_DATA": folder, "XDG_DATA_HOME": folder, "CHIPWISE_LEDGER": ledger, **none}


def snippets(page: Path) -> list[tuple[str, str]]:
    """The Python of a page, and what it is shown to print."""
    return [(found["code"], found["output"]) for found in SNIPPET.finditer(page.read_text(encoding="utf-8"))]


def run_snippets(codes: Sequence[str]) -> list[str]:
    """What snippets print, run one after another in one process."""
    with tempfile.TemporaryDirectory() as folder:
        marked = "".join(f"{code}\nprint({MARK!r})\n" for code in codes)
        env = {**os.environ, **own_data(folder), "PYTHONPATH": str(ROOT / "src")}
        line = [sys.executable, "-c", marked]
        done = subprocess.run(line, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"a snippet failed: {done.stderr.strip()}")
    return done.stdout.split(f"{MARK}\n")[:-1]


def usable() -> set[str]:
    """The compilers that can be used here."""
    sys.path.insert(0, str(ROOT / "src"))
    from chipwise.compiled.worker.versions import installed

    return {each.toolchain.id for each in installed() if each.usable}


def refreshed(page: Path) -> str:
    """The page with every output as it is today."""

    def again(block: re.Match[str]) -> str:
        if not set(needs(block["options"])) <= usable():
            return block[0]
        head = re.search(r"head=(\d+)", block["options"])
        told = parts(block["body"])
        mine = [command for command, _ in told if command.startswith("chipwise ")]
        sessions = [mine] if "session" in block["options"].split() else [[command] for command in mine]
        results = iter([result for session in sessions for result in run(session)])
        lines = []
        for command, old in told:
            lines.append(f"$ {command}")
            if not command.startswith("chipwise "):
                lines += old
                continue
            status, text = next(results)
            if status not in (0, 2) and "exit status 1" not in text:
                raise SystemExit(f"{page.name}: `{command}` left with {status}: {text.strip()}")
            new = text.rstrip("\n").split("\n")
            keep = int(head[1]) if head else len(new)
            lines += new[:keep] + ([CUT] if len(new) > keep else [])
        return f"```console{block['options']}\n" + "\n".join(lines).rstrip("\n") + "\n```"

    printed = iter(run_snippets([code for code, _ in snippets(page)]))
    text = BLOCK.sub(again, page.read_text(encoding="utf-8"))
    return SNIPPET.sub(lambda found: f"```python\n{found['code']}```\n\n```text\n{next(printed)}```", text)


def with_policies(text: str) -> str:
    """The page with its table of policies as the policies describe themselves."""
    sys.path.insert(0, str(ROOT / "src"))
    from chipwise.route.policies import POLICIES, describe

    rows = "".join(f"| `{name}` | {describe(name)} |\n" for name in POLICIES)
    return re.sub(r"(\| policy \| what it wants \|\n\|---\|---\|\n)(?:\|.*\n)*", lambda head: head[1] + rows, text)


def with_keys(text: str) -> str:
    """The page with its tables of JSON keys as the columns that a comment names declare them."""
    sys.path.insert(0, str(ROOT / "src"))
    from chipwise.present.columns import key_table

    def declared(head: re.Match[str]) -> str:
        module, _, name = head["name"].rpartition(".")
        return head["mark"] + "\n".join(key_table(getattr(import_module(module), name))) + "\n"

    return re.sub(r"(?P<mark><!-- keys: (?P<name>\S+) -->\n\n)(?:\|.*\n)*", declared, text)


def main(names: Sequence[str] = ()) -> None:
    """Refresh every page, or those named."""
    for page in [Path(name).resolve() for name in names] or pages():
        text = with_keys(with_policies(refreshed(page)))
        if text != page.read_text(encoding="utf-8"):
            page.write_text(text, encoding="utf-8")
            print(f"refreshed {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main(sys.argv[1:])
