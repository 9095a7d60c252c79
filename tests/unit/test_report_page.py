"""A page is one file: well formed, every text escaped, nothing fetched, the same bytes for the same report."""

import re
import subprocess
import sys
from dataclasses import replace
from datetime import date
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_cases import HOSTILE, REPORTS, training

from chipwise.present.blocks import Link, Table
from chipwise.report.page import page
from chipwise.report.parts import Decision, Figure, Points, Prose, Report, Section, Tile

pytestmark = pytest.mark.thorough

VOID = {"meta", "link", "wbr", "br", "hr", "img", "input"}


class Read(HTMLParser):
    """Tags in order, ids, text, and whether every tag is closed by its own."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.ids, self.words, self.wrong = [], [], [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "title"):
            self.words.append(data)


def plainly(text):
    return text.replace("\N{NO-BREAK SPACE}", " ")


def written(words):
    """A report with the same words everywhere."""
    table = Table(
        (words, "n"), ((words, "1"), (Link(words, words), words)), frozenset({words}), title=words, notes=(words,)
    )
    figure = Figure("fig", words, words, "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 1 1'></svg>")
    decision = Decision(words, words, (Tile(words, words, words, words),), (Points(words, (words,)),), figure)
    return Report(
        words,
        words,
        date(2026, 1, 2),
        decision,
        (Section("s", words, (Prose(words, words), Points(words, (words,)), table)),),
    )


@pytest.mark.parametrize("name", REPORTS)
def test_tags_are_closed_ids_are_unique_and_headings_go_down_by_one(name):
    read = Read(page(REPORTS[name]()))
    assert not read.wrong and not read.open
    assert len(read.ids) == len(set(read.ids))
    levels = [int(tag[1]) for tag, _ in read.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1 and all(b <= a + 1 for a, b in pairwise(levels))


@pytest.mark.parametrize("name", REPORTS)
def test_nothing_is_fetched_and_no_script_is_there(name):
    html = page(REPORTS[name]())
    for tag, attrs in Read(html).tags:
        assert tag not in ("script", "iframe", "object", "embed", "img", "base", "form")
        assert not [key for key in attrs if key.startswith("on")]
        if tag == "link":
            assert attrs["href"].startswith("data:")
        elif "src" in attrs or (tag != "a" and attrs.get("href", "#")[0] != "#"):
            pytest.fail(f"{tag} {attrs}")
    assert "@import" not in html and not re.search(r"url\((?!#)", html)


@pytest.mark.parametrize("name", REPORTS)
def test_tables_have_headers_with_scope_and_figures_say_what_they_show(name):
    read = Read(page(REPORTS[name]()))
    for tag, attrs in read.tags:
        if tag == "th":
            assert attrs["scope"] in ("row", "col")
        if tag == "svg":
            assert attrs["role"] == "img" and len(attrs["aria-label"]) > 40
    tables = sum(tag == "table" for tag, _ in read.tags)
    assert tables == sum(tag == "caption" for tag, _ in read.tags) > 3
    assert sum(tag == "figure" for tag, _ in read.tags) == len(REPORTS[name]().figures) >= 4


@settings(max_examples=60, deadline=None)
@given(
    st.one_of(
        st.sampled_from(
            [
                HOSTILE,
                '"><img src=x onerror=alert(1)>',
                "javascript:alert(1)",
                "https://a.b/'\"><script>",
                "]]>",
                "*/ } body{display:none} /*",
            ]
        ),
        st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=40),
    )
)
def test_every_text_is_shown_as_it_is_and_adds_no_element(words):
    plain, other = Read(page(written("word"))), Read(page(written(words)))
    assert not other.wrong and not other.open
    assert len(other.tags) - sum(tag in ("a", "wbr") for tag, _ in other.tags) == len(plain.tags) - sum(
        tag == "a" for tag, _ in plain.tags
    )
    if words.strip():
        assert plainly("".join(other.words)).count(plainly(words)) >= 10
    assert all(attrs["href"].startswith(("#", "http")) for tag, attrs in other.tags if tag == "a")


def test_a_title_cannot_leave_the_style_of_the_printed_foot():
    html = page(replace(training(), title=HOSTILE))
    style = html.split("<style>")[1].split("</style>")[0]
    assert "script" in style and not set('<>"\\') & set(
        style.split("@bottom-left")[1].split("content: ")[1].split(";")[0].strip('"')
    )


def test_the_same_report_is_the_same_bytes_in_another_process():
    code = (
        "import hashlib, sys; sys.path.insert(0, sys.argv[1]); from report_cases import training; "
        "from chipwise.report.page import page; print(hashlib.sha256(page(training()).encode()).hexdigest())"
    )
    line = [sys.executable, "-c", code, str(Path(__file__).parent)]
    first, second = (subprocess.run(line, capture_output=True, text=True, check=True).stdout for _ in range(2))
    assert first == second
