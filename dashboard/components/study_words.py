"""What a study says, in words: a sentence or two a task, and over all of them."""

from collections.abc import Callable, Sequence

from backend.schemas import AcrossRead, ScorecardRow, TaskAnswerRead
from dashboard.components.elements import method_swatch
from dashboard.figures import best_rate_moves, rank_words, series_name
from dashboard.formats import counted
from dashboard.markup import Component, html

#: So many tasks' answers stand there at once; more are folded.
MOST_ANSWERS = 4
#: So many lines about series stand there at once.
MOST_LINES = 8


def answer_words(
    answers: Sequence[TaskAnswerRead],
    task: str | None,
    across: AcrossRead | None,
    choose: Callable[[str], dict[str, str]] | None = None,
) -> list[Component]:
    """Return what all tasks say together, then each; of many, the shown one and a fold.

    Args:
        answers: One a task.
        task: The one that is shown alone; None: all are.
        across: What the tasks say together, if there are enough of them.
        choose: Attributes of a button that shows a task.
    """
    shown = [one for one in answers if task in (None, one.task)]
    folded = len(shown) > MOST_ANSWERS
    rest = list(answers) if folded or len(shown) < len(answers) else []
    named = len(answers) > 1
    return [
        *_together(across),
        *([] if folded else [_answer(one, named=named) for one in shown]),
        *([_fold(rest, choose)] if rest else []),
    ]


def _together(across: AcrossRead | None) -> list[Component]:
    if across is None or not across.ranks:
        return []
    words = [
        f"{rank_words(one)}; those closer than {one.critical_difference:.2f} cannot be told apart."
        for one in across.ranks
    ]
    over = html.B(f"Over {counted(across.ranks[0].tasks, 'task')}: ")
    return [html.P([over, " ".join(words)], className="answer")]


def _answer(one: TaskAnswerRead, *, named: bool) -> Component:
    return html.P(
        [html.B(f"{one.title}: ") if named else "", one.answer], className="answer answer-task"
    )


def _fold(
    answers: Sequence[TaskAnswerRead], choose: Callable[[str], dict[str, str]] | None
) -> Component:
    def name(one: TaskAnswerRead) -> Component:
        if choose is None:
            return one.title
        return html.Button(one.title, type="button", className="plain-link", **choose(one.task))

    parts = [part for one in answers for part in (html.Dt(name(one)), html.Dd(one.answer))]
    return html.Details(
        [
            html.Summary(f"The answers of all {counted(len(answers), 'task')}"),
            html.Dl(parts, className="answers-of-tasks"),
        ]
    )


def movement(answers: Sequence[TaskAnswerRead], rows: Sequence[ScorecardRow]) -> list[Component]:
    """Return whether best rates move with what was varied; many lines are folded."""
    told = [(one.title, one.moves) for one in answers]
    found = [(title, move) for title, moves in told for move in best_rate_moves(moves, rows)]
    if not found:
        return []
    title = "Does the best rate move?"
    named = len({name for name, _ in found}) > 1
    lines = html.Ul(
        [html.Li(f"{name}, {move.text}" if named else move.text) for name, move in found]
    )
    if len(found) > MOST_LINES:
        return [html.Details([html.Summary(title), lines])]
    return [html.Div([html.B(title), lines], className="answer")]


def advice(rows: Sequence[ScorecardRow]) -> list[Component]:
    """Return which learning rates to use, a sentence or two a series."""
    found = [
        html.P(
            [
                html.Span(
                    method_swatch(row.method, imported=row.imported, clipped=row.clip is not None)
                ),
                html.Span([html.B(f"{series_name(row, row.label)}: "), row.advice]),
            ],
            className="advice",
        )
        for row in rows
        if row.advice
    ]
    more = found[MOST_LINES:]
    fold = html.Details([html.Summary(f"Advice on {len(more)} more"), *more])
    return [*found[:MOST_LINES], *([fold] if more else [])]
