"""What one node's two steps do, in words and numbers."""

from collections.abc import Sequence

from dash import html
from dash.development.base_component import Component

from backend.schemas import NodeStep, RuleCase, UpdateRead
from dashboard.components.elements import guide_link, method_swatch
from dashboard.formats import number, signed
from dashboard.theme import method_style


def update_words(view: UpdateRead, sign: int) -> list[Component]:
    """Return the numbers of both steps for one sign of b, and which case of the rule it is.

    Args:
        view: The numbers.
        sign: +1 for b > 0, -1 for b < 0.
    """
    steps = [step for step in view.steps if step.b * sign > 0]
    cases = [case for case in view.cases if case.b * sign > 0]
    here = steps[0]
    return [
        html.P(
            f"b = {number(here.b)}, from s = {number(here.s)}, where σ(s) = {number(here.origin)}",
            className="number figure-caption",
        ),
        _numbers(steps),
        *([_table(cases)] if cases else []),
    ]


def _numbers(steps: Sequence[NodeStep]) -> Component:
    heads = ("", "lands at", "loss change", "why")
    return html.Table(
        [
            html.Thead(html.Tr([html.Th(head, scope="col") for head in heads])),
            html.Tbody([_row(step) for step in steps]),
        ],
        className="table steps-table",
    )


def _row(step: NodeStep) -> Component:
    name = [method_swatch(step.method), method_style(step.method).short]
    return html.Tr(
        [
            html.Th(name, scope="row"),
            html.Td(number(step.landing), className="number"),
            html.Td(signed(step.change), className="number"),
            html.Td(step.case),
        ]
    )


def _table(cases: Sequence[RuleCase]) -> Component:
    """The lines of the paper's table; the present one is marked, not only by colour."""
    return html.Div(
        [
            html.Span("IB’s rule (the paper’s Table 1)", className="muted rule-title"),
            html.Ul(
                [
                    html.Li(
                        [
                            html.Span("▸ " if case.applies else "", className="case-mark"),
                            html.Span(case.condition, className="case-when"),
                            html.Span(case.words),
                        ],
                        className="case applies" if case.applies else "case",
                        **({"aria-current": "true"} if case.applies else {}),
                    )
                    for case in cases
                ],
                className="cases",
            ),
        ]
    )


def notes(view: UpdateRead) -> list[Component]:
    """Return what one should know about this activation and these settings."""
    found = [_exactness(view)]
    if view.mu:
        found.append(
            html.P(
                "With μ > 0 a step also shrinks the weights: s becomes s/(1 + ημ) in IB and "
                "s(1 − ημ) in EB before the rest of the step."
            )
        )
    if view.activation == "arctan":
        found.append(
            html.P(
                "IB takes the stationary point nearest zero, the smallest step, which is not "
                "always the lowest point of its objective."
            )
        )
    return [*found, guide_link("updates", "How is the implicit step found?")]


def _exactness(view: UpdateRead) -> Component:
    if view.approximation_error is None:
        return html.P(f"The implicit step of {view.activation} is exact: a formula gives it.")
    return html.P(
        [
            html.Span(
                [
                    html.Span("≈", className="verdict-mark", **{"aria-hidden": "true"}),
                    "approximation",
                ],
                className="verdict-badge",
            ),
            f" IB solves for a piecewise-cubic stand-in that is within "
            f"{number(view.approximation_error)} of {view.activation} everywhere, and within "
            f"{number(view.slope_error)} of its slope. Losses are those of the true function.",
        ]
    )
