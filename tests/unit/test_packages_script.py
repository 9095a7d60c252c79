"""scripts/packages.sh installs what the tests of reports and of routing need as root, tells others what to run, and is silent when all is there."""

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "packages.sh"


@pytest.fixture
def machine(tmp_path):
    """A machine with a few commands, whose user and packages are made up: runs the script and gives what was installed."""
    commands = tmp_path / "bin"
    commands.mkdir()
    for name in ("sh", "printf", "ls", "cat"):
        (commands / name).symlink_to(shutil.which(name))

    def command(name, text):
        path = commands / name
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)

    def run(uid, *extra):
        command("id", f"echo {uid}")
        command("uname", "echo Linux")
        command("apt-get", f'echo "$DEBIAN_FRONTEND $*" >> {tmp_path}/log')
        for name in extra:
            command(name, "exit 0")
        done = subprocess.run(
            [shutil.which("sh"), str(SCRIPT)],
            env={"PATH": str(commands), "CHIPWISE_SBIN": str(tmp_path), "CHIPWISE_POSTGRES": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        log = tmp_path / "log"
        return done, log.read_text(encoding="utf-8").splitlines() if log.exists() else []

    return run


def test_root_gets_the_browser_after_an_update_of_the_lists(machine):
    done, log = machine(0)
    assert done.returncode == 0 and "chromium" in done.stdout
    assert log[0] == "noninteractive update -qq" and log[1].startswith(
        "noninteractive install -y -qq --no-install-recommends chromium"
    )


def test_others_are_told_the_exact_command(machine):
    done, log = machine(1000)
    assert done.returncode == 1 and log == [] and "sudo apt-get install --no-install-recommends chromium" in done.stderr


def test_nothing_is_done_where_the_browser_is_there(machine):
    done, log = machine(0, "chromium")
    assert done.returncode == 0 and not any("chromium" in line for line in log)


def test_services_are_installed_where_they_are_missing(machine):
    done, log = machine(0, "chromium", "sbatch", "initdb", "prometheus")
    assert done.returncode == 0 and log[1].endswith(" munge slurmctld slurmd slurmrestd prometheus-alertmanager")


def test_nothing_of_slurm_is_installed_where_all_is_there(machine):
    done, log = machine(1000, "chromium", "munged", "sbatch", "slurmctld", "slurmd", "slurmrestd", "initdb")
    assert log == [] and not {"slurmd", "munge", "postgresql"} & set(done.stderr.split())


def test_make_test_runs_the_script():
    text = (SCRIPT.parent.parent / "Makefile").read_text(encoding="utf-8")
    assert "test: packages" in text and "sh scripts/packages.sh" in text
