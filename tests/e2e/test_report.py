"""Reports as people read them: written by the command line, opened in a real browser at two sizes, printed to PDF."""

import io
import os
import shutil
import sys
from datetime import date
from itertools import pairwise

import pytest
from command import EXAMPLE, ROOT, chipwise, good
from playwright.sync_api import sync_playwright
from pypdf import PdfReader

sys.path.insert(0, str(ROOT / "tests" / "unit"))
from report_cases import fleet

from chipwise.report.page import page as html_of
from chipwise.report.pdf import browser as found_browser
from chipwise.report.pdf import print_pdf

pytestmark = pytest.mark.service

SIZES = {"desk": (1280, 900), "phone": (390, 844)}
SERVE = str(ROOT / "examples" / "llama-3.1-70b-serve.yaml")
COMMANDS = {
    "training": (EXAMPLE, "--on", "h100,h200,b200,v5p,v6e,mi300x"),
    "service": (SERVE, "--on", "h100,h200,v6e"),
    "pipeline": (str(ROOT / "examples" / "gpt3-175b-pretrain.yaml"), "--on", "h100,h200"),  # its layouts are long words
    "every chip": (EXAMPLE,),
    "every chip serving": (SERVE,),
}
PRINTED = round((210 - 2 * 16) / 25.4 * 96)  # pixels that the margins of A4 leave
CONTRAST = 4.5  # of WCAG 2, level AA

COLOURS = """() => {
  const channels = c => (c.match(/[\\d.]+/g) || []).map(Number);
  const light = c => { const f = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
                       return 0.2126 * f(c[0]) + 0.7152 * f(c[1]) + 0.0722 * f(c[2]); };
  const behind = e => { for (; e; e = e.parentElement) { const c = channels(getComputedStyle(e).backgroundColor);
                          if (c.length === 3 || c[3] === 1) return c; } return [255, 255, 255]; };
  const out = [];
  for (const e of document.querySelectorAll('h1, h2, h3, p, li, dt, dd div, th, td, caption, figcaption, figcaption b, a, svg text')) {
    const ink = e.closest('svg') ? getComputedStyle(e).fill : getComputedStyle(e).color;
    const [a, b] = [light(channels(ink)), light(behind(e))].sort((x, y) => y - x);
    out.push([(a + 0.05) / (b + 0.05), e.tagName, e.textContent.slice(0, 40)]);
  }
  return out; }"""
OUTSIDE = """() => [...document.querySelectorAll('figure svg')].flatMap(svg => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter(t => t.textContent.trim()).filter(t => {
    const b = t.getBoundingClientRect();
    return b.left < box.left - 1 || b.right > box.right + 1 || b.top < box.top - 1 || b.bottom > box.bottom + 1;
  }).map(t => t.textContent); })"""


class Written(dict):
    """The path of each report, written when it is first asked for."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    def __missing__(self, name):
        path = self[name] = self.folder / f"{name}.html"
        if name == "fleet":
            path.write_text(html_of(fleet()), encoding="utf-8")
        else:
            said = good("report", *COMMANDS[name], "--out", path)
            assert "sections" in said and str(path) in said
        assert sorted(self.folder.iterdir()) == sorted(self.values())
        return path


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    return Written(tmp_path_factory.mktemp("reports"))


NAMES = [pytest.param(name, marks=[pytest.mark.slow] if "every chip" in name else []) for name in COMMANDS]


@pytest.fixture(scope="module")
def chromium():
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=found_browser(), args=["--no-sandbox"] if root else [])
        yield started
        started.close()


REPORTS = ("training", "service", "pipeline", "fleet")


@pytest.fixture(
    params=[
        pytest.param((name, size), marks=[pytest.mark.slow] if (n + m) % len(SIZES) else [], id=f"{name}-{size}")
        for n, name in enumerate(REPORTS)
        for m, size in enumerate(SIZES)
    ]
)
def opened(request, reports, chromium):
    """A report in a window, with what the page asked for and complained about."""
    name, size = request.param
    width, height = SIZES[size]
    context = chromium.new_context(viewport={"width": width, "height": height}, offline=True)
    page = context.new_page()
    asked, wrong = [], []
    page.on("request", lambda r: asked.append(r.url))
    page.on("console", lambda m: wrong.append(m.text))
    page.on("pageerror", lambda e: wrong.append(str(e)))
    page.goto(reports[name].as_uri())
    yield page, asked, wrong
    context.close()


def test_it_opens_without_a_request_a_complaint_or_a_sideways_scroll(opened):
    page, asked, wrong = opened
    assert wrong == [] and [url for url in asked if not url.startswith("data:")] == [page.url]
    width = page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.body.scrollWidth") <= width
    assert page.evaluate("document.fonts.status") == "loaded"


def test_every_figure_is_seen_whole(opened):
    page, _, _ = opened
    figures = page.locator("figure svg")
    assert figures.count() >= 4
    for i in range(figures.count()):
        box = figures.nth(i).bounding_box()
        assert box["width"] > 250 and box["height"] > 60
        assert figures.nth(i).is_visible() and figures.nth(i).get_attribute("aria-label")
    assert page.evaluate(OUTSIDE) == []


def test_wide_tables_scroll_inside_their_box_and_can_be_reached_by_keyboard(opened):
    page, _, _ = opened
    wide = page.evaluate("""() => [...document.querySelectorAll('.scroll')].map(b => [b.scrollWidth > b.clientWidth, b.tabIndex,
        b.getBoundingClientRect().right <= innerWidth])""")
    assert wide and all(index == 0 and inside for _, index, inside in wide)
    if page.viewport_size["width"] == SIZES["phone"][0]:
        assert any(scrolls for scrolls, _, _ in wide)


def test_headings_go_down_in_order_and_links_lead_to_sections(opened):
    page, _, _ = opened
    levels = page.evaluate(
        "[...document.querySelectorAll('h1,h2,h3,h4')].filter(h => h.offsetParent).map(h => +h.tagName[1])"
    )
    assert levels[0] == 1 and levels.count(1) == 1 and all(b <= a + 1 for a, b in pairwise(levels))
    links = page.locator("nav a")
    assert links.count() >= 5
    for i in range(links.count()):
        target = links.nth(i).get_attribute("href")
        links.nth(i).click()
        assert page.evaluate("location.hash") == target
        assert page.evaluate(
            "h => { const r = document.querySelector(h).getBoundingClientRect(); return r.top < innerHeight && r.bottom > 0; }",
            target,
        )
    assert all(
        url.startswith("http")
        for url in page.evaluate("[...document.querySelectorAll('a:not([href^=\"#\"])')].map(a => a.href)")
    )


def test_text_stands_out_from_what_lies_behind_it(opened):
    page, _, _ = opened
    found = page.evaluate(COLOURS)
    assert len(found) > 100 and [each for each in found if each[0] < CONTRAST] == []


def test_hostile_names_are_text(reports, chromium):
    page = chromium.new_page()
    page.on("dialog", lambda d: pytest.fail(d.message))
    page.goto(reports["fleet"].as_uri())
    assert page.locator("h1").inner_text() == fleet().title and page.locator("script").count() == 0
    page.close()


YEAR = date.today().year + 1
DEMAND = f"""
start: {YEAR}-01
quarters: 3
workloads:
  - name: pre-training & <i>more</i>
    workload: {EXAMPLE}
    train: {{deadline: {YEAR}-09}}
  - name: chat
    workload: {SERVE}
    serve: {{rate: 10, growth_month: 0.05, peak: 2, peak_hours: 9-17}}
candidates:
  - {{chip: h100}}
  - {{chip: v6e, clouds: [gcp], quota: 512}}
on_premises: {{chips: [h100]}}
"""


def test_a_demand_file_is_planned_and_reported(tmp_path):
    (tmp_path / "next-year.yaml").write_text(DEMAND, encoding="utf-8")
    said = good("report", tmp_path / "next-year.yaml", "--out", tmp_path / "plan.html")
    html = (tmp_path / "plan.html").read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ")
    assert said.splitlines()[0] in html and "plan.html: " in said
    for words in (
        "<h1>next-year</h1>",
        "Fleet plan",
        "pre-training &amp; &lt;i&gt;more",
        "GPU only",
        "demand +20 %",
        "Prices used",
        "us-average",
        "Every time is a value with a 90 % interval",
    ):
        assert words in html
    for flag, value in (("--on", "h100"), ("--deadline", "30d"), ("--batch", "8"), ("--evidence", "auto")):
        done = chipwise("report", tmp_path / "next-year.yaml", flag, value, "--out", tmp_path / "other.html")
        assert done.returncode == 2 and done.stderr == (
            f"chipwise: can't combine {flag} with a demand file: it says what may be used\n"
        )
    assert not (tmp_path / "other.html").exists()


def test_a_demand_that_no_plan_meets_is_reported_with_what_has_to_give_way(tmp_path):
    (tmp_path / "short.yaml").write_text(
        DEMAND.replace("quota: 512", "quota: 8").replace("  - {chip: h100}\n", "").partition("on_premises")[0],
        encoding="utf-8",
    )
    assert "No plan meets this demand" in good("report", tmp_path / "short.yaml", "--out", tmp_path / "plan.html")
    assert "What has to give way" in (tmp_path / "plan.html").read_text(encoding="utf-8")


@pytest.fixture(
    scope="module",
    params=NAMES,
)
def printed(request, tmp_path_factory):
    """What the command line printed."""
    path = tmp_path_factory.mktemp("printed") / "report.pdf"
    good("report", *COMMANDS[request.param], "--out", path)
    assert list(path.parent.iterdir()) == [path]
    return request.param, PdfReader(path)


def flat(text):
    return " ".join(text.split())


def test_a_pdf_has_the_decision_on_its_first_page_and_all_sections_after_it(printed):
    _, reader = printed
    pages = [flat(sheet.extract_text()) for sheet in reader.pages]
    assert 4 <= len(pages) <= 15
    assert (
        "Pick " in pages[0]
        and "What would change this" in pages[0]
        and "Figure 1." in pages[0]
        and "Comparison" not in pages[0]
    )
    assert "1 Comparison" in pages[1]
    whole = " ".join(pages)
    for words in (
        "What it costs",
        "Rent or buy",
        "Cost against time",
        "Sensitivity",
        "Evidence and error bars",
        "Assumptions and sources",
        "Prices used",
        "interval held",
    ):
        assert words in whole
    assert f"page {len(pages)} of {len(pages)}" in pages[-1]


def test_a_fleet_plan_is_printed_with_its_decision_on_the_first_page():
    pages = [flat(sheet.extract_text()) for sheet in PdfReader(io.BytesIO(print_pdf(html_of(fleet())))).pages]
    assert fleet().decision.headline in pages[0] and "Figure 1." in pages[0] and "1 Fleet plan" in pages[1]
    assert all(len(page) > 100 for page in pages)


def test_no_page_of_a_pdf_is_blank(printed):
    _, reader = printed
    assert all(len(flat(sheet.extract_text())) > 150 for sheet in reader.pages)


@pytest.mark.parametrize("name", [*NAMES, "fleet"])
def test_nothing_is_wider_than_the_printed_page(name, reports, chromium):
    page = chromium.new_page(viewport={"width": PRINTED, "height": 1000})
    page.emulate_media(media="print")
    page.goto(reports[name].as_uri())
    wide = page.evaluate(
        "w => [...document.querySelectorAll('table, figure, p, li')].filter(e => e.getBoundingClientRect().right > w + 1)"
        ".map(e => e.tagName + ' ' + e.textContent.slice(0, 50))",
        PRINTED,
    )
    assert wide == [] and not page.locator("nav").is_visible()
    page.close()


def test_the_same_command_writes_the_same_page(reports, tmp_path):
    again = tmp_path / "again.html"
    good("report", *COMMANDS["training"], "--out", again)
    assert again.read_bytes() == reports["training"].read_bytes()


BAD = {
    "no file": ((EXAMPLE,), "--out"),
    "another kind of file": ((EXAMPLE, "--out", "report.docx"), "a file name that ends in .html or .pdf"),
    "a folder that is not there": ((EXAMPLE, "--out", "no/report.html"), "a folder that exists"),
    "no such workload": (("nothing.yaml", "--out", "report.html"), "nothing.yaml"),
    "no such chip": ((EXAMPLE, "--on", "h10", "--out", "report.html"), "h100"),
    "no such site": ((EXAMPLE, "--on", "h100", "--site", "moon", "--out", "report.html"), "--site"),
    "a share above one": ((EXAMPLE, "--on", "h100", "--utilization", "1.5", "--out", "report.html"), "utilization"),
    "no number for an assumption": (
        (EXAMPLE, "--on", "h100", "--set", "interest=much", "--out", "report.html"),
        "--set",
    ),
    "nothing that fits": ((EXAMPLE, "--on", "t4:1", "--out", "report.html"), "t4"),
    "a limit without a plan": ((EXAMPLE, "--time-limit", "9s", "--out", "report.html"), "--time-limit"),
    "prices that are not there": ((EXAMPLE, "--on", "h100", "--prices", "no.csv", "--out", "report.html"), "no.csv"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_writes_nothing(case, tmp_path):
    arguments, words = BAD[case]
    done = chipwise("report", *arguments, cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    assert done.stderr.startswith("chipwise: ") and words in done.stderr and not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", [("--on", "h100"), ("--years", "4"), ("--batch", "8")])
def test_options_that_a_demand_file_decides_are_refused_beside_it(option, tmp_path):
    done = chipwise("report", ROOT / "examples/fleet/mixed.yaml", *option, "--out", "report.html", cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and option[0] in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "named, words",
    [(None, "apt-get install chromium"), ("/no/browser", "CHIPWISE_BROWSER"), (shutil.which("false"), "made no PDF")],
)
def test_without_a_browser_a_pdf_is_one_line_and_nothing_is_written(named, words, tmp_path):
    env = {**os.environ, "PATH": str(tmp_path)}
    env.pop("CHIPWISE_BROWSER", None)
    if named:
        env["CHIPWISE_BROWSER"] = named
    done = chipwise("report", EXAMPLE, "--on", "h100", "--out", "report.pdf", cwd=tmp_path, env=env)
    assert (
        done.returncode == 2 and done.stderr.count("\n") == 1 and words in done.stderr and not list(tmp_path.iterdir())
    )
    assert (
        "report.pdf: " in good("report", EXAMPLE, "--on", "h100", "--out", "report.pdf", cwd=tmp_path)
        if named is None
        else True
    )


def test_a_report_is_opened_by_the_browser_named(tmp_path):
    seen, script, out = tmp_path / "seen", tmp_path / "browser", tmp_path / "report.html"
    script.write_text(f'#!/bin/sh\necho "$1" > {seen}\n')
    script.chmod(0o755)
    env = {**os.environ, "BROWSER": f"{script} %s"}
    done = chipwise("report", EXAMPLE, "--on", "h100:64,v5p:64", "--out", out, "--open", env=env)
    assert done.returncode == 0 and seen.read_text().strip() == out.resolve().as_uri(), done.stderr


def test_an_old_report_is_replaced_whole(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old", encoding="utf-8")
    assert chipwise("report", EXAMPLE, "--on", "t4:1", "--out", path).returncode == 2
    assert path.read_text(encoding="utf-8") == "old"
    good("report", EXAMPLE, "--on", "h100", "--out", path)
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>") and list(tmp_path.iterdir()) == [path]
