"""The site: it builds without a warning, has every page in its menu, and leads nowhere that isn't there."""

import re
import subprocess
import sys
from html import unescape
from urllib.parse import unquote

import yaml
from command import ROOT

from chipwise.cli.verbs import PANELS

CONFIG = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))


def menu(entries):
    for entry in entries:
        for title, target in entry.items():
            yield from menu(target) if isinstance(target, list) else [(title, target)]


def test_every_page_is_in_the_menu():
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} | {"index.md", "contributing.md", "changes.md"}
    assert {target for _, target in menu(CONFIG["nav"])} == pages


def test_verbs_stand_under_their_panels():
    sections = {title: entries for entry in CONFIG["nav"] for title, entries in entry.items()}
    for panel, verbs in PANELS.items():
        assert [title for title, _ in menu(sections[panel])] == list(verbs)


def test_the_site_builds_strictly_and_its_links_lead_somewhere(tmp_path):
    site = tmp_path / "site"
    line = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(site)]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    pages = list(site.rglob("*.html"))
    assert len(pages) > 35 and (site / "examples" / "decide.ipynb").is_file()
    missing = set()
    for page in pages:
        for address in re.findall(r'(?:href|src)="([^"#]+)', page.read_text(encoding="utf-8")):
            target = unquote(unescape(address))
            if not re.match(r"[a-z]+:|//|/|data:", target) and not (page.parent / target.partition("?")[0]).exists():
                missing.add((page.name, target))
    assert not missing
