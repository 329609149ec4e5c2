"""What the guide's sections are made of."""

from collections.abc import Iterable
from dataclasses import dataclass

from dash import html
from dash.development.base_component import Component

from dashboard.components import with_code


@dataclass(frozen=True, slots=True)
class Section:
    """One heading of the guide.

    Attributes:
        anchor: What pages link to, `/guide#anchor`.
        title: Its heading.
        body: What stands below it.
    """

    anchor: str
    title: str
    body: tuple[Component, ...]


@dataclass(frozen=True, slots=True)
class Term:
    """A word and what it means.

    Attributes:
        anchor: What pages link to.
        word: The word as screens have it.
        meaning: One or two sentences; `code` between backticks.
        source: Where the definition comes from.
    """

    anchor: str
    word: str
    meaning: str
    source: str = ""


def prose(text: str) -> Component:
    """Return a paragraph."""
    return html.P(with_code(text))


def terms(found: Iterable[Term]) -> Component:
    """Return words with their meanings, each with an anchor of its own."""
    pairs = [
        (
            html.Dt(term.word, id=term.anchor, tabIndex=-1),
            html.Dd([*with_code(term.meaning), *_source(term)]),
        )
        for term in found
    ]
    return html.Dl([part for pair in pairs for part in pair], className="terms")


def _source(term: Term) -> list[Component]:
    return [html.Span(f" ({term.source})", className="muted")] if term.source else []


def points(*texts: str) -> Component:
    """Return a list of sentences."""
    return html.Ul([html.Li(with_code(text)) for text in texts])
