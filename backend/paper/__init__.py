"""The paper's reproduction as people see it: over the wire, on a terminal, in one HTML file.

Here are its findings as wire types: one form for the API, the Paper page and the report.

| module | what it is for |
| --- | --- |
| `pictures` | the report's pictures in all their variants |
| `report` | the report itself |
| `terminal` | plan, progress and checks, printed |

The web process needs what is here; the modules are imported by name, for they bring plotly and
rich along.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from backend.schemas import (
    ClaimRead,
    ClipPointRead,
    ClipRead,
    ExperimentRead,
    JudgementRead,
    MethodNumbersRead,
    PaperRead,
    ProfileRead,
    RatePointRead,
    RecordedCellRead,
    RunTimeRead,
    SeedRead,
    SeriesRead,
    UciAccuracyRead,
    UciCellsRead,
    UciTableRead,
)
from ib_core.datasets import DATASETS
from ib_core.metrics import (
    KINDS,
    PAPER,
    Number,
    RateCurve,
    RatePoint,
    divergence_probability,
)
from ib_core.reproduction import (
    OF_ALL,
    RULES,
    SOURCE,
    Accuracies,
    Cell,
    ClaimFindings,
    ClipDifferences,
    Coverage,
    ExperimentFindings,
    Findings,
    Judgement,
    ProfileFindings,
    RateFacts,
    RunTimeFindings,
    headlines,
    published_words,
)
from ib_core.sweep import PRESETS
from ib_core.tasks import find_task

__all__ = ["read_findings"]


NUMBERS = (
    *("edge", "headroom", "best_rate", "best_mean", "mean_difference"),
    *("paper_divergence_rate", "paper_headroom"),
)
METHODS = ("eb", "ib", "isgd")
#: Whose runs accuracies are of, as people read it.
SOURCES = {"recorded": "Recorded runs", "authors": "Ours, as the authors", "text": "Ours, text"}


def read_findings(findings: Findings) -> PaperRead:
    """Return everything as it goes over the wire."""
    read = [_experiment(found) for found in findings.experiments]
    experiments = [experiment for experiment in read if experiment.id != "uci"]
    return PaperRead(
        paper=PAPER,
        source=SOURCE,
        headline=list(headlines(findings)),
        rules=RULES,
        counts=dict(Counter(experiment.text.verdict for experiment in experiments)),
        authors_counts=dict(Counter(experiment.authors.verdict for experiment in experiments)),
        experiments=experiments,
        uci=next(experiment for experiment in read if experiment.id == "uci"),
        uci_cells=_uci_cells(findings.uci_cells),
        uci_tables=_uci_tables(findings.uci_cells),
        uci_accuracies=[_accuracy(*found) for found in findings.accuracies.items()],
        claims=[_claim(found) for found in findings.claims],
        run_times=[_run_time(row) for row in findings.run_times],
    )


def _experiment(found: ExperimentFindings) -> ExperimentRead:
    experiment = found.experiment
    preset = PRESETS[f"paper/{experiment.id}"]
    missing = _missing(body["task"] for body in preset.text)
    return ExperimentRead(
        id=experiment.id,
        title=experiment.title,
        preset=preset.name,
        claim=published_words(experiment.id),
        present=not missing,
        how_to_get=missing,
        text=_profile(experiment.id, found.text),
        authors=_profile(experiment.id, found.authors),
        recorded=recorded_series(experiment.id, found.recorded),
        recorded_test=recorded_series(experiment.id, found.recorded, on_test=True),
        recorded_methods=method_numbers(found.recorded_numbers),
        cells=[
            RecordedCellRead(
                method=cell.method,
                lr=cell.lr,
                ours=_finite(cell.ours),
                theirs=_finite(cell.theirs),
                agrees=cell.agrees,
                how=cast(Any, cell.how),
            )
            for cell in found.cells
        ],
        note=found.note,
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _missing(tasks: Iterable[str]) -> str:
    """Return how to get the data of an experiment; empty where all or much of it is here."""
    infos = {info.name: info for task in tasks for info in (DATASETS[find_task(task).dataset],)}
    absent = [info for info in infos.values() if not info.present()]
    return absent[0].how_to_get if len(absent) == len(infos) else ""


def _profile(name: str, found: ProfileFindings) -> ProfileRead:
    threshold = found.numbers.get("eb", {}).get("paper_threshold")
    return ProfileRead(
        verdict=found.judgement.verdict.value,
        word=found.judgement.shown,
        reason=found.judgement.reason,
        coverage=coverage_words(found.coverage, tables=name == "uci"),
        trials=found.coverage.trials,
        of=found.coverage.of,
        of_here=found.coverage.of_here,
        agreeing=found.judgement.agreeing,
        cells=found.judgement.cells,
        same=found.judgement.same,
        in_range=found.judgement.in_range,
        methods=method_numbers(found.numbers),
        series=series_of(name, found.profile, found.curves),
        test_series=series_of(name, found.profile, found.test_curves, with_seeds=False),
        threshold=None if threshold is None else threshold.value,
        clipping=[_clip(one) for one in found.clipping],
    )


def _clip(found: ClipDifferences) -> ClipRead:
    return ClipRead(
        method=found.method,
        metric="test_loss" if found.on_test else "train_loss",
        points=[
            ClipPointRead(
                lr=point.lr,
                mean=point.mean.value,
                low=point.mean.low,
                high=point.mean.high,
                n=len(point.seeds),
                seeds=[gap for _, gap in point.seeds],
            )
            for point in found.points
        ],
    )


def coverage_words(found: Coverage, *, tables: bool = False) -> str:
    """Return what was run, and of how much."""
    if not found.trials:
        return "not run"
    if tables:
        return f"{found.rates} of {found.of_rates} tables, {found.trials:,} trials, seed 1"
    seeds = str(found.most_seeds)
    if found.fewest_seeds < found.most_seeds:
        seeds = f"{found.fewest_seeds} to {found.most_seeds}"
    plural = "" if seeds == "1" else "s"
    return (
        f"{found.rates} of {found.of_rates} rates, {seeds} seed{plural}; "
        f"{found.trials} of the preset's {found.of} trials"
    )


def method_numbers(numbers: Mapping[str, Mapping[str, Number]]) -> list[MethodNumbersRead]:
    """Return robustness numbers in words, one row a curve."""
    return [
        MethodNumbersRead(
            method=method,
            **{name: KINDS[name].write(row[name]) if name in row else "–" for name in NUMBERS},
            edge_value=_on_the_grid(row.get("edge")),
        )
        for method, row in numbers.items()
    ]


def _on_the_grid(edge: Number | None) -> float | None:
    return edge.value if edge is not None and edge.censored == "none" else None


def series_of(
    experiment: str, profile: str, curves: Mapping[str, RateCurve], *, with_seeds: bool = True
) -> list[SeriesRead]:
    """Return curves as the figures draw them."""
    body = PRESETS[f"paper/{experiment}"].sweeps(profile)[0]
    return [
        SeriesRead(
            **_settings(body, profile, method, imported=False),
            id=f"{experiment}-{profile}-{method}",
            study_id=0,
            label=method,
            points=[read_point(point, with_seeds=with_seeds) for point in curves[method].points],
        )
        for method in METHODS
        if method in curves
    ]


def recorded_series(
    experiment: str, facts: Mapping[str, Sequence[RateFacts]], *, on_test: bool = False
) -> list[SeriesRead]:
    """Return the recorded runs as the figures draw them: means and spread, no single seeds."""
    body = PRESETS[f"paper/{experiment}"].sweeps("authors")[0]
    return [
        SeriesRead(
            **_settings(body, "authors", method, imported=True),
            id=f"{experiment}-recorded-{method}",
            study_id=0,
            label=f"{method}, recorded",
            points=[_recorded_point(point, on_test) for point in facts[method]],
        )
        for method in METHODS
        if method in facts
    ]


def _recorded_point(point: RateFacts, on_test: bool) -> RatePointRead:
    loss = point.test if on_test else point.train
    spread = loss.sd or 0.0
    middle = loss.mean
    ends: tuple[float | None, float | None] = (loss.lowest, loss.highest)
    if middle is not None and loss.lowest is not None and loss.highest is not None:
        ends = (max(loss.lowest, middle - spread), min(loss.highest, middle + spread))
    diverged = divergence_probability(loss.non_finite, point.n)
    return RatePointRead(
        lr=point.lr,
        mean=middle,
        finite_mean=middle,
        low=ends[0],
        high=ends[1],
        n=point.n,
        n_finite=point.n - loss.non_finite,
        diverged=loss.non_finite,
        diverged_low=diverged.low,
        diverged_high=diverged.high,
        seeds=[],
    )


def _settings(
    body: Mapping[str, Any], profile: str, method: str, *, imported: bool
) -> dict[str, Any]:
    rule = "own" if profile == "text" else "share"
    return {
        "method": method,
        "task": body["task"],
        "profile": profile,
        "batch_rule": rule if method == "ib" else None,
        "activation": None,
        "clip": body.get("clip"),
        "mu": 0.0,
        "epochs": body["epochs"],
        "batch_size": None,
        "options": {},
        "imported": imported,
    }


def read_point(point: RatePoint, *, with_seeds: bool = True) -> RatePointRead:
    """Return all seeds at one rate as the figures draw them."""
    edges = point.band("std")
    diverged = divergence_probability(point.n_diverged, point.n)
    return RatePointRead(
        lr=point.lr,
        mean=point.mean,
        finite_mean=point.finite_mean,
        low=edges.low,
        high=edges.high,
        n=point.n,
        n_finite=point.n_finite,
        diverged=point.n_diverged,
        diverged_low=diverged.low,
        diverged_high=diverged.high,
        seeds=[
            SeedRead(
                seed=result.seed,
                value=result.finite_loss,
                outcome="diverged" if result.diverged else "completed",
                trial_id=0,
            )
            for result in point.results
            if with_seeds
        ],
    )


def _judgement(found: Judgement) -> JudgementRead:
    return JudgementRead(verdict=found.verdict.value, reason=found.reason, beside=found.beside)


def _claim(found: ClaimFindings) -> ClaimRead:
    published_claim = found.claim.published
    return ClaimRead(
        id=published_claim.id,
        text=published_claim.text,
        place=published_claim.place,
        rule=found.claim.rule,
        recorded=_judgement(found.recorded),
        ours=_judgement(found.text),
        authors=_judgement(found.authors),
    )


def _run_time(row: RunTimeFindings) -> RunTimeRead:
    def percent(share: float | None) -> float | None:
        return None if share is None else 100 * share

    return RunTimeRead(
        dataset=row.printed.dataset,
        bound=percent(row.bound),
        printed_bound=row.printed.bound,
        printed=row.printed.measured,
        recorded=percent(row.recorded),
        recorded_results=percent(row.recorded_results),
        here=percent(row.here),
    )


def _uci_cells(cells: Sequence[Cell]) -> list[UciCellsRead]:
    rates = sorted({cell.lr for cell in cells})
    return [
        UciCellsRead(
            lr=lr,
            agreeing=sum(cell.agrees for cell in cells if cell.lr == lr),
            cells=sum(cell.lr == lr for cell in cells),
        )
        for lr in rates
    ]


def _uci_tables(cells: Sequence[Cell]) -> list[UciTableRead]:
    """Return each table's agreement, a letter a rate."""
    rates = sorted({cell.lr for cell in cells})
    known = {(cell.dataset, cell.method, cell.lr): cell.agrees for cell in cells}
    letters = {True: "y", False: "n", None: "-"}

    def row(dataset: str, method: str) -> str:
        return "".join(letters[known.get((dataset, method, lr))] for lr in rates)

    names = sorted({cell.dataset for cell in cells})
    return [UciTableRead(dataset=name, eb=row(name, "eb"), ib=row(name, "ib")) for name in names]


def _accuracy(name: str, found: Accuracies) -> UciAccuracyRead:
    source, of_all = name.removesuffix(OF_ALL), name.endswith(OF_ALL)
    return UciAccuracyRead(
        source=cast(Any, source),
        of_all=of_all,
        label=SOURCES[source] + (f", all {len(found.tables)} tables" if of_all else ""),
        eb=found.eb,
        ib=found.ib,
        difference=found.difference.value or 0.0,
        low=found.difference.low,
        high=found.difference.high,
        tables=[(one.dataset, one.eb, one.ib) for one in found.tables],
    )
