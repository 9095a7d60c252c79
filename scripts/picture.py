"""Draw docs/img/compare.svg: six chips compared on a terminal. Run by `make picture`."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from chipwise.catalog.calibration import load_calibration
from chipwise.compare import Candidate, compare
from chipwise.knowledge import Knowledge
from chipwise.present.terminal import Terminal, draw
from chipwise.workload import load_workload

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 150  # columns of the terminal
CHIPS = "a100-80gb,h100,h200,b200,v5p,v6e"


def main() -> None:
    """Compare a few chips and save the terminal as a picture."""
    work = load_workload(ROOT / "examples" / "llama-3.1-8b-pretrain.yaml")
    found = compare(work, [Candidate.read(name) for name in CHIPS.split(",")], Knowledge(load_calibration(bench=False)))
    shown = io.StringIO()
    draw(found.blocks(), Terminal(shown, WIDTH, color=True, ascii=False))
    console = Console(
        record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, highlight=False, color_system="truecolor"
    )
    console.print(Text.from_ansi(shown.getvalue()))
    target = ROOT / "docs" / "img" / "compare.svg"
    target.parent.mkdir(parents=True, exist_ok=True)
    console.save_svg(
        str(target),
        title=f"chipwise compare examples/llama-3.1-8b-pretrain.yaml --on {CHIPS}",
        theme=MONOKAI,
        unique_id="chipwise",
    )
    print(f"wrote {target.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
