"""A study's results as the curves of one or more pictures, with their numbers."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from backend.paper.wire import method_numbers, read_point
from backend.schemas import MethodNumbersRead, SeriesRead
from ib_core.methods import place
from ib_core.metrics import RateCurve, SeedResult, score_task
from ib_core.sweep import TrialResult
from ib_core.tasks import find_task

#: What tells curves of one picture apart.
Label = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture: the methods of a task with one activation."""

    title: str
    series: list[SeriesRead]
    numbers: list[MethodNumbersRead]
    initial: float | None


def panels_of(results: Sequence[TrialResult]) -> list[Panel]:
    """Return a study's pictures, one for each task and activation."""
    groups: defaultdict[tuple[str, str], list[TrialResult]] = defaultdict(list)
    for result in results:
        groups[result.spec.task, result.spec.activation].append(result)
    several = len({activation for _, activation in groups}) > 1
    return [
        _panel(f"{find_task(task).title}{f', {activation}' if several else ''}", found)
        for (task, activation), found in groups.items()
    ]


def _panel(title: str, results: Sequence[TrialResult]) -> Panel:
    curves = _curves(results)
    rules = {rule for method, rule in curves if method == "ib"}
    names = {
        label: f"{label[0]}, {label[1]}" if label[1] and len(rules) > 1 else label[0]
        for label in curves
    }
    by_name = {names[label]: curve for label, curve in curves.items()}
    rows = score_task(by_name).rows
    first = results[0].spec
    series = [
        SeriesRead(
            id=names[label],
            label=names[label],
            study_id=0,
            method=label[0],
            task=first.task,
            profile=first.profile,
            batch_rule=label[1],
            activation=first.activation,
            clip=first.clip,
            mu=first.mu,
            epochs=first.epochs,
            batch_size=first.batch_size,
            options={},
            imported=False,
            points=[read_point(point) for point in curve.points],
        )
        for label, curve in curves.items()
    ]
    losses = [result.initial_loss for result in results]
    return Panel(title, series, method_numbers(rows), sum(losses) / len(losses))


def _curves(results: Iterable[TrialResult]) -> dict[Label, RateCurve]:
    """Return the curves by method and batch rule, in the order of legends."""
    found: defaultdict[Label, list[tuple[float, SeedResult]]] = defaultdict(list)
    for result in results:
        spec = result.spec
        seed = SeedResult(spec.seed, result.train_loss, result.initial_loss, result.outcome.value)
        found[spec.method, spec.batch_rule].append((spec.lr, seed))
    order = sorted(found, key=lambda label: (place(label[0]), label[1] or ""))
    return {label: RateCurve.from_results(found[label]) for label in order}
