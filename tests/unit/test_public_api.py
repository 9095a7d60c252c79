"""The public names: pinned, loaded at first use, each with a docstring; one version."""

import doctest
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import chipwise
from chipwise import api

ROOT = Path(__file__).resolve().parents[2]
VERBS = (
    "load",
    "predict",
    "layouts",
    "compare",
    "compare_edge",
    "cost",
    "diff",
    "export_telemetry",
    "receive_telemetry",
    "serve",
    "capacity",
    "plan_fleet",
    "check",
    "bench",
    "numerics",
    "simulate",
    "submit",
    "validate",
    "report",
    "chips",
    "models",
    "prices",
    "read_log",
    "diagnose",
    "measure_goodput",
    "scrape",
    "devices",
    "learn_from_runs",
    "accepted_telemetry",
    "observe_advice",
    "observe_demand",
    "observe_drift",
    "observe_job",
    "observe_jobs",
    "node_health",
    "observe_node",
    "observe_rates",
    "observe_top",
    "fleet_goodput",
    "alert_rules",
    "dashboards",
    "deploy_check",
    "deploy_explain",
    "deploy_write",
    "update_prices",
)
TYPES = ("Knowledge", "Estimate")
ERRORS = (
    "ChipwiseError",
    "InputError",
    "UnknownName",
    "BrokenFile",
    "Conflict",
    "MissingInput",
    "NoSuchFile",
    "MissingCompiler",
    "Refusal",
    "DoesNotFit",
    "PrecisionMissing",
    "NoLayout",
)


def test_the_public_names_are_these():
    assert sorted(chipwise.__all__) == sorted((*VERBS, *TYPES, *ERRORS))
    assert dir(chipwise) == sorted((*VERBS, *TYPES, *ERRORS, "__version__"))
    assert api.__all__ == sorted(VERBS)


@pytest.mark.parametrize("name", [*VERBS, *TYPES, *ERRORS])
def test_a_public_name_has_a_docstring(name):
    assert getattr(chipwise, name).__doc__.partition("\n")[0].endswith(".")


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_has_a_doctest(name):
    assert doctest.DocTestFinder(recurse=False).find(getattr(api, name), name)[0].examples


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        chipwise.nothing  # noqa: B018


def test_a_verb_stays_the_verb_when_the_room_of_its_name_is_imported():
    code = (
        "import chipwise as cw; from chipwise.compare import candidates; import chipwise.prices.book;"
        "from chipwise import compare; from chipwise.api import prices;"
        "assert chipwise.compare is compare and cw.prices is prices and callable(cw.predict);"
        "import sys; assert sys.modules['chipwise.compare'].candidates is candidates"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_importing_chipwise_loads_nothing_else():
    code = "import sys, chipwise; print(*(name for name in sys.modules if name.startswith('chipwise')))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert sorted(done.stdout.split()) == ["chipwise", "chipwise.lazy", "chipwise.version"]


def test_the_version_is_in_one_place():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"] and project["project"]["dynamic"] == ["version"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/chipwise/version.py"


def test_what_an_answer_rests_on_is_shown_in_a_line():
    """In a notebook or a debugger: not the pages of every figure of every chip."""
    trained = chipwise.compare(chipwise.load("llama-3.1-8b", tokens="1B", batch=64, sequence=4096), on="h100:8,v5e:16")
    served = chipwise.compare(chipwise.load("llama-3.1-8b", rate=2, input_len=500, output_len=100), on="h100:1")
    for rows in (trained.rows, served.rows):
        assert rows
        for row in rows:
            names = [name for name in dir(row) if not name.startswith("_") and not callable(getattr(row, name))]
            parts = [row, *(getattr(row, name) for name in names)]
            assert max(len(repr(part)) for part in parts) < 1000, {
                name: len(repr(getattr(row, name))) for name in names
            }
    assert repr(trained.rows[0].accelerators) in ("<Accelerators h100:8>", "<Accelerators v5e:4x4>")
    assert repr(chipwise.load("llama-3.1-8b", tokens="1B", batch=64, sequence=4096).model) == "<Model 'llama-3.1-8b'>"
