"""The first command after an install has compiled code made ready in the background, once, and is not slower for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from chipwise.cli import warming
from chipwise.cli.main import main
from patience import until


@pytest.fixture
def started(monkeypatch, tmp_path):
    """Command lines that would be started, with no variable that forbids them."""
    lines = []
    monkeypatch.setattr(warming.subprocess, "Popen", lambda line, **how: lines.append((line, how)))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("CHIPWISE_WARM")
    monkeypatch.delenv("CI", raising=False)
    return lines


def left(*arguments):
    with pytest.raises(SystemExit) as leaving:
        main(list(arguments))
    return leaving.value.code


def test_a_command_that_ends_well_starts_one_silent_child(started, capsys):
    assert left("chips", "h100") == 0
    ((line, how),) = started
    assert line == [sys.executable, "-P", "-m", "chipwise.cli.warming"] and how["start_new_session"]
    assert {how[name] for name in ("stdin", "stdout", "stderr")} == {subprocess.DEVNULL}
    assert "compil" not in capsys.readouterr().err


@pytest.mark.parametrize("variable", ["CHIPWISE_WARM=0", "CI=true"])
def test_a_variable_forbids_it(started, monkeypatch, variable):
    monkeypatch.setenv(*variable.split("="))
    assert left("chips", "h100") == 0 and not started


def test_help_a_failure_and_an_install_that_is_ready_start_none(started):
    assert left("--help") == 0 and left("chips", "--help") == 0 and left("chips", "nothing-of-the-kind") == 2
    assert not started
    warming._ready().parent.mkdir(parents=True, exist_ok=True)
    warming._ready().touch()
    assert left("chips", "h100") == 0 and not started


@pytest.mark.parametrize("place", ["a file", "no home"])
def test_where_nothing_can_be_kept_none_is_started_after_every_command(started, monkeypatch, tmp_path, place):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file") if place == "a file" else "")
    if place == "no home":
        monkeypatch.setattr(warming.Path, "home", lambda: Path("~somebody-else").expanduser())
    assert left("chips", "h100") == 0 and not started


def test_tests_start_none():
    assert os.environ["CHIPWISE_WARM"] == "0"


@pytest.mark.slow
def test_afterwards_a_router_compiles_nothing(tmp_path):
    kept = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    env = {name: value for name, value in os.environ.items() if name not in ("CI", "CHIPWISE_WARM")} | kept
    mark = tmp_path / "cache" / "chipwise" / warming._ready().name
    line = [sys.executable, "-m", "chipwise"]
    for _ in range(3):  # one of the children compiles, the others find it at work
        subprocess.run([*line, "chips", "h100"], env=env, check=True, capture_output=True)
    until(mark.exists)
    pools = tmp_path / "pools.yaml"
    pools.write_text(warming.POOLS)
    env |= {"CHIPWISE_DATA": str(tmp_path / "data"), "CHIPWISE_LEDGER": str(tmp_path / "ledger.db")}
    for words in (["router", "run", "--pools", str(pools), "--until-idle"], warming.SERVED.split()):
        done = subprocess.run([*line, *words], env=env, check=True, capture_output=True, text=True)
        assert "compiling" not in done.stderr
