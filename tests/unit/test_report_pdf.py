"""A PDF is printed by a real browser; without one, or with one that fails or hangs, there is one clear line."""

import io
import stat
import sys
import time
from pathlib import Path

import pytest
from pypdf import PdfReader
from report_cases import training

from chipwise.errors import ChipwiseError, InputError
from chipwise.report.page import page
from chipwise.report.pdf import VARIABLE, browser, print_pdf


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)


def program(folder, text):
    path = folder / "browser"
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_without_a_browser_it_says_what_to_install(nowhere):
    with pytest.raises(ChipwiseError, match="apt-get install chromium") as error:
        browser()
    assert "\n" not in str(error.value)


def test_a_browser_can_be_named(nowhere, monkeypatch, tmp_path):
    named = program(tmp_path, "exit 0")
    monkeypatch.setenv(VARIABLE, named)
    assert browser() == named
    monkeypatch.setenv(VARIABLE, "/no/such/browser")
    with pytest.raises(InputError, match=VARIABLE):
        browser()


@pytest.mark.parametrize(
    "text, words",
    [
        ("echo no display >&2; exit 3", "exit status 3.*no display"),
        ("exit 0", "made no PDF"),
        ('for a in "$@"; do case $a in --print-to-pdf=*) echo text > "${a#*=}";; esac; done', "made no PDF"),
    ],
)
def test_a_browser_that_fails_is_one_line(tmp_path, text, words):
    with pytest.raises(ChipwiseError, match=words) as error:
        print_pdf("<p>x</p>", program(tmp_path, text))
    assert "\n" not in str(error.value)


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_a_browser_that_hangs_is_stopped_with_all_it_started(tmp_path):
    child, limit_s = tmp_path / "child", 0.5
    while not child.exists():  # a busy machine has not started it within the first limit
        limit_s *= 2
        with pytest.raises(ChipwiseError, match=f"within {limit_s:.0f} s"):
            print_pdf(
                "<p>x</p>",
                program(tmp_path, f"sleep 600 & echo $! > {child}.new; mv {child}.new {child}; wait"),
                limit_s=limit_s,
            )
    status = Path(f"/proc/{int(child.read_text())}/status")
    while status.exists() and "State:\tZ" not in status.read_text():  # killed; the kernel has yet to end it
        time.sleep(0.01)


def test_a_file_that_is_no_program_is_one_line(tmp_path):
    other = tmp_path / "text"
    other.write_text("no program", encoding="utf-8")
    with pytest.raises(ChipwiseError, match="could not be run"):
        print_pdf("<p>x</p>", str(other))


@pytest.mark.service
def test_a_report_is_printed_on_a4_and_leaves_nothing_behind(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    reader = PdfReader(io.BytesIO(print_pdf(page(training()))))
    assert len(reader.pages) > 3 and not list(tmp_path.iterdir())
    for sheet in reader.pages:
        assert [round(float(side)) for side in (sheet.mediabox.width, sheet.mediabox.height)] == [595, 842]
    assert training().decision.headline in reader.pages[0].extract_text()
