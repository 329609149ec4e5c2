"""What the toy's paths do, in words."""

from typing import Any

from dash import html
from dash.development.base_component import Component

from backend.schemas import PathRead, QuadraticRead
from dashboard.components.elements import method_swatch
from dashboard.figures.toy import STYLE_OF, TITLE_OF
from dashboard.formats import number

#: The loss and what is special about descending it.
LOSS_FORMULA = {
    "quadratic": "f(θ) = λθ²/2",
    "absolute": "f(θ) = λ|θ|",
    "logistic": "f(θ) = 4λ log cosh(θ/2)",
    "arctan_well": "f(θ) = λ arctan(θ)²/2",
}
LOSS_WORDS = {
    "quadratic": "The paper's example. Its slope grows with the distance from the minimum.",
    "absolute": (
        "Its slope has the same size everywhere, so every explicit step is ηλ long, also next to "
        "the minimum; the implicit step stops on the minimum once it is within reach."
    ),
    "logistic": (
        "The logistic loss of two opposite examples. Its slope is never above 2λ, so beyond the "
        "limit explicit steps do not run away but jump to and fro for ever."
    ),
    "arctan_well": (
        "Far from the minimum it is nearly flat: an explicit step that jumps over the well lands "
        "where there is hardly any slope to come back by. It is not convex."
    ),
}
#: A mark and a colour; the words beside it say the same.
BADGE = {
    "converges": ("✓", "good"),
    "oscillates": ("≈", "fair"),
    "cycles": ("↔", "fair"),
    "diverges": ("✕", "bad"),
}
BADGE_WORDS = {
    "converges": "converges",
    "oscillates": "converges, oscillating",
    "cycles": "goes to and fro for ever",
    "diverges": "diverges",
}
#: Where no factor tells what will become of it, only what was seen is said.
BADGE_ELSEWHERE = {
    "converges": "converges",
    "oscillates": "oscillates",
    "cycles": "goes to and fro",
    "diverges": "does not converge",
}
ELSEWHERE_WORDS = {
    "converges": "Its steps bring it to the minimum.",
    "oscillates": "It jumps over the minimum again and again; its last jump was the shorter one.",
    "cycles": "It keeps jumping between the same points and never settles.",
    "diverges": "After the last step it is farther from the minimum than at the start.",
}


def verdict_badge(path: PathRead) -> Component:
    """Return whether a path converges, as a badge."""
    mark, kind = BADGE[path.verdict]
    words = BADGE_WORDS[path.verdict] if path.factor is not None else BADGE_ELSEWHERE[path.verdict]
    return html.Span(
        [html.Span(mark, className="verdict-mark", **{"aria-hidden": "true"}), words],
        className=f"verdict-badge {kind}",
    )


def descent_words(view: QuadraticRead) -> list[Component]:
    """Return a paragraph about each method: its factor per step, and what that means."""
    return [_paragraph(view, path) for path in view.paths]


def _paragraph(view: QuadraticRead, path: PathRead) -> Component:
    heading = html.Div(
        [
            html.Span(
                [method_swatch(STYLE_OF[path.method]), html.Strong(TITLE_OF[path.method])],
                className="row",
            ),
            verdict_badge(path),
        ],
        className="verdict-head",
    )
    return html.Div([heading, html.P(sentences(view, path))], className="verdict")


def sentences(view: QuadraticRead, path: PathRead) -> list[Any]:
    """Return what one method's steps do."""
    if path.factor is None:
        return [f"{ELSEWHERE_WORDS[path.verdict]}{_limit_words(view, path)}"]
    formula = "1 − ηλ" if path.method == "esgd" else "1/(1 + ηλ)"
    factor = html.Strong(f"{formula} = {number(path.factor)}", className="number")
    return ["Every step multiplies θ by ", factor, f". {_factor_words(view, path, path.factor)}"]


def _factor_words(view: QuadraticRead, path: PathRead, factor: float) -> str:
    if path.method == "isgd":
        return (
            "That lies between 0 and 1 at every rate: it converges, and never jumps over the "
            "minimum."
        )
    limit = number(view.stability_limit)
    if factor > 0:
        return "It stays on its side of the minimum and converges."
    if factor == 0:
        return "It lands on the minimum in one step."
    if factor > -1:
        return (
            f"It jumps over the minimum, less far every time, as the rate is below 2/λ = {limit}."
        )
    if factor == -1:
        return f"At the limit 2/λ = {limit} it jumps to and fro for ever."
    return f"It jumps farther every time, as at every rate above 2/λ = {limit}."


def _limit_words(view: QuadraticRead, path: PathRead) -> str:
    if path.method == "isgd" or view.stability_limit is None:
        return ""
    side = "above" if view.lr > view.stability_limit else "below"
    return f" The rate is {side} 2/λ = {number(view.stability_limit)}."
