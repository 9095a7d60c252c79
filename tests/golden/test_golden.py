"""Options never change by accident, and changed predictions show as a difference a reviewer can read."""

import csv
import difflib
from itertools import zip_longest
from math import isclose

import pytest
from golden_files import ANSWERS, CLI, PREDICTIONS, SAME, answers_text, cli_text, predictions_text

AGAIN = "\n`make golden` writes the file again; commit it if the change is meant."


def assert_same(found: str, path, same=str.__eq__) -> None:
    """Every line as committed, by what `same` says of two lines."""
    wanted, now = path.read_text(encoding="utf-8").splitlines(), found.splitlines()
    if not all(same(a, b) for a, b in zip_longest(wanted, now, fillvalue="")):
        lines = difflib.unified_diff(wanted, now, f"{path.name} (committed)", "now", lineterm="", n=0)
        pytest.fail("\n".join(lines) + AGAIN, pytrace=False)


def alike(one: str, other: str) -> bool:
    """Whether two lines of CSV have the same words, and the same figures but for an architecture's last bits."""
    cells, others = next(csv.reader([one]), []), next(csv.reader([other]), [])
    return len(cells) == len(others) and all(a == b or close(a, b) for a, b in zip(cells, others, strict=True))


def close(one: str, other: str) -> bool:
    try:
        return isclose(float(one), float(other), rel_tol=SAME)
    except ValueError:
        return False


def test_options_are_those_of_the_golden_file():
    assert_same(cli_text(), CLI)


def test_predictions_are_those_of_the_golden_file():
    assert_same(predictions_text(), PREDICTIONS, alike)


def test_answers_are_those_of_the_golden_file():
    assert_same(answers_text(), ANSWERS, alike)


@pytest.mark.parametrize(
    "one, other, same",
    [
        ("a,1.00000000000", "a,1.0000000001", True),
        ("a,1.0", "a,1.00000001", False),
        ("a,1", "b,1", False),
        ("a,1", "a,1,2", False),
        ("a,x", "a,y", False),
        ("", "a", False),
    ],
)
def test_figures_may_differ_in_their_last_bits_alone(one, other, same):
    assert alike(one, other) is same
