"""A study of many tasks shows one at a time: a hundred curves in one picture tell nothing."""

from collections.abc import Sequence
from typing import TypeVar

import dash_mantine_components as dmc

from backend.schemas import PairedRead, ScorecardRow, SeriesRead
from dashboard.ids import Study as ids
from dashboard.markup import Component, html

#: So many tasks are drawn together unless one is chosen.
MOST_TOGETHER = 4
#: What the control says while nobody has chosen.
ANY = "all"

Line = TypeVar("Line", SeriesRead, ScorecardRow)


def task_shown(wanted: str, tasks: Sequence[str]) -> str | None:
    """Return the task that is shown alone; None: all of them."""
    if wanted in tasks:
        return wanted
    return tasks[0] if len(tasks) > MOST_TOGETHER else None


def of_task(lines: Sequence[Line], task: str | None) -> list[Line]:
    """Return a task's curves or rows, named by what still tells them apart."""
    if task is None:
        return list(lines)
    own = [line for line in lines if line.task == task]
    labels = without_common([line.label for line in own])
    return [
        line.model_copy(update={"label": label}) for line, label in zip(own, labels, strict=True)
    ]


def pairs_of_task(items: Sequence[PairedRead], task: str | None) -> list[PairedRead]:
    """Return a task's differences; with several tasks, each label names its own."""
    if task is None:
        return list(items)
    own = [item for item in items if task in item.first_label.split(", ")]
    firsts = without_common([item.first_label for item in own])
    seconds = without_common([item.second_label for item in own])
    return [
        item.model_copy(update={"first_label": first, "second_label": second})
        for item, first, second in zip(own, firsts, seconds, strict=True)
    ]


def without_common(labels: Sequence[str]) -> list[str]:
    """Return labels without the words that all of them have; a method is always named."""
    split = [label.split(", ") for label in labels]
    common = set.intersection(*map(set, split)) if split else set()
    return [
        ", ".join([first, *(part for part in rest if part not in common)]) for first, *rest in split
    ]


def task_control(tasks: Sequence[str], wanted: str) -> Component:
    """Return the choice of a task; one that is the only one needs no choice."""
    together = len(tasks) <= MOST_TOGETHER
    first = {"value": ANY, "label": "all" if together else tasks[0]}
    rest = [{"value": task, "label": task} for task in (tasks if together else tasks[1:])]
    return html.Div(
        [
            html.Span("Task", id=f"{ids.TASK}-label"),
            dmc.Select(
                id=ids.TASK,
                data=[first, *rest],
                value=wanted if wanted in tasks and (together or wanted != tasks[0]) else ANY,
                allowDeselect=False,
                searchable=True,
                size="xs",
                **{"aria-labelledby": f"{ids.TASK}-label"},
            ),
        ],
        className="control",
        style=None if len(tasks) > 1 else {"display": "none"},
    )
