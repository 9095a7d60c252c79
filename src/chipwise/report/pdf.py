"""A page as PDF, printed by a browser that is found on this machine, in a process and a profile of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from chipwise.errors import ChipwiseError, InputError

VARIABLE = "CHIPWISE_BROWSER"
BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "msedge",
    "microsoft-edge",
)
LIMIT_S = 120.0
FLAGS = (
    "--headless",
    "--disable-gpu",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-pdf-header-footer",
    "--disable-dev-shm-usage",
)


def browser() -> str:
    """The browser that prints: the one named in CHIPWISE_BROWSER, else the first that is found."""
    named = os.environ.get(VARIABLE)
    if named:
        found = shutil.which(named)
        if found is None:
            raise InputError(VARIABLE, named, "a program that can be run, such as /usr/bin/chromium")
        return found
    for name in BROWSERS:
        found = shutil.which(name)
        if found is not None:
            return found
    raise ChipwiseError(
        "a PDF is printed by a browser and none was found; install one with: apt-get install chromium, "
        f"or name one in {VARIABLE}; a report in HTML needs none"
    )


def print_pdf(html: str, program: str | None = None, limit_s: float = LIMIT_S) -> bytes:
    """The bytes of the page as PDF; an error where the browser fails or takes too long."""
    program = program or browser()
    with tempfile.TemporaryDirectory(prefix="chipwise-print-", ignore_cleanup_errors=True) as folder:
        source, target = Path(folder) / "report.html", Path(folder) / "report.pdf"
        source.write_text(html, encoding="utf-8")
        line = [
            program,
            *FLAGS,
            *(["--no-sandbox"] if _root() else []),
            f"--user-data-dir={folder}/profile",
            f"--print-to-pdf={target}",
            source.as_uri(),
        ]
        status, said = _run(line, folder, limit_s)
        if not target.is_file() or not target.read_bytes().startswith(b"%PDF"):
            why = f": {said[-1][:200]}" if said else ""
            raise ChipwiseError(f"{program} made no PDF of the report (exit status {status}){why}")
        return target.read_bytes()


def _run(line: list[str], folder: str, limit_s: float) -> tuple[int, list[str]]:
    """Exit status and complaints; a browser that takes too long is ended with every process it started."""
    home = {"XDG_CONFIG_HOME": folder, "XDG_CACHE_HOME": folder}  # crash reports and caches go there too
    try:
        started = subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, **home},
            start_new_session=True,
        )
    except OSError as error:
        raise ChipwiseError(f"{line[0]} could not be run: {error.strerror or error}") from None
    with started:
        try:
            said = started.communicate(timeout=limit_s)[1]
        except subprocess.TimeoutExpired:
            _end(started)
            raise ChipwiseError(f"{line[0]} did not print the report within {limit_s:.0f} s") from None
        except BaseException:  # an interrupt: the session of its own keeps the terminal's from the browser
            _end(started)
            raise
    return started.returncode, said.decode("utf-8", "replace").strip().splitlines()


def _end(started: subprocess.Popen[bytes]) -> None:
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
    else:
        started.kill()


def _root() -> bool:
    """Whether this is root, whom Chromium's sandbox refuses."""
    return hasattr(os, "geteuid") and os.geteuid() == 0
