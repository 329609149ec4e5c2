"""Studies and trials in words: how far they are, what they say, what became of them, their proof.

Pages that follow them find here when to ask again.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import Input, Output, State

from backend.schemas import AcrossRead, ScorecardRow, StudyRead, TaskAnswerRead, TrialRead
from dashboard.components.elements import STATE_COLOUR, local_time, method_swatch
from dashboard.dash_blocks import Component, browser_callback, dcc, html
from dashboard.figures import best_rate_moves, rank_words, series_name
from dashboard.theme import NONE, about, count, counted, duration, method_style, number

#: In the order of the bar, from done to to do.
STATES = ("completed", "diverged", "failed", "cancelled", "running", "queued")
ENDED = ("completed", "diverged", "failed", "cancelled")
UNFINISHED = ("queued", "running")

NEWS = html.Button("Notify me when it ends", className="ask-for-news")


def unfinished(progress: Mapping[str, int]) -> int:
    """Return how many trials are still to end."""
    return sum(progress.get(state, 0) for state in UNFINISHED)


def goes_on(study: StudyRead) -> bool:
    """Return whether more will happen in a study: trials to end, or rounds of a search to come."""
    return unfinished(study.progress) > 0 or study.state == "running"


def ended(progress: Mapping[str, int]) -> int:
    """Return how many trials have ended, however they did."""
    return sum(progress.get(state, 0) for state in ENDED)


def retriable(progress: Mapping[str, int]) -> int:
    """Return how many trials could be run again."""
    return progress.get("failed", 0) + progress.get("cancelled", 0)


def progress_bar(progress: Mapping[str, int], total: int, *, size: str = "md") -> Component:
    """Return a bar whose sections are the states; its name says the same."""
    return dmc.ProgressRoot(
        [
            dmc.ProgressSection(
                value=100 * progress[state] / total,
                color=STATE_COLOUR[state],
                animated=state == "running",
                striped=state == "running",
                **{"aria-label": f"{progress[state]} {state}"},
            )
            for state in STATES[:-1]
            if progress.get(state) and total
        ],
        size=size,
        **{"aria-label": progress_words(progress, total)},
    )


def progress_words(progress: Mapping[str, int], total: int) -> str:
    """Return progress as a sentence."""
    done = f"{count(ended(progress))} of {counted(total, 'trial')} ended"
    told = [f"{count(progress[state])} {state}" for state in STATES[1:] if progress.get(state)]
    return ", ".join([done, *told])


def progress_panel(
    progress: Mapping[str, int],
    total: int,
    *,
    eta: float | None = None,
    messages: Sequence[str] = (),
) -> Component:
    """Return bar, words, the time that is left and what is in the way."""
    left = [html.Span(f"{about(eta)} left")] if eta is not None else []
    return html.Div(
        [
            progress_bar(progress, total),
            html.Div(
                [
                    html.Span(progress_words(progress, total)),
                    *left,
                    *(html.Span(message) for message in messages),
                    *([NEWS] if unfinished(progress) else []),
                ],
                className="progress-words",
            ),
        ],
        role="status",
    )


def busy_id(tick: str) -> str:
    """Return the id of what holds whether the answer to a tick is still to come."""
    return f"{tick}-busy"


def tick_stores(tick: str) -> list[Component]:
    """Return what a page that ticks keeps: the last tick, and whether its answer is to come."""
    return [dcc.Store(id=tick), dcc.Store(id=busy_id(tick))]


def tick_from(interval: str, tick: str) -> None:
    """Let a page tick with an interval, while it is looked at and nobody waits for an answer.

    Dash throws an answer away when the same question is asked again before it is there: where
    answers take longer than the interval, none would ever be shown.
    """
    browser_callback(
        "function(count, busy, asked) { return window.etascope.nextTick(count, busy, asked); }",
        Output(tick, "data"),
        Input(interval, "n_intervals"),
        State(busy_id(tick), "data"),
        State(tick, "data"),
        prevent_initial_call=True,
    )


def answering(tick: str) -> list[tuple[Any, bool, bool]]:
    """Return the `running` of the callback that answers the ticks."""
    return [(Output(busy_id(tick), "data"), True, False)]


# --- What studies say, and what became of trials


#: So many tasks' answers stand there at once; more are folded.
MOST_ANSWERS = 4
#: Letters of answers that are not folded behind other words.
MOST_LETTERS = 600
#: So many lines about series stand there at once.
MOST_LINES = 8


def answer_words(
    answers: Sequence[TaskAnswerRead],
    task: str | None,
    across: AcrossRead | None,
    choose: Callable[[str], dict[str, str]] | None = None,
    *,
    led: bool = False,
) -> list[Component]:
    """Return what all tasks say together, then each; of many, the shown one and a fold.

    Args:
        answers: One a task.
        task: The one that is shown alone; None: all are.
        across: What the tasks say together, if there are enough of them.
        choose: Attributes of a button that shows a task.
        led: Whether something else has been said already; then long answers are folded, too.
    """
    shown = [one for one in answers if task in (None, one.task)]
    long = sum(len(one.answer) for one in shown) > MOST_LETTERS
    folded = len(shown) > MOST_ANSWERS or (led and long)
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
    several = f"The answers of all {counted(len(answers), 'task')}"
    return html.Details(
        [
            html.Summary(several if len(answers) > 1 else "The whole answer"),
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


def facts(pairs: list[tuple[str, Any]]) -> Component:
    """Return names and values side by side; those without a value are left out."""
    shown = [(name, value) for name, value in pairs if value not in (None, "")]
    return html.Dl(
        [part for name, value in shown for part in (html.Dt(name), html.Dd(value))],
        className="facts",
    )


def trial_facts(trial: TrialRead) -> Component:
    """Return all there is to say about a trial."""
    return html.Div(
        [
            html.H3("Outcome"),
            facts(outcome_pairs(trial)),
            html.H3("Settings"),
            facts(setting_pairs(trial)),
            html.H3("Reproducibility record"),
            record_facts(trial),
        ]
    )


def at_rate(trial: TrialRead) -> str:
    """Return the address of one node's update at a trial's rate, ridge and activation."""
    activation = f"&activation={trial.activation}" if trial.activation else ""
    return f"/updates?lr={trial.lr:g}&mu={trial.mu:g}{activation}"


def setting_pairs(trial: TrialRead) -> list[tuple[str, Any]]:
    """Return what was trained."""
    options = ", ".join(f"{name} {value}" for name, value in trial.options.items() if value)
    return [
        ("Task", trial.task),
        ("Method", method_style(trial.method).title),
        ("Learning rate", number(trial.lr, 6)),
        ("Seed", str(trial.seed)),
        ("Epochs", str(trial.epochs)),
        ("Batch size", str(trial.batch_size) if trial.batch_size else None),
        ("Clip", number(trial.clip) if trial.clip is not None else "none"),
        ("Ridge mu", number(trial.mu)),
        ("Batch rule", trial.batch_rule),
        ("Activation", trial.activation),
        ("Profile", trial.profile),
        ("Options", options),
    ]


def outcome_pairs(trial: TrialRead) -> list[tuple[str, Any]]:
    """Return what became of it."""
    where = " ".join(filter(None, [trial.diverged_where, trial.diverged_layer]))
    diverged = None
    if trial.diverged_at_step is not None:
        diverged = f"seen at step {trial.diverged_at_step}" + (f" ({where})" if where else "")
    return [
        ("State", str(trial.state)),
        ("Initial loss", _known(trial.initial_loss)),
        ("Training loss", _known(trial.train_loss)),
        ("Test loss", _known(trial.test_loss)),
        ("Training accuracy", _known(trial.train_accuracy)),
        ("Test accuracy", _known(trial.test_accuracy)),
        ("Validation loss", _known(trial.validation_loss)),
        ("Validation accuracy", _known(trial.validation_accuracy)),
        ("Diverged", diverged),
        ("Restarts", counted(trial.restarts, "restart") if trial.restarts else None),
        ("Share of a stack's time", duration(trial.seconds) if trial.seconds is not None else None),
        ("Finished", local_time(trial.finished_at) if trial.finished_at else None),
        ("Attempts", counted(trial.attempts, "attempt") if trial.attempts > 1 else None),
        ("Error", trial.error),
    ]


def _known(value: float | None) -> str | None:
    return None if value is None else number(value)


def record_facts(trial: TrialRead) -> Component:
    """Return versions and hashes, each as it was recorded."""
    flat = _flat(trial.record or {})
    pairs: list[tuple[str, Any]] = [("fingerprint", _code(trial.fingerprint))]
    pairs += [(name, _code(value)) for name, value in flat]
    if trial.record is None:
        pairs.append(("record", "imported" if trial.imported else NONE))
    return facts(pairs)


def _flat(record: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in record.items():
        if isinstance(value, dict):
            found += _flat(value, f"{prefix}{name} ")
        else:
            found.append((f"{prefix}{name}".replace("_", " "), value))
    return found


def _code(value: Any) -> Component | None:
    return None if value is None else dmc.Code(str(value), className="mono")
