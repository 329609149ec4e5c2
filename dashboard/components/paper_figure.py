"""The dialog that makes a picture ready for a paper: size, letters, legend, title, caption."""

import json

import dash_mantine_components as dmc
from dash import Input, Output, State

from dashboard.callbacks import browser_callback
from dashboard.components.controls import Choice, segmented, switch
from dashboard.components.number_fields import number_field
from dashboard.markup import Component, html
from ib_core.written import NumberKind

LEGENDS: tuple[Choice, ...] = (
    ("shown", "As shown"),
    ("below", "Below"),
    ("right", "Right"),
    ("none", "None"),
)
KINDS = {"pdf": "PDF", "svg": "SVG", "png": "PNG"}
#: One column of most papers, and the size of its captions.
WIDTH_CM, FONT_PT = 8.5, 8.0
WIDTHS = NumberKind("The width in cm", 4, 40)
FONTS = NumberKind("The font size in points", 5, 24)


def figure_dialog(page: str) -> Component:
    """Return the dialog of a page; `figure_from` says whose picture it takes.

    Args:
        page: What its ids begin with.
    """
    return dmc.Modal(
        [
            html.Div(
                [
                    number_field(
                        f"{page}-paper-width", WIDTHS, text=f"{WIDTH_CM:g}", label="Width (cm)",
                        value=WIDTH_CM,
                    ),
                    number_field(
                        f"{page}-paper-font", FONTS, text=f"{FONT_PT:g}", label="Font size (pt)",
                        value=FONT_PT,
                    ),
                ],
                className="pair",
            ),
            segmented("Legend", f"{page}-paper-legend", LEGENDS, "shown"),
            switch("Title", f"{page}-paper-title", False),
            dmc.Textarea(
                label="Caption", id=f"{page}-paper-caption", value="", autosize=True, minRows=3,
                description="States the setting; it is not in the picture, but yours to copy.",
                mt=8,
            ),
            dmc.Group(
                [
                    dmc.Button(
                        words, id=f"{page}-paper-{kind}", n_clicks=0,
                        variant="filled" if kind == "pdf" else "default",
                    )
                    for kind, words in KINDS.items()
                ],
                justify="end",
                mt=16,
            ),
        ],
        id=f"{page}-paper",
        title="Figure for a paper",
        closeButtonProps={"aria-label": "Close"},
    )  # fmt: skip


def figure_from(page: str, graph: str, button: str) -> None:
    """Let a button open a page's dialog, and the dialog take a graph's picture along.

    Args:
        page: What the dialog's ids begin with.
        graph: Whose picture it is.
        button: Opens the dialog.
    """
    name = json.dumps(graph)
    browser_callback(
        f"function(clicks) {{ return [Boolean(clicks), window.etascope.captionOf({name})]; }}",
        Output(f"{page}-paper", "opened"),
        Output(f"{page}-paper-caption", "value"),
        Input(button, "n_clicks"),
        prevent_initial_call=True,
    )
    for kind in KINDS:
        browser_callback(
            "function(clicks, width, font, legend, title) { if (clicks) { "
            f"window.etascope.exportPicture({name}, '{kind}', 'etascope-figure', "
            "{width, font, legend, title}); } }",
            Input(f"{page}-paper-{kind}", "n_clicks"),
            State(f"{page}-paper-width", "value"),
            State(f"{page}-paper-font", "value"),
            State(f"{page}-paper-legend", "value"),
            State(f"{page}-paper-title", "checked"),
            prevent_initial_call=True,
        )
