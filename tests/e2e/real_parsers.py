"""The tools' own parsers, installed for parsing alone: once, into the user's cache folder, and run in processes of their own."""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parent / "parsers"
PINS: dict[str, dict[str, list[str]]] = tomllib.loads((SCRIPTS / "parsers.toml").read_text(encoding="utf-8"))
# the tests' own HOME ends with the run: these are kept, some 2 GiB of them
KEPT = Path(pwd.getpwuid(os.getuid()).pw_dir) / ".cache" / "chipwise-tests" / "parsers"
LONGEST_S = 1200.0  # a download of 300 MiB over a slow line


@cache
def installed(name: str) -> Path:
    """The folder of a tool's packages; skips the test, with the reason, where they can't be installed."""
    pins = PINS[name]
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    key = hashlib.sha256(json.dumps([pins, version], sort_keys=True).encode()).hexdigest()[:12]
    folder = KEPT / f"{name}-{key}"
    if folder.is_dir():
        return folder
    begun = KEPT / f"{name}-{key}.{os.getpid()}"
    shutil.rmtree(begun, ignore_errors=True)
    newer = (
        "--ignore-requires-python",
        "--python-version",
        "3.12",
        "--implementation",
        "cp",
        "--abi",
        "cp312",
        "--abi",
        "none",
    )
    try:
        _pip(name, begun, pins.get("packages", []), ())
        _pip(name, begun, pins.get("newer", []), newer)
        for pattern in pins.get("pruned", []):
            for file in begun.glob(pattern):
                file.unlink()
        begun.rename(folder)
    finally:
        shutil.rmtree(begun, ignore_errors=True)
    return folder


def _pip(name: str, folder: Path, packages: list[str], more: tuple[str, ...]) -> None:
    if not packages:
        return
    quiet = ("-q", "--disable-pip-version-check", "--no-input", "--no-compile", "--no-warn-conflicts")
    line = [sys.executable, "-m", "pip", "install", *quiet, "--no-deps", "--only-binary=:all:", "--upgrade"]
    done = subprocess.run(
        [*line, *more, "--target", str(folder), *packages],
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_S,
    )
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or [done.stderr[-200:]]
        pytest.skip(f"{name} does not install here, its recorded options stand for it: {errors[0]}")


def refusals(tool: str, cases: list[Any], **environment: str) -> list[str]:
    """What a tool's own parser refuses each case for; "" where it takes it."""
    folders = [installed(tool), *(installed(other) for other in PINS[tool].get("with", []))]
    path = os.pathsep.join(map(str, [SCRIPTS, *folders]))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(SCRIPTS / f"with_{tool}.py")],
        input=json.dumps(cases),
        env={**os.environ, "PYTHONPATH": path, "JAX_PLATFORMS": "cpu", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_S,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answers = json.loads(done.stdout.splitlines()[-1])
    assert len(answers) == len(cases)
    return [str(answer) for answer in answers]
