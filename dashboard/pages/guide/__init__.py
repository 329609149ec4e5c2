"""Guide: what every picture and number means, in sections other pages link to.

The page's layout stands here; its sections are

| module | what it explains |
| --- | --- |
| `pictures` | pictures |
| `numbers` | every number of the scorecard, with a picture: a page of its own |
| `practice` | what is trained and how; running, moving and citing studies |
| `drawings` | nothing: the pictures of numbers |
| `material` | nothing: what sections are made of, and the study that their pictures show |
"""

from typing import Any

import dash_mantine_components as dmc
from dash import Input, Output

from backend.schemas import CatalogRead
from dashboard.api_client import get_catalog
from dashboard.components import link
from dashboard.dash_blocks import Component, browser_callback, html
from dashboard.ids import Guide
from dashboard.pages.guide import numbers, pictures, practice
from dashboard.pages.guide.material import Section
from dashboard.router import Page

__all__ = ["NUMBERS_PAGE", "PAGE", "layout", "sections"]


def sections(catalog: CatalogRead) -> list[Section]:
    """Return the whole guide; what the API defines is quoted from it."""
    return [
        *pictures.sections(catalog),
        *practice.learning_sections(catalog),
        *practice.sections(catalog),
    ]


async def layout(**_query: str) -> Component:
    """Return the page."""
    return _page(
        "Guide",
        [
            "How far can the learning rate be turned before training breaks? Etascope trains the "
            "same network at many rates with several methods and draws what became of every run. ",
            link(
                "Every number, with a picture",
                "/guide/numbers",
                inherit=True,
                underline="always",
            ),
        ],
        sections(await get_catalog()),
    )


async def number_layout(**_query: str) -> Component:
    """Return the page of the numbers."""
    lead = "What the numbers of a study mean, each with a picture. No statistics needed."
    return _page("Every number, with a picture", [lead], numbers.sections())


def _page(title: str, lead: list[Any], found: list[Section]) -> Component:
    return html.Div(
        [
            html.Div(
                [html.H1(title), html.P(lead, className="page-lead")],
                className="guide-head",
            ),
            html.Div(
                [
                    html.Nav(_contents(found), className="guide-nav", **{"aria-label": "Contents"}),
                    html.Div([_drawn(section) for section in found], className="guide-text"),
                ],
                id=Guide.CONTENT,
                className="guide",
            ),
        ]
    )


def _contents(found: list[Section]) -> Component:
    return html.Ol([html.Li(html.A(section.title, href=f"#{section.anchor}")) for section in found])


def _drawn(section: Section) -> Component:
    return html.Section(
        [
            html.H2(
                [
                    section.title,
                    html.A(
                        "#",
                        href=f"#{section.anchor}",
                        className="anchor",
                        **{"aria-label": f"Link to {section.title}"},
                    ),
                ],
                id=section.anchor,
                tabIndex=-1,
            ),
            dmc.Stack(list(section.body), gap=12),
        ]
    )


browser_callback(
    "function(_id) { return window.etascope.scrollToAnchor(); }",
    Output(Guide.CONTENT, "className"),
    Input(Guide.CONTENT, "id"),
)

PAGE = Page("/guide", "Guide", layout, navigation="Guide")
NUMBERS_PAGE = Page("/guide/numbers", "Numbers", number_layout, parent=("Guide", "/guide"))
