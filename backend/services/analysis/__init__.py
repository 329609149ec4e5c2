"""From trials to findings: curves, robustness numbers, differences, comparisons.

Every answer about studies is made of a fixed number of queries; arrays go to `ib_core.metrics`,
which owns every definition.

| module | for |
| --- | --- |
| `series` | trials as series, and what tells these apart |
| `rate_curves` | which number a metric means, and its curve over the learning rates |
| `scorecards` | the numbers of every series, what a step of it costs among them |
| `task_answers` | what they say about every task, in words; unclipped partners of clipped series |
| `learning` | losses over training, by series and rate; App. C's average |
| `stored` | what the database holds, as series, and the answers made of it |
| `unstored` | results that no database holds; what every method does on every UCI table |

What needs the database is imported when first used: `etascope sweep` groups and judges its trials
here as well, and needs none.

Here are series against each other: seed by seed on one task, by ranks and profiles over many. A
series is the same one on two tasks if it has the same label among its neighbours on each: there
EB is "eb", whatever a task's own epochs and batch size are.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import pairwise
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from backend.schemas import (
    AcrossRead,
    DifferenceKind,
    MiddleHalfRead,
    PairedPointRead,
    PairedRead,
    PairRead,
    ProfileLineRead,
    RanksRead,
    TaskChanceRead,
)
from backend.services.analysis.rate_curves import (
    Measure,
    Training,
    seed_curve,
    to_plots,
    to_series,
)
from backend.services.analysis.scorecards import (
    ScoredTask,
    method_of,
    name_of,
    network_hash,
    network_of,
    score_plots,
    scorecard_csv,
    to_rows,
)
from backend.services.analysis.series import (
    BASELINE,
    Finished,
    Key,
    Series,
    baselines,
    key_of_spec,
    labels,
    series_id,
    series_order,
    varied,
    version_order,
)
from backend.services.analysis.task_answers import difference_studies, to_answers
from ib_core.metrics import (
    CHANCE,
    KINDS,
    MIDDLE_HALF,
    PairedComparison,
    PairedDifference,
    TaskTable,
    chance_over_tasks,
    interquartile_mean,
    performance_profiles,
    rank_test,
)

if TYPE_CHECKING:
    from backend.services.analysis.learning import learning_curves, settings_of, theorem
    from backend.services.analysis.stored import (
        KEY_COLUMNS,
        compare,
        differences,
        key_of,
        scorecard,
        sensitivity,
        studies_version,
    )
    from backend.services.analysis.unstored import series_of, stored_tables, training_of

__all__ = [
    "ACROSS",
    "KEY_COLUMNS",
    "Finished",
    "Key",
    "Measure",
    "Series",
    "Training",
    "compare",
    "difference_studies",
    "differences",
    "key_of",
    "key_of_spec",
    "labels",
    "learning_curves",
    "method_of",
    "name_of",
    "network_hash",
    "network_of",
    "score_plots",
    "scorecard",
    "scorecard_csv",
    "seed_curve",
    "sensitivity",
    "series_of",
    "series_order",
    "settings_of",
    "stored_tables",
    "studies_version",
    "theorem",
    "to_across",
    "to_answers",
    "to_plots",
    "to_rows",
    "to_series",
    "training_of",
    "varied",
    "ways",
]

#: What needs the database or what is made here, by module: imported when first used.
_HOMES = {
    "stored": "KEY_COLUMNS compare differences key_of scorecard sensitivity studies_version",
    "learning": "learning_curves settings_of theorem ways",
    "unstored": "series_of stored_tables training_of",
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


LEAST_TASKS = 3
#: Factors of the lowest loss at which profiles are drawn.
TAUS = tuple(float(f"{tau:.4g}") for tau in np.geomspace(1, 100, 41))
RANKED: tuple[Literal["best_mean", "lr_sensitivity"], ...] = ("best_mean", "lr_sensitivity")
#: What is said over many tasks, and what it means.
ACROSS = {
    "ranks": (
        "Mean over the tasks of a series' rank, 1 the lowest, ties sharing theirs. Friedman's test "
        "says whether all could be alike; mean ranks closer than Nemenyi's critical difference "
        "cannot be told apart at 5 %."
    ),
    "profiles": (
        "Share of the tasks on which a series' best mean loss is at most tau times the lowest of "
        "all series."
    ),
    "times": (
        "Share of the tasks on which a series gets to the target within tau times the fewest "
        "epochs of all series; where it never does, it is not among them. "
        f"{KINDS['time_to_target'].definition}"
    ),
    "chances": CHANCE,
    "iqm": f"{KINDS['lr_sensitivity'].title}. {MIDDLE_HALF}",
}
Values = dict[str, dict[str, float | None]]


@dataclass(frozen=True, slots=True)
class LabelledTask:
    """A task whose series go by labels that mean the same on every task.

    Attributes:
        name: What tells it from the others.
        ids: Series by label.
        task: Its numbers.
    """

    name: str
    ids: dict[str, str]
    task: ScoredTask

    def value(self, label: str, number: str) -> float | None:
        """Return a number of a series; None where it has none, infinite for a time never come."""
        found = self.task.score.rows[self.ids[label]][number]
        return inf if number == "time_to_target" and found.censored == "above" else found.value

    @property
    def table(self) -> TaskTable:
        """The results, by those labels."""
        table = self.task.score.table
        assert table is not None
        by_id = {name: label for label, name in self.ids.items()}
        return replace(table, labels=tuple(by_id[name] for name in table.labels))


def to_across(tasks: Sequence[ScoredTask]) -> AcrossRead | None:
    """Return how series compare over tasks; None below three tasks or two series in common."""
    labelled = [_labelled(task) for task in tasks]
    counts = Counter(label for task in labelled for label in task.ids)
    common = [label for label, count in counts.items() if 2 * count >= len(tasks)]
    shared = [task for task in labelled if all(label in task.ids for label in common)]
    if len(shared) < LEAST_TASKS or len(common) < 2:
        return None
    sensitivity = _values(shared, common, "lr_sensitivity")
    return AcrossRead(
        tasks=len(shared),
        methods=common,
        ranks=[
            found for number in RANKED if (found := _ranks(_values(shared, common, number), number))
        ],
        profiles=_profiles(_values(shared, common, "best_mean")),
        times=_profiles(_values(shared, common, "time_to_target"), exact=True),
        chances=_chances(shared, common),
        iqm=[_middle(label, sensitivity) for label in common],
        definitions=ACROSS,
    )


def _labelled(task: ScoredTask) -> LabelledTask:
    keys = task.keys
    study_id = next(iter(keys.values())).study_id
    ids = dict(zip(labels(list(keys.values())), keys, strict=True))
    return LabelledTask(f"{study_id}:{task.task}", ids, task)


def _values(tasks: Sequence[LabelledTask], common: Sequence[str], number: str) -> Values:
    """Numbers by task and label, of the tasks that have them all."""
    found: Values = {
        task.name: {label: task.value(label, number) for label in common} for task in tasks
    }
    return {name: row for name, row in found.items() if None not in row.values()}


def _ranks(values: Values, number: Literal["best_mean", "lr_sensitivity"]) -> RanksRead | None:
    if len(values) < LEAST_TASKS:
        return None
    found = rank_test(values)
    return RanksRead(
        number=number,
        title=KINDS[number].title,
        mean_ranks=found.ranks,
        p=found.p,
        critical_difference=found.critical_difference,
        groups=[list(group) for group in found.groups],
        tasks=found.n,
    )


def _profiles(values: Values, *, exact: bool = False) -> list[ProfileLineRead]:
    """Profiles over the tasks whose numbers are all above 0: of 0 nothing is a multiple.

    Args:
        values: By task and label.
        exact: Whether the lines step at the very ratios, as those of counted epochs should.
    """
    positive = {
        name: row for name, row in values.items() if all((value or 0) > 0 for value in row.values())
    }
    if len(positive) < LEAST_TASKS:
        return []
    taus = _ratios(positive) if exact else TAUS
    found = performance_profiles(positive, taus)
    return [
        ProfileLineRead(label=label, taus=list(taus), shares=list(shares))
        for label, shares in found.items()
    ]


def _ratios(values: Values) -> tuple[float, ...]:
    """Return every factor of a task's lowest number that another has there, and both ends."""
    found = {1.0, TAUS[-1]}
    for row in values.values():
        numbers = [one for one in row.values() if one is not None and isfinite(one)]
        found |= {one / min(numbers) for one in numbers}
    return tuple(sorted(one for one in found if one <= TAUS[-1]))


def _chances(tasks: Sequence[LabelledTask], common: Sequence[str]) -> list[TaskChanceRead]:
    """The chance of every series to be better than EB, or where there is none than the first."""
    second = BASELINE if BASELINE in common else common[0]
    tables = [task.table for task in tasks]
    found = []
    for first in common:
        if first != second:
            chance = chance_over_tasks(tables, first, second)
            ends = {"value": chance.value, "low": chance.low, "high": chance.high}
            found.append(TaskChanceRead(first=first, second=second, n=chance.n, **ends))
    return found


def _middle(label: str, values: Values) -> MiddleHalfRead:
    known = [value for row in values.values() if isfinite(value := row[label] or 0.0)]
    found = interquartile_mean(known)
    return MiddleHalfRead(label=label, value=found.value, low=found.low, high=found.high, n=found.n)


def pairs_of(keys: Sequence[Key], kind: DifferenceKind) -> Iterator[tuple[Key, Key]]:
    """Yield the series to compare, each with what it is compared to."""
    if kind == "engine":
        yield from _engines(keys)
        return
    if kind == "clip":
        known = set(keys)
        for key in keys:
            unclipped = replace(key, clip=None)
            if key.clip is not None and unclipped in known:
                yield key, unclipped
        return
    yield from ((key, eb) for key, eb in baselines(keys).items() if key != eb)


def _engines(keys: Sequence[Key]) -> Iterator[tuple[Key, Key]]:
    """Yield each series with the same one of the engine version before."""
    versions: dict[Key, list[Key]] = {}
    for key in keys:
        if key.engine_version is not None:
            versions.setdefault(replace(key, engine_version=None), []).append(key)
    for same in versions.values():
        ordered = sorted(same, key=lambda key: version_order(key.engine_version or ""))
        yield from ((later, earlier) for earlier, later in pairwise(ordered))


def pair_to_read(
    first: Key, second: Key, named: Mapping[Key, str], found: PairedComparison
) -> PairedRead:
    """Return a comparison as it is answered."""
    return PairedRead(
        first=series_id(first),
        second=series_id(second),
        first_label=named[first],
        second_label=named[second],
        overall=_point_to_read(found.overall),
        points=[_point_to_read(point) for point in found.points],
        pairs=[
            PairRead(lr=pair.lr, seed=pair.seed, difference=pair.difference)
            for pair in found.overall.pairs
        ],
    )


def _point_to_read(found: PairedDifference) -> PairedPointRead:
    return PairedPointRead(
        lr=found.lr,
        mean=found.mean,
        low=found.low,
        high=found.high,
        n=found.n,
        n_finite=found.n_finite,
        lower=found.lower,
        higher=found.higher,
        wilcoxon_p=found.test.p,
        note=found.test.note,
    )
