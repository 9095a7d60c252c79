"""Options never change by accident, and changed predictions show as a difference a reviewer can read."""

import difflib

from golden_files import CLI, PREDICTIONS, cli_text, predictions_text

ANEW = "\n`make golden` writes the file anew; commit it if the change is meant."


def assert_same(found: str, path) -> None:
    wanted = path.read_text(encoding="utf-8")
    lines = difflib.unified_diff(wanted.splitlines(), found.splitlines(), f"{path.name} (committed)", "now", lineterm="", n=0)
    assert found == wanted, "\n" + "\n".join(lines) + ANEW


def test_options_are_those_of_the_golden_file():
    assert_same(cli_text(), CLI)


def test_predictions_are_those_of_the_golden_file():
    assert_same(predictions_text(), PREDICTIONS)
