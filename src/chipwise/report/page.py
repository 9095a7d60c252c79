"""A report as one HTML file: styles and drawings inside it, no script, nothing fetched; every text is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from typing import assert_never

from chipwise.present import html
from chipwise.present.blocks import Table
from chipwise.report.parts import Decision, Figure, Part, Points, Prose, Report, Section, Tile
from chipwise.version import __version__

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"  # no request, whatever a text may hold

UNITS = "Amounts are US dollars. Ranges are 90 % intervals unless they say otherwise. Every assumption is at the end."


def page(report: Report) -> str:
    """The whole file."""
    numbered = list(enumerate(report.sections, 1))
    figures = {figure.name: i for i, figure in enumerate(report.figures, 1)}
    body = [
        "<header>",
        f'<p class="kind">Decision report · <time datetime="{report.made}">{report.made}</time> · '
        f"chipwise {__version__}</p>",
        f"<h1>{escape(report.title)}</h1>",
        f'<p class="about">{escape(report.about)}</p>',
        "</header>",
        "<main>",
        *_decision(report.decision, figures),
        *_contents(report.sections),
        *(line for i, section in numbered for line in _section(i, section, figures)),
        "</main>",
    ]
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">',
            f'<meta name="generator" content="chipwise {__version__}">',
            f"<title>{escape(report.title)}: decision report</title>",
            '<link rel="icon" href="data:,">',
            f"<style>\n{_style(report)}</style>",
            "</head>",
            "<body>",
            *body,
            "</body>",
            "</html>",
            "",
        ]
    )


def _style(report: Report) -> str:
    """The styles, and what stands at the foot of every printed page."""
    css = (files("chipwise.report") / "style.css").read_text(encoding="utf-8")
    title = re.sub(r"[^\w .,:;()/+*@%-]", " ", report.title)[:80]  # inside a CSS string, inside a style element
    return css + (
        "@page { size: A4; margin: 16mm 16mm 18mm;\n"
        f'  @bottom-left {{ content: "{title}"; font: 7.5pt Arial, sans-serif; color: #4d5a63; }}\n'
        f'  @bottom-right {{ content: "{report.made} · page " counter(page) " of " counter(pages);'
        " font: 7.5pt Arial, sans-serif; color: #4d5a63; } }\n"
    )


def _decision(d: Decision, figures: dict[str, int]) -> Iterator[str]:
    yield '<section class="decision" id="decision" aria-labelledby="decision-title">'
    yield f'<div class="pick"><h2 id="decision-title">{html.text(d.headline)}</h2>'
    yield f"<p>{html.text(d.summary)}</p></div>"
    if d.tiles:
        yield f'<dl class="tiles" style="--n: {_columns(len(d.tiles))}">'
        yield from map(_tile, d.tiles)
        yield "</dl>"
    pairs = len(d.answers) > 3
    yield f'<div class="answers{" pairs" if pairs else ""}" style="--n: {2 if pairs else len(d.answers)}">'
    for answer in d.answers:
        yield f"<div><h3>{html.text(answer.title)}</h3>{_list(answer.items)}</div>"
    yield "</div>"
    if d.figure is not None:
        yield _figure(d.figure, figures)
    yield f'<p class="small">{html.text(UNITS)}</p>'
    yield "</section>"


def _columns(tiles: int) -> int:
    """Columns of tiles: one row of up to five, else two rows."""
    return max(1, tiles if tiles <= 5 else -(-tiles // 2))


def _tile(tile: Tile) -> str:
    lines = [f'<div class="value">{html.text(tile.value)}</div>']
    lines += [f'<div class="range">{html.text(tile.range)}</div>'] if tile.range else []
    lines += [f'<div class="note">{html.text(tile.note)}</div>'] if tile.note else []
    return f'<div class="tile"><dt>{html.text(tile.label)}</dt><dd>{"".join(lines)}</dd></div>'


def _contents(sections: tuple[Section, ...]) -> Iterator[str]:
    yield '<nav aria-label="Contents"><ol>'
    yield '<li><a href="#decision">Decision</a></li>'
    for i, section in enumerate(sections, 1):
        yield f'<li><a href="#{escape(section.id)}">{i} {html.text(section.title)}</a></li>'
    yield "</ol></nav>"


def _section(number: int, section: Section, figures: dict[str, int]) -> Iterator[str]:
    yield f'<section id="{escape(section.id)}" aria-labelledby="{escape(section.id)}-title">'
    yield f'<h2 id="{escape(section.id)}-title"><span class="n">{number}</span>{html.text(section.title)}</h2>'
    for part in section.parts:
        yield _part(part, figures)
    yield "</section>"


def _part(part: Part, figures: dict[str, int]) -> str:
    match part:
        case Prose():
            lead = f"<b>{html.text(part.lead)}</b> " if part.lead else ""
            return f"<p>{lead}{html.text(part.words)}</p>"
        case Points():
            title = f"<h3>{html.text(part.title)}</h3>" if part.title else ""
            return title + _list(part.items)
        case Table():
            return html.table(part)
        case Figure():
            return _figure(part, figures)
        case _:
            assert_never(part)


def _list(items: tuple[str, ...]) -> str:
    return "<ul>" + "".join(f"<li>{html.text(item)}</li>" for item in items) + "</ul>"


def _figure(figure: Figure, figures: dict[str, int]) -> str:
    described = f'<svg role="img" aria-label="{escape(figure.description)}"'
    drawing = figure.svg.replace("<svg", described, 1)
    return (
        f'<figure id="{escape(figure.name)}"><div class="scroll" tabindex="0" role="group" '
        f'aria-label="{escape(figure.caption)}">{drawing}</div>'
        f"<figcaption><b>Figure {figures[figure.name]}.</b> {html.text(figure.caption)}</figcaption></figure>"
    )
