"""What `python -m chipwise.calibrate` takes, before it fits anything."""

import pytest

from chipwise.calibrate.__main__ import main


def test_help_is_printed_and_nothing_is_fitted(capsys):
    assert main(["--help"]) == 0
    assert "serving DATE" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["widths", "tomorrow"], ["svings", "2026-11-19"], ["2026-13-01"]])
def test_what_is_no_day_is_refused_in_one_line(arguments, capsys):
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("chipwise: arguments: ")
