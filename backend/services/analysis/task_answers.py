"""What a study says about each of its tasks, in words: the answer, and does the best rate move?

One place for the page, a picture's caption, the API, the command line and exports. Also here:
unclipped partners of clipped series, from whichever study holds them. The paper's clipped
experiments are studies of their own, so that clipped minus unclipped (its appendix E) is a
difference between studies: pairs are found by content, all settings but the clipping being the
same. What a study has itself comes first.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from backend.schemas import DifferenceKind, MovementRead, TaskAnswerRead
from backend.services.analysis.scorecards import ScoredTask
from backend.services.analysis.series import (
    BASELINE,
    MOST_VARIED,
    Key,
    Series,
    label_of,
    labels,
    told,
)
from ib_core.errors import IBError
from ib_core.methods import METHODS
from ib_core.metrics import TaskScore, answer, number_text, rate_text
from ib_core.tasks import find_task

if TYPE_CHECKING:  # a sweep on the terminal is answered here, and has no database
    from sqlalchemy.orm import Session

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
    words = [
        f"{setting[0].upper()}{setting[1:]}: {_answer(task, members)}"
        for setting, members in zip(settings, groups.values(), strict=True)
    ]
    more = len(words) - MOST_ANSWERS
    rest = [f"{more} more settings are in the table."] if more > 1 else words[MOST_ANSWERS:]
    return " ".join(words[:MOST_ANSWERS] + rest)


def _answer(task: ScoredTask, members: Sequence[str]) -> str:
    """The answer about series that share their settings: these alone are compared."""
    keys = task.keys
    own = [keys[name] for name in members]
    called = dict(zip(members, map(spoken, labels(own)), strict=True))
    methods = {keys[name].method: name for name in reversed(members)}
    others = [name for name in members if keys[name].method != BASELINE]
    lead = methods.get(LEAD) or (others[0] if others else "")
    baseline = methods.get(BASELINE, "")
    return answer(task.score, lead=lead, baseline=baseline, names=called, among=members)


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
    for setting, values, lines in _along(list(task.keys.values())):
        if setting in NO_AMOUNTS:
            continue
        for label, members in lines:
            words = _moved(task, setting, [(values[place], names[place]) for place in members])
            if words:
                rows = [names[place] for place in members]
                text = f"{spoken(label)}: {words}."
                found.append(MovementRead(setting=setting, rows=rows, text=text))
    return found


def _along(keys: Sequence[Key]) -> list[tuple[str, list[Any], list[tuple[str, list[int]]]]]:
    """Return every setting of numbers in which series differ, the one with most values first.

    With it every series' value (None: it is off), and lines: series that differ in nothing else,
    as a label without the setting and the places of the series, in the setting's order.
    """
    flat, differing = told(keys, {})
    found = []
    for name in islice(differing, MOST_VARIED):
        values = [fields.get(name) for fields in flat]
        if not all(value is None or _is_number(value) for value in values):
            continue
        lines: dict[str, list[int]] = {}
        for place_of, fields in enumerate(flat):
            label = label_of(fields, differing, but=name)
            lines.setdefault(label, []).append(place_of)
        ordered = [
            (label, sorted(members, key=lambda one: (values[one] is not None, values[one] or 0)))
            for label, members in lines.items()
        ]
        found.append((name.removeprefix("options."), values, ordered))
    return sorted(found, key=lambda one: -len(set(one[1])))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class _Best(NamedTuple):
    """A series' best rate: where, on how many seeds, and what lies beyond it.

    `end` is "below" of the lowest rate tested and "above" of the highest: what lies there was not
    tried. Else it is empty.
    """

    rate: float
    at: object
    seeds: int
    end: str

    @property
    def words(self) -> str:
        """The rate, and of an end that the best may lie beyond it."""
        tested = {"below": ", the lowest tested,", "above": ", the highest tested,"}
        beyond = f"at or {self.end} " if self.end else ""
        return f"{beyond}{number_text(self.rate)}{tested.get(self.end, '')}"


def _bests(task: ScoredTask, line: Sequence[tuple[object, str]]) -> list[_Best]:
    found = []
    for value, name in line:
        best = task.score.rows[name]["best_rate"]
        if best.value is None:
            continue
        tested = [cell.lr for cell in task.score.strips[name].cells]
        ends = {max(tested): "above", min(tested): "below"} if len(tested) > 1 else {}
        found.append(_Best(best.value, value, best.n, ends.get(best.value, "")))
    return found


def _moved(task: ScoredTask, setting: str, line: Sequence[tuple[object, str]]) -> str:
    """Return how far the best rates of a line are apart, where they are, and on how many seeds."""
    best = _bests(task, line)
    if len(best) < 2:
        return ""
    called = setting.replace("_", " ")
    low = min(best, key=lambda one: (one.rate, one.end != "below"))
    high = max(best, key=lambda one: (one.rate, one.end == "above"))
    fewest = min(one.seeds for one in best)
    seeds = f"on {fewest} seed{'' if fewest == 1 else 's'}"
    lowest, highest = (f"{one.words} at {called} {_said(one.at)}" for one in (low, high))
    beyond = low.end or high.end
    if low.rate == high.rate:
        if len({one.end for one in best}) == 1:
            rate = low.words if beyond else rate_text(low.rate)
            return f"the best rate is {rate} at every {called}, {seeds}"
        told = lowest if low.end else highest
        return f"the best rate is {rate_text(low.rate)} at every {called} ({told}), {seeds}"
    ends = f"({lowest}, {highest}), {seeds}"
    grids = [[cell.lr for cell in task.score.strips[name].cells] for _, name in line]
    if any(grid != grids[0] for grid in grids) or not {low.rate, high.rate} <= set(grids[0]):
        tested = "tested " if beyond else ""
        return (
            f"best {tested}rates lie within a factor of {number_text(high.rate / low.rate)} {ends}"
        )
    steps = grids[0].index(high.rate) - grids[0].index(low.rate)
    if beyond:  # the ends of one grid: beyond them the two lie further apart
        rates = "one tested rate" if steps == 1 else f"{steps} tested rates"
        return f"the best rate moves over at least {rates} {ends}"
    if steps == 1:
        return f"the best rate stays within one tested rate {ends}"
    return f"the best rate moves over {steps} tested rates {ends}"


def _said(value: object) -> str:
    return "off" if value is None else number_text(float(str(value)), 6)


#: Studies that are looked through at most, those with most trials of the kind first.
MOST_STUDIES = 4


def difference_studies(session: "Session", *, study_id: int, kind: DifferenceKind) -> list[int]:
    """Return the studies a difference is made of: the study, then others with its partners."""
    if kind != "clip":
        return [study_id]
    from sqlalchemy import func, select

    from backend.models import SweepRow, SweepTrialRow, TrialRow
    from backend.services.trials import COUNTED

    own = _settings(session, study_id, clipped=True)
    if not own or own <= _settings(session, study_id, clipped=False):
        return [study_id]
    tasks, profiles, methods = (sorted({row[place] for row in own}) for place in range(3))
    count = func.count()
    query = (
        select(SweepRow.study_id)
        .select_from(SweepTrialRow)
        .join(SweepRow, SweepRow.id == SweepTrialRow.sweep_id)
        .join(TrialRow, TrialRow.id == SweepTrialRow.trial_id)
        .where(TrialRow.clip.is_(None), TrialRow.state.in_(COUNTED), TrialRow.task.in_(tasks))
        .where(TrialRow.profile.in_(profiles), TrialRow.method.in_(methods))
        .where(SweepRow.study_id != study_id)
        .group_by(SweepRow.study_id)
        .order_by(count.desc(), SweepRow.study_id)
        .limit(MOST_STUDIES)
    )
    return [study_id, *session.scalars(query)]


def _settings(session: "Session", study_id: int, *, clipped: bool) -> set[tuple[str, str, str]]:
    """Return task, profile and method of a study's trials with clipping, or without."""
    from sqlalchemy import select

    from backend.models import SweepRow, SweepTrialRow, TrialRow

    clip = TrialRow.clip.is_not(None) if clipped else TrialRow.clip.is_(None)
    query = (
        select(TrialRow.task, TrialRow.profile, TrialRow.method)
        .join(SweepTrialRow, SweepTrialRow.trial_id == TrialRow.id)
        .join(SweepRow, SweepRow.id == SweepTrialRow.sweep_id)
        .where(SweepRow.study_id == study_id, clip)
        .distinct()
    )
    return {(row.task, row.profile, row.method) for row in session.execute(query)}


def with_partners(
    own: Sequence[Series], others: Sequence[int], load: Callable[[int], list[Series]]
) -> list[Series]:
    """Return a study's series, and behind them the unclipped partners that it lacks.

    Args:
        own: The study's.
        others: Further studies to look in, in order.
        load: Returns a study's series.
    """
    known = {series.key for series in own}
    lacking = {
        replace(series.key, clip=None) for series in own if series.key.clip is not None
    } - known
    found: dict[Key, Series] = {}
    for study_id in others:
        if len(found) == len(lacking):
            break
        for series in load(study_id):
            here = replace(series.key, study_id=own[0].key.study_id)
            if here in lacking and here not in found:
                found[here] = replace(series, key=here)
    return [*own, *found.values()]
