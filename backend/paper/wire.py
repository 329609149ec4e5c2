"""Findings as wire types: one form for the API, the Paper page and the report."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from backend.schemas import (
    ClaimRead,
    ExperimentRead,
    JudgementRead,
    MethodNumbersRead,
    PaperRead,
    ProfileRead,
    RatePointRead,
    RunTimeRead,
    SeedRead,
    SeriesRead,
    UciCellsRead,
)
from ib_core.datasets import DATASETS
from ib_core.metrics import (
    PAPER,
    MetricValue,
    RateCurve,
    RatePoint,
    divergence_probability,
    paper_threshold,
)
from ib_core.reproduction import (
    RULES,
    UNCLIPPED,
    Cell,
    ClaimFindings,
    Coverage,
    ExperimentFindings,
    Findings,
    Judgement,
    ProfileFindings,
    RunTimeFindings,
    published_better,
)
from ib_core.sweep import PRESETS
from ib_core.tasks import find_task

NUMBERS = ("best_mean", "best_lr", "divergence_rate", "headroom", "robust_range")


def read_findings(findings: Findings) -> PaperRead:
    """Return everything as it goes over the wire."""
    read = [_experiment(found) for found in findings.experiments]
    experiments = [experiment for experiment in read if experiment.id != "uci"]
    return PaperRead(
        paper=PAPER,
        rules=RULES,
        counts=dict(Counter(experiment.text.verdict for experiment in experiments)),
        experiments=experiments,
        uci=next(experiment for experiment in read if experiment.id == "uci"),
        uci_cells=_uci_cells(findings.uci_cells),
        claims=[_claim(found) for found in findings.claims],
        run_times=[_run_time(row) for row in findings.run_times],
        has_recorded=any(found.recorded for found in findings.experiments),
    )


def _experiment(found: ExperimentFindings) -> ExperimentRead:
    experiment = found.experiment
    preset = PRESETS[f"paper/{experiment.id}"]
    missing = _missing(body["task"] for body in preset.text)
    return ExperimentRead(
        id=experiment.id,
        title=experiment.title,
        preset=preset.name,
        claim=published(experiment.id),
        present=not missing,
        how_to_get=missing,
        text=_profile(experiment.id, found.text),
        authors=_profile(experiment.id, found.authors),
        recorded=series_of(experiment.id, "authors", found.recorded, imported=True),
        recorded_methods=method_numbers(found.recorded_numbers),
        note=found.note,
    )


def published(experiment: str) -> str:
    """Return what the paper says of an experiment."""
    if experiment == "uci":
        return "EB and IB perform alike; IB has 0.13% more test accuracy on average."
    words = "IB outperforms EB" if published_better(experiment) else "EB outperforms IB"
    if experiment in UNCLIPPED:
        words += "; IB begins to diverge at a rate 20% to 200% higher"
    return f"{words}."


def _missing(tasks: Iterable[str]) -> str:
    """Return how to get the data of an experiment; empty where all or much of it is here."""
    infos = {info.name: info for task in tasks for info in (DATASETS[find_task(task).dataset],)}
    absent = [info for info in infos.values() if not info.present()]
    return absent[0].how_to_get if len(absent) == len(infos) else ""


def _profile(name: str, found: ProfileFindings) -> ProfileRead:
    return ProfileRead(
        verdict=found.judgement.verdict.value,
        reason=found.judgement.reason,
        coverage=coverage_words(found.coverage, tables=name == "uci"),
        trials=found.coverage.trials,
        of=found.coverage.of,
        methods=method_numbers(found.numbers),
        series=series_of(name, found.profile, found.curves),
    )


def coverage_words(found: Coverage, *, tables: bool = False) -> str:
    """Return what was run, and of how much."""
    if not found.trials:
        return "not run"
    if tables:
        return f"{found.rates} of {found.of_rates} tables, {found.trials} trials, seed 1"
    seeds = str(found.most_seeds)
    if found.fewest_seeds < found.most_seeds:
        seeds = f"{found.fewest_seeds} to {found.most_seeds}"
    plural = "" if seeds == "1" else "s"
    return (
        f"{found.rates} of {found.of_rates} rates, {seeds} seed{plural}; "
        f"{found.trials} of the preset's {found.of} trials"
    )


def method_numbers(
    numbers: Mapping[str, Mapping[str, MetricValue]],
) -> list[MethodNumbersRead]:
    """Return robustness numbers in words, one row a curve."""
    return [
        MethodNumbersRead(method=method, **{name: row[name].text for name in NUMBERS})
        for method, row in numbers.items()
    ]


def series_of(
    experiment: str, profile: str, curves: Mapping[str, RateCurve], *, imported: bool = False
) -> list[SeriesRead]:
    """Return curves as the figures draw them."""
    body = PRESETS[f"paper/{experiment}"].sweeps(profile)[0]
    threshold = paper_threshold(curves["eb"]) if "eb" in curves else None
    words = "recorded" if imported else ""
    return [
        SeriesRead(
            **_settings(body, profile, method, imported),
            id=f"{experiment}-{profile}-{method}-{words}",
            study_id=0,
            label=f"{method}, {words}" if words else method,
            threshold=threshold,
            points=[read_point(point) for point in curves[method].points],
        )
        for method in ("eb", "ib", "isgd")
        if method in curves
    ]


def _settings(body: Mapping[str, Any], profile: str, method: str, imported: bool) -> dict[str, Any]:
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


def read_point(point: RatePoint) -> RatePointRead:
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
        ],
    )


def _judgement(found: Judgement) -> JudgementRead:
    return JudgementRead(verdict=found.verdict.value, reason=found.reason)


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
