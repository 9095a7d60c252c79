"""Write validation/SCOREBOARD.md and draw docs/img/scoreboard.svg: predictions against published training steps.

The figures that reports quote are kept in src/chipwise/validate/data/scores.csv.

Run by `make scoreboard`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

from chipwise.validate import score, scoreboard
from chipwise.validate.kept import kept_text

ROOT = Path(__file__).resolve().parent.parent
SIDE, EDGE = 420, 60  # of the plot, and around it
COLOURS = {"gpu": "#2f7d32", "tpu": "#1a5fb4", "other": "#a05a00"}


def main() -> None:
    """Score the shipped rows, write the page and the picture."""
    result = score(None, None)
    page, picture = ROOT / "validation" / "SCOREBOARD.md", ROOT / "docs" / "img" / "scoreboard.svg"
    page.write_text(scoreboard(result), encoding="utf-8")
    picture.write_text(draw(result), encoding="utf-8")
    kept = ROOT / "src" / "chipwise" / "validate" / "data" / "scores.csv"
    kept.write_text(kept_text(result), encoding="utf-8")
    for path in (page, picture, kept):
        print(f"wrote {path.relative_to(ROOT)}")


def draw(result: Mapping[str, Any]) -> str:
    """Predicted against published step times on logarithmic axes, one dot a row."""
    rows = [r for r in result["rows"] if r["kind"] == "training" and r["predicted"]]
    values = [v for r in rows for v in (r["observed"], r["predicted"])]
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    summary = result["summary"]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIDE + 2 * EDGE} {SIDE + 2 * EDGE}" '
            'font-family="sans-serif" font-size="12">',
            '<rect width="100%" height="100%" fill="white"/>',
            *_frame(low, high),
            *(_dot(r, low, high) for r in rows),
            _text(EDGE, 24, f"Predicted against published: {len(rows)} training steps", size=15),
            _text(EDGE, 44, _words(summary)),
            *(_legend(i, family) for i, family in enumerate(f for f in COLOURS if any(r["family"] == f for r in rows))),
            "</svg>",
            "",
        ]
    )


def _words(summary: Mapping[str, Any]) -> str:
    shown = {"median_ape": "median error", "coverage90": "90 % interval covers"}
    said = [f"{words} {summary[key] * 100:.1f} %" for key, words in shown.items() if summary.get(key) is not None]
    return ", ".join(said)


def _place(value: float, low: int, high: int) -> float:
    return (log10(value) - low) / (high - low) * SIDE


def _frame(low: int, high: int) -> Sequence[str]:
    out = []
    for power in range(low, high + 1):
        at = _place(10.0**power, low, high)
        label = f"{10.0**power:g} s"
        out += [
            f'<path d="M{EDGE + at:.1f} {EDGE} v{SIDE} M{EDGE} {EDGE + SIDE - at:.1f} h{SIDE}" stroke="#ddd"/>',
            _text(EDGE + at, EDGE + SIDE + 18, label, anchor="middle"),
            _text(EDGE - 6, EDGE + SIDE - at + 4, label, anchor="end"),
        ]
    return [
        *out,
        f'<path d="M{EDGE} {EDGE + SIDE} L{EDGE + SIDE} {EDGE}" stroke="#888" stroke-dasharray="4 3"/>',
        f'<rect x="{EDGE}" y="{EDGE}" width="{SIDE}" height="{SIDE}" fill="none" stroke="#444"/>',
        _text(EDGE + SIDE / 2, EDGE + SIDE + 40, "published seconds per step", anchor="middle"),
        f'<g transform="rotate(-90 14 {EDGE + SIDE / 2})">'
        + _text(14, EDGE + SIDE / 2, "predicted, its group left out of the fit", anchor="middle")
        + "</g>",
    ]


def _dot(row: Mapping[str, Any], low: int, high: int) -> str:
    x, y = _place(row["observed"], low, high), _place(row["predicted"], low, high)
    color = COLOURS.get(row["family"], "#666")
    return f'<circle cx="{EDGE + x:.1f}" cy="{EDGE + SIDE - y:.1f}" r="2.6" fill="{color}" fill-opacity="0.55"/>'


def _legend(i: int, family: str) -> str:
    y = EDGE + 20 + 18 * i
    return f'<circle cx="{EDGE + 16}" cy="{y - 4}" r="4" fill="{COLOURS[family]}"/>' + _text(
        EDGE + 26, y, family.upper()
    )


def _text(x: float, y: float, words: str, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="#222">{words}</text>'


if __name__ == "__main__":
    main()
