"""A report into its file: HTML, or a PDF printed by a browser."""

from __future__ import annotations

import os
from pathlib import Path

from chipwise.errors import InputError, Refusal
from chipwise.io.atomic import atomic_write
from chipwise.report.page import page
from chipwise.report.parts import Report
from chipwise.report.pdf import browser, print_pdf

SUFFIXES = (".html", ".htm", ".pdf")


def ready(target: Path) -> None:
    """Refuse a file that couldn't be written, or a PDF without a browser to print it, before the work."""
    if target.suffix.lower() not in SUFFIXES:
        raise InputError("out", str(target), "a file name that ends in .html or .pdf")
    folder = target.resolve().parent
    if target.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InputError("out", str(target), "a file in a folder that exists and can be written to")
    if target.suffix.lower() == ".pdf":
        browser()


def show_file(target: Path) -> None:
    """Open a written report in the browser of this machine, or of the variable BROWSER."""
    import webbrowser

    if not webbrowser.open(target.resolve().as_uri()):
        raise Refusal(f"no browser was found here to show {target}", "open the file elsewhere, or set BROWSER")


def write(report: Report, target: Path) -> None:
    """Write a report, atomically."""
    ready(target)
    html = page(report)
    pdf = target.suffix.lower() == ".pdf"
    atomic_write(print_pdf(html, browser()) if pdf else html.encode("utf-8"), target, "out")
