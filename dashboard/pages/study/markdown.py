"""Text of people's own, drawn so that it can do nothing in anybody else's browser."""

from dashboard.markup import Component, dcc


def markdown(text: str) -> Component:
    """Return markdown without HTML and pictures."""
    # An image would make every reader's browser ask some other host for it.
    inert = text.replace("![", r"!\[")
    return dcc.Markdown(
        inert, className="notes", link_target="_blank", dangerously_allow_html=False
    )
