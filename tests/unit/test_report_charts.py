"""Charts: ids that are their own, words as text, nothing outside the picture, whatever the numbers."""

import re
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.report import charts
from chipwise.report.front import Dot, _undominated, front
from chipwise.report.inline import inline

pytestmark = pytest.mark.thorough

AMOUNT = st.floats(1e-3, 1e9)
LABEL = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=24)


def dot(label, x, y, strong=False):
    return Dot(label, x, 0.8 * x, 1.3 * x, y, 0.8 * y, 1.3 * y, strong)


CHARTS = {
    "b": lambda: charts.bars(
        charts.Labels("b", "c", "d"),
        [charts.Bar("h100", 3.0, 2.0, 4.0, True), charts.Bar("v5p", 5.0, 3.0, inf, weak=True)],
        "US dollars",
    ),
    "s": lambda: charts.stacks(
        charts.Labels("s", "c", "d"),
        ["on demand", "spot"],
        {"chips": [5.0, 3.0], "value left": [-1.0, 0.0]},
        "US dollars",
    ),
    "f": lambda: front(
        charts.Labels("f", "c", "d"), [dot("h100", 5, 3, True), dot("v5p", 50, 1), dot("b200", 2, 90)], "days", "$", str
    ),
    "c": lambda: charts.curves(
        charts.Labels("c", "c", "d"),
        [
            charts.Curve("own", (0.1, 1.0), (9.0, 1.0), True, (8.0, 0.5), (10.0, 2.0)),
            charts.Curve("rent", (0.1, 1.0), (2.0, 2.0)),
        ],
        "used",
        "$",
        str,
        marks=[(0.5, 2.0, "50 %")],
    ),
    "t": lambda: charts.tornado(
        charts.Labels("t", "c", "d"),
        100.0,
        [charts.Swing("price", 80.0, 130.0, "$80", "$130"), charts.Swing("time", 110.0, 95.0)],
        "US dollars",
    ),
    "o": lambda: charts.over_time(
        charts.Labels("o", "c", "d"),
        [f"2027-{m:02d}" for m in range(1, 25)],
        {"own": [float(m) for m in range(24)], "value": [-2.0] * 24},
        "chips",
        str,
        {"at work": [3.0] * 24},
    ),
}


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_is_one_svg_element_with_ids_of_its_own(name):
    figure = CHARTS[name]()
    assert figure.svg.startswith("<svg ") and figure.svg.endswith("</svg>") and "<style" not in figure.svg
    assert all(each.startswith(f"{figure.name}-") for each in re.findall(r'\bid="([^"]+)"', figure.svg))
    assert all(each.startswith(f"{figure.name}-") for each in re.findall(r'(?:href="#|url\(#)([^")]+)', figure.svg))
    assert "<text" in figure.svg and "<dc:date" not in figure.svg


def test_words_of_people_stay_words():
    drawn = charts.bars(charts.Labels("b", "c", "d"), [charts.Bar("<b>&$x$</b>", 1.0, 0.5, 2.0)], "US dollars").svg
    assert "&lt;b&gt;&amp;$x$&lt;/b&gt;" in drawn


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.tuples(LABEL, AMOUNT, st.floats(0.1, 1.0), st.one_of(st.floats(1.0, 5.0), st.just(inf))),
        min_size=1,
        max_size=14,
    )
)
def test_bars_of_any_size_are_drawn(rows):
    given = [charts.Bar(label, value, low * value, high * value) for label, value, low, high in rows]
    assert charts.bars(charts.Labels("b", "c", "d"), given, "US dollars").svg.count("<text") >= 2 * len(rows)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(LABEL, AMOUNT, AMOUNT), min_size=2, max_size=20))
def test_a_front_has_the_dots_that_nothing_beats(rows):
    dots = [dot(label, x, y) for label, x, y in rows]
    best = _undominated(dots)
    assert best and all(any(o.x <= d.x and o.y <= d.y for o in best) for d in dots)
    front(charts.Labels("f", "c", "d"), dots, "days", "$", str)


def test_a_drawing_keeps_what_points_inside_it():
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="1pt"><metadata>x</metadata>'
        '<g id="a" clip-path="url(#c)"><use xlink:href="#b"/></g></svg>'
    )
    kept = inline(svg, "n")
    assert (
        'id="n-a"' in kept
        and "url(#n-c)" in kept
        and '"#n-b"' in kept
        and "metadata" not in kept
        and "width" not in kept
    )
