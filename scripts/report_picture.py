"""Draw docs/img/report.png: the first page of a report in a browser. Run by `make picture`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from chipwise.report.pdf import browser

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE, CHIPS = "examples/llama-3.1-8b-pretrain.yaml", "h100,h200,b200,v5p,v6e,a100-80gb"
WIDTH, MARGIN = 1060, 16  # pixels


def main() -> None:
    """Write a report and take a picture of what it says first."""
    target = ROOT / "docs" / "img" / "report.png"
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        page_file = Path(folder) / "report.html"
        subprocess.run(
            [sys.executable, "-m", "chipwise", "report", EXAMPLE, "--on", CHIPS, "--out", str(page_file)],
            cwd=ROOT,
            check=True,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "CHIPWISE_DATA": folder},
        )
        root = hasattr(os, "geteuid") and os.geteuid() == 0
        started = driver.chromium.launch(executable_path=browser(), args=["--no-sandbox"] if root else [])
        page = started.new_page(viewport={"width": WIDTH, "height": 900})
        page.goto(page_file.as_uri())
        end = page.locator("nav").bounding_box()
        assert end is not None
        page.screenshot(
            path=str(target),
            full_page=True,
            clip={"x": 0, "y": 0, "width": WIDTH, "height": end["y"] + end["height"] + MARGIN},
        )
        started.close()
    print(f"wrote {target.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
