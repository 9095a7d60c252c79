"""Every example that a --help shows has options that exist, and runs as it is written unless the machine lacks what it
needs: an accelerator, a network, somebody's database. What a page shows too is run by the tests of pages; every fourth of
the others in `make test`, all in `make test-slow`, with those that compile or fit for minutes.

A folder stands for that of a reader: the examples of the repository, and files under the names that the examples give to
files of one's own.
"""

import gzip
import re
import shlex
import shutil
import sys
from functools import cache

import pytest
import typer
from command import ROOT, chipwise

from chipwise.cli.main import app
from lane import share

sys.path.insert(0, str(ROOT / "scripts"))
from refresh_docs import pages, shown

# name in an example -> what stands for it
OWN = {
    "own.csv": "examples/prices/own.csv",
    "billing.csv": "examples/prices/focus-aws.csv",
    "billing-1.csv": "examples/prices/focus-aws.csv",
    "catalogs/v8/gcp/vms.csv": "examples/prices/skypilot/gcp/vms.csv",
    "catalogs/v8/aws/vms.csv": "examples/prices/skypilot/aws/vms.csv",
    "vms.csv": "examples/prices/skypilot/lambda/vms.csv",
    "mine.py": "examples/programs/numerics_underflow.py",
    "measured.csv": "examples/bench/h200-held-out.csv",
    "pools.yaml": "examples/pools/local.yaml",
    "nightly/hello.yaml": "examples/jobs/hello.yaml",
}
MEASURED = ("h200.json", "before.json", "after.json", "monday.json", "tuesday.json", "card.json")
CONFIG = """{"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
"num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256}"""
# pattern of a command -> what it needs that a machine may lack; its options are checked all the same
ELSEWHERE = {
    r"bench (?!diff|show|roofline|.*--points).*": "an accelerator, or minutes; the suites are run by the tests of bench",
    r".*(postgresql://).*": "somebody's database",
    r"router run (?!.*--until-idle).*": "runs until it is stopped",
    r"service run .*": "runs until it is stopped",
    r"observe receive.*": "runs until it is stopped; tests/e2e/test_receive_telemetry.py has one",
    r"observe agent --(metrics|store) .*": "runs until it is stopped; tests/e2e/test_agent_command.py has one",
    r"observe jobs --metrics.*": "runs until it is stopped; tests/e2e/test_monitoring.py has one",
    r".*--ledger unix://.*": "somebody's service",
    r"observe (scrape|devices|nodes|export).*": "exporters that run; tests/e2e/test_telemetry_store.py has some",
    r"prices update": "a network",
    r"deploy check.*": "a folder that was written; docs/deploy.md has one",
    r"pools drain .*--node .*": "a cluster that runs; tests/e2e/test_slurm_fallback.py has one",
    r".*--open": "a browser that somebody looks at",
    r"prices import focus billing-\*.*": "the shell's own reading of *",
    r"check mypackage.*": "one's own package",
    r"calibrate bench card.json .*": "a card of one's own",
    r".*--recompile": "an hour of a TPU compiler",
    r"validate( --evidence compiled)?": "minutes; it is run by the tests of validation",
    r"fleet plan .*--(cautious|plot).*": "minutes; the same plan is run with other options",
}
# pattern -> why it takes minutes
LONG = {
    r"check .*|.*--evidence compiled.*": "compiles",
    r"calibrate .*": "fits",
    r"numerics .*": "trains",
    r"(fleet plan|report) examples/fleet/mixed.*": "plans a fleet, as a page does",
}
# pattern -> compilers
COMPILED = {
    r"(check|doctor --require) .*torch.*": ("torch", "tpu"),
    r"check .*": ("tpu",),
    r"doctor --require .*": ("tpu", "torch"),
    r".*--evidence compiled.*": ("tpu",),
}
BEFORE = {  # what has to have happened
    r"jobs (show|explain|logs|wait|list|retry|cancel) .*|jobs list|router status|ledger .*|observe (goodput --|jobs?|rates|drift --jobs).*|"
    r"calibrate telemetry --jobs.*": [
        "jobs submit examples/jobs/hello.yaml examples/jobs/hello.yaml examples/jobs/hello.yaml "
        "--pools examples/pools/local.yaml"
    ],
    r"jobs (wait|logs) .*|observe (goodput --|jobs?|rates|drift --jobs).*|"
    r"calibrate telemetry --jobs.*": ["router run --pools examples/pools/local.yaml --policy fastest --until-idle"],
    r"observe (demand|advice).*": ["jobs submit examples/jobs/llama-lora.yaml --pools examples/pools/local.yaml"],
    r"jobs retry .*": ["jobs cancel 1 2"],
    r"audit .*": ["jobs submit examples/jobs/hello.yaml --pools examples/pools/local.yaml"],
    r"audit verify --heads .*": ["audit verify -o json --out heads.json"],
    r"router status": ["router run --pools examples/pools/local.yaml --policy fastest --once"],
}


def commands(name, group):
    """Every command line with its Click command."""
    for verb, command in getattr(group, "commands", {}).items():
        yield f"{name} {verb}", command
        yield from commands(f"{name} {verb}", command)


@cache
def examples():
    """Every example of every --help."""
    root = typer.main.get_command(app)
    texts = [root.help or "", root.epilog or ""]
    texts += [text or "" for _, command in commands("", root) for text in (command.help, command.epilog)]
    lines = (line.strip() for text in texts for line in text.splitlines())
    return sorted({line.removeprefix("chipwise ") for line in lines if line.startswith("chipwise ")})


def matching(table, line):
    return next((value for pattern, value in table.items() if re.fullmatch(pattern, line)), None)


def marks(line):
    needs = matching(COMPILED, line)
    return [
        *([pytest.mark.compiler(*needs)] if needs else ()),
        *([pytest.mark.slow] if matching(LONG, line) else ()),
    ]


def run_here():
    """The examples that this machine can run, and that no page shows."""
    on_pages = {each.command.removeprefix("chipwise ") for page in pages() for each in shown(page)}
    return [line for line in examples() if line not in on_pages and not matching(ELSEWHERE, line)]


@pytest.fixture
def folder(tmp_path):
    """A reader's folder."""
    for name in ("examples", "validation"):
        (tmp_path / name).symlink_to(ROOT / name)
    for name, source in OWN.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / source, tmp_path / name)
    for name in MEASURED:
        (tmp_path / name).write_bytes(gzip.decompress((ROOT / "examples/bench/h200-1.json.gz").read_bytes()))
    (tmp_path / "my-model").mkdir()
    (tmp_path / "my-model" / "config.json").write_text(CONFIG)
    return tmp_path


def words_of(line, folder):
    """The words of a command, * as the shell reads it."""
    out = []
    for word in shlex.split(line):
        files = sorted(str(file.relative_to(folder)) for file in folder.glob(word)) if "*" in word else []
        out += files or [word]
    return out


def parsed(words):
    """Read the options of a command without running it; a wrong one raises."""
    command, name = typer.main.get_command(app), "chipwise"
    while hasattr(command, "commands") and words and words[0] in command.commands:
        command, name, words = command.commands[words[0]], words[0], words[1:]
    return command.make_context(name, list(words), resilient_parsing=False)


def test_examples_are_found():
    assert len(examples()) > 100


@pytest.mark.parametrize("line", examples())
def test_an_example_has_options_that_exist(line, folder):
    parsed(words_of(line, folder))


@pytest.mark.sampled
@pytest.mark.parametrize("line", [pytest.param(line, marks=marks(line)) for line in share(run_here(), 4)])
def test_an_example_runs_as_written(line, folder, monkeypatch):
    monkeypatch.setenv("CHIPWISE_DATA", str(folder / "data"))
    for pattern, first in BEFORE.items():
        for step in first if re.fullmatch(pattern, line) else ():
            done = chipwise(*words_of(step, folder), cwd=folder)
            assert done.returncode == 0, (step, done.stderr)
    done = chipwise(*words_of(line, folder), cwd=folder)
    assert done.returncode == 0, done.stderr or done.stdout[-2000:]
