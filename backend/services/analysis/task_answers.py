"""What a study says about each of its tasks, in words: the answer, and does the best rate move?

One place for the page, a picture's caption, the API, the command line and exports.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from backend.schemas import MovementRead, TaskAnswerRead
from backend.services.analysis.scorecards import ScoredTask
from backend.services.analysis.series import BASELINE, Key, along, labels
from ib_core.errors import IBError
from ib_core.methods import METHODS
from ib_core.metrics import TaskScore, answer, number_text, rate_text
from ib_core.tasks import find_task

LEAD = "ib"
#: Settings of one task that are answered in words; the table has them all.
MOST_ANSWERS = 3
#: Settings whose numbers only tell runs apart.
NO_AMOUNTS = ("repeat",)


def to_answers(
    tasks: Sequence[ScoredTask], study_names: Mapping[int, str] | None = None
) -> list[TaskAnswerRead]:
    """Return what every task says in words.

    Args:
        tasks: From `score_plots`.
        study_names: Named beside the task where there are several.
    """
    return [
        TaskAnswerRead(
            task=task.task,
            title=_title(task, study_names or {}),
            answer=in_words(task),
            common_range=_common_range(task.score),
            rows=list(task.plots),
            moves=movements(task),
        )
        for task in tasks
    ]


def _title(task: ScoredTask, study_names: Mapping[int, str]) -> str:
    title = task.task
    with suppress(IBError):  # imported runs may be of tasks that are unknown here
        title = find_task(task.task).title
    study = study_names.get(next(iter(task.keys.values())).study_id)
    return f"{title}, {study}" if study else title


def _common_range(score: TaskScore) -> tuple[float, float] | None:
    found = score.table.common_range if score.table else None
    return (found.low, found.high) if found else None


def in_words(task: ScoredTask) -> str:
    """Return the answer for a task: one for each set of settings that its series share."""
    groups: dict[Key, list[str]] = {}
    for name, key in task.keys.items():
        groups.setdefault(key.group, []).append(name)
    if len(groups) == 1:
        return _answer(task, list(task.plots))
    settings = [label.removeprefix(", ") or "otherwise" for label in labels(list(groups))]
    told = [
        f"{setting[0].upper()}{setting[1:]}: {_answer(task, members)}"
        for setting, members in zip(settings, groups.values(), strict=True)
    ]
    more = len(told) - MOST_ANSWERS
    rest = [f"{more} more settings are in the table."] if more > 1 else told[MOST_ANSWERS:]
    return " ".join(told[:MOST_ANSWERS] + rest)


def _answer(task: ScoredTask, members: Sequence[str]) -> str:
    """The answer about series that share their settings; others are named in full."""
    keys = task.keys
    own = [keys[name] for name in members]
    every = list(keys)
    called = dict(zip(every, map(spoken, labels(list(keys.values()))), strict=True))
    called |= dict(zip(members, map(spoken, labels(own)), strict=True))
    methods = {keys[name].method: name for name in reversed(members)}
    others = [name for name in members if keys[name].method != BASELINE]
    lead = methods.get(LEAD) or (others[0] if others else "")
    return answer(task.score, lead=lead, baseline=methods.get(BASELINE, ""), names=called)


def spoken(label: str) -> str:
    """Return a label as a sentence says it: "IB", "SGD + momentum", "IB (clip 1)"."""
    method, _, rest = label.partition(", ")
    known = METHODS.get(method)
    name = method if known is None else known.short
    name = known.title if known and name.endswith(".") else name
    return f"{name} ({rest})" if rest else name


def movements(task: ScoredTask) -> list[MovementRead]:
    """Return what is found for every setting of numbers, the one with the most values first."""
    names, found = list(task.keys), []
    for setting, values, lines in along(list(task.keys.values())):
        if setting in NO_AMOUNTS:
            continue
        for label, members in lines:
            words = _moved(task, setting, [(values[place], names[place]) for place in members])
            if words:
                rows = [names[place] for place in members]
                text = f"{spoken(label)}: {words}."
                found.append(MovementRead(setting=setting, rows=rows, text=text))
    return found


def _moved(task: ScoredTask, setting: str, line: Sequence[tuple[object, str]]) -> str:
    """Return how far the best rates of a line are apart, where they are, and on how many seeds."""
    best = [
        (number.value, value, number.n)
        for value, name in line
        if (number := task.score.rows[name]["best_rate"]).value is not None
    ]
    if len(best) < 2:
        return ""
    called = setting.replace("_", " ")
    low, high = (end(best, key=lambda one: one[0]) for end in (min, max))
    fewest = min(n for *_, n in best)
    seeds = f"on {fewest} seed{'' if fewest == 1 else 's'}"
    if low[0] == high[0]:
        return f"the best rate is {rate_text(low[0])} at every {called}, {seeds}"
    ends = ", ".join(f"{number_text(rate)} at {called} {_said(at)}" for rate, at, _ in (low, high))
    grids = [[cell.lr for cell in task.score.strips[name].cells] for _, name in line]
    if any(grid != grids[0] for grid in grids) or not {low[0], high[0]} <= set(grids[0]):
        return (
            f"best rates lie within a factor of {number_text(high[0] / low[0])} ({ends}), {seeds}"
        )
    steps = grids[0].index(high[0]) - grids[0].index(low[0])
    if steps == 1:
        return f"the best rate stays within one tested rate ({ends}), {seeds}"
    return f"the best rate moves over {steps} tested rates ({ends}), {seeds}"


def _said(value: object) -> str:
    return "off" if value is None else number_text(float(str(value)), 6)
