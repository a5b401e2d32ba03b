"""A self-contained HTML page of results: inline styles and SVG, no scripts, nothing fetched from anywhere."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files

from genesis.io.atomic import write_atomically


@dataclass(frozen=True, slots=True)
class Card:
    """A key figure on top of the page; ``ok`` colours it."""

    value: str
    label: str
    ok: bool | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """A titled part: a sentence, pictures ``(svg, caption)``, code, a table whose first row is its head."""

    title: str
    lead: str
    figures: Sequence[tuple[str, str]] = ()
    code: str = ""
    table: Sequence[Sequence[str]] = field(default=())


def _card(card: Card) -> str:
    kind = "card" if card.ok is None else "card ok" if card.ok else "card failed"
    return f'<div class="{kind}"><b>{escape(card.value)}</b><span>{escape(card.label)}</span></div>'


def _section(section: Section) -> str:
    parts = [f'<section><h2>{escape(section.title)}</h2><p class="lead">{escape(section.lead)}</p>']
    if section.code:
        parts.append(f"<pre><code>{escape(section.code)}</code></pre>")
    if section.figures:
        figures = "".join(
            f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>" for svg, caption in section.figures
        )
        parts.append(f'<div class="figures">{figures}</div>')
    if section.table:
        head, *rows = section.table
        cells = "".join(f"<th>{escape(c)}</th>" for c in head)
        body = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in rows)
        parts.append(f"<table><tr>{cells}</tr>{body}</table>")
    return "".join([*parts, "</section>"])


def render(title: str, lead: str, cards: Sequence[Card], sections: Sequence[Section], footer: str) -> str:
    """The page as text."""
    css = files("genesis.cli").joinpath("report.css").read_text(encoding="utf-8")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        'content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{escape(title)}</title><style>{css}</style></head><body><main>'
        f'<h1>{escape(title)}</h1><p class="lead">{escape(lead)}</p><div '
        f'class="cards">{"".join(map(_card, cards))}</div>'
        f"{''.join(map(_section, sections))}<footer>{escape(footer)}</footer></main></body></html>"
    )


def write_report(
    path: str | os.PathLike[str], title: str, lead: str, cards: Sequence[Card], sections: Sequence[Section], footer: str
) -> None:
    """Write the page, whole or not at all."""
    write_atomically(path, render(title, lead, cards, sections, footer).encode())
