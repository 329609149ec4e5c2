"""Taking a study elsewhere: its numbers, and the picture exactly as it is shown."""

import dash_mantine_components as dmc
from dash import Input

from dashboard.api_client import api_address
from dashboard.callbacks import browser_callback
from dashboard.ids import Study as ids
from dashboard.markup import Component, html

#: Lines as lines first; a picture of pixels for where nothing else is taken.
PICTURES = {"pdf": "PDF", "svg": "SVG", "png": "PNG", "print": "Print…"}
LOOK = "button-link"
NUMBERS = ("csv", "json", "parquet")


def export_menu(study_id: int) -> Component:
    """Return the menu of everything one can take along."""
    return dmc.Menu(
        [
            # Mantine puts what a screen reader must know on the wrapper, so that is the button.
            dmc.MenuTarget(
                html.Span("Export"),
                boxWrapperProps={"component": "button", "type": "button", "className": LOOK},
            ),
            dmc.MenuDropdown(
                [
                    dmc.MenuLabel("The picture as shown"),
                    *(
                        dmc.MenuItem(words, id=f"study-export-{kind}", n_clicks=0)
                        for kind, words in PICTURES.items()
                    ),
                    dmc.MenuDivider(),
                    dmc.MenuLabel("Every trial"),
                    *(
                        dmc.MenuItem(
                            kind.upper() if kind != "parquet" else "Parquet",
                            href=f"{api_address()}/api/studies/{study_id}/export?format={kind}",
                            target="_blank",
                        )
                        for kind in NUMBERS
                    ),
                ]
            ),
        ],
        position="bottom-end",
        keepMounted=True,
    )


for _kind in PICTURES:
    browser_callback(
        "function(clicks, study) { if (clicks) { "
        f"window.etascope.exportPicture('{ids.GRAPH}', '{_kind}', 'etascope-study-' + study); "
        "} }",
        Input(f"study-export-{_kind}", "n_clicks"),
        Input(ids.ID, "data"),
        prevent_initial_call=True,
    )
