"""How much people are shown first: ten rows of a comparison, fifteen lines of bills; programs get everything."""

from __future__ import annotations

import re

import pytest

from chipwise import api
from chipwise.compare.view import ROWS

RUN = {"steps": 100, "batch": 256, "sequence": 4096}


@pytest.fixture(scope="module")
def comparison():
    return api.compare(api.load("llama-3.1-8b", **RUN))


def numbered(text):
    return [line for line in text.splitlines() if re.match(r" *\d+  \S+:", line)]


def test_ten_rows_are_shown_and_how_many_more_there_are(comparison):
    text, rows = str(comparison), len(comparison.rows)
    picked = comparison.rows.index(comparison.pick) >= ROWS
    assert rows > 2 * ROWS and len(numbered(text)) == ROWS + picked
    assert f"{rows - ROWS - picked} more: --all" in text and str(comparison.pick.accelerators) in text


def test_all_rows_and_refusals_are_shown_where_asked_for(comparison):
    from chipwise.present.text import document

    text = document(comparison.all_blocks())
    assert len(numbered(text)) == len(comparison.rows) and "more: --all" not in text
    assert all(str(row.accelerators) in text for row in comparison.rows)


def test_programs_get_every_row(comparison):
    assert len(comparison.to_dict()["rows"]) == len(comparison.rows)
    assert len(comparison.flat_rows()) == len(comparison.rows) + len(comparison.refused)


@pytest.mark.parametrize("on", ["h100:64", "h100:64,h200:64,v5p:64", "h100,h200,b200,a100-80gb,l40s,v5p,v5e,v6e,t4"])
def test_bills_take_fifteen_lines_and_the_rest_is_there(on):
    from chipwise.present.text import document

    costs = api.cost(api.load("llama-3.1-8b", **RUN), on, draws=100)
    lines = str(costs).splitlines()
    assert len(lines) <= 15 and lines[-1].endswith("--full")
    assert any(line.startswith("Cheapest of") for line in lines)
    full = document(costs.full_blocks())
    assert "What h100:64 is paid for" in full and len(full.splitlines()) > 40
    assert len(costs.to_dict()["statements"]) == len(costs.statements)
    if len(costs.statements) > 6:
        assert "more expensive ones: --full" in str(costs)
