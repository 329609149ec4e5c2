"""Scorecards like the real API's: scored by the real functions, from a formula's losses."""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from backend.schemas import (
    AcrossRead,
    BestOfRead,
    MiddleHalfRead,
    NumberRead,
    ProfileLineRead,
    RanksRead,
    RateCellRead,
    ScorecardRow,
    StripRead,
    TaskAnswerRead,
    TaskChanceRead,
    TimingRead,
)
from ib_core.metrics import (
    KINDS,
    Number,
    RateCurve,
    SeedResult,
    Strip,
    TaskScore,
    advice,
    answer,
    performance_profiles,
    rank_test,
    score_task,
)
from tests.dashboard.answers import INITIAL, NOW, RATES, SEEDS, key, loss, outcome


def number(name: str, found: Number) -> NumberRead:
    kind = KINDS[name]
    return NumberRead(
        value=found.value,
        low=found.low,
        high=found.high,
        censored=found.censored,
        n=found.n,
        definition=kind.definition,
        note=found.note,
        title=kind.title,
        unit=kind.unit,
        better=kind.better,
        text=kind.write.value(found),
        interval=kind.write.interval(found),
    )


def strip_read(strip: Strip) -> StripRead:
    cells = [RateCellRead(lr=c.lr, state=c.state, n=c.n, broke=c.broke) for c in strip.cells]
    return StripRead(cells=cells, best=strip.best, run=list(strip.run), to_test=strip.to_test)


def rows_of(score: TaskScore, study_id: int = 1, **more: Any) -> list[ScorecardRow]:
    return [
        ScorecardRow(
            **{**key(label), **more},
            id=f"{study_id}-{label}-None",
            study_id=study_id,
            label=label,
            advice=advice(score.strips[label], found),
            trials=27,
            metrics={name: number(name, one) for name, one in found.items()},
            strip=strip_read(score.strips[label]),
            best_of=[
                BestOfRead(k=k, value=one.value, low=one.low, high=one.high)
                for k, one in enumerate(score.best_of[label], 1)
            ],
            gap=gap_of(label, score.strips[label]),
        )
        for label, found in score.rows.items()
    ]


def gap_of(method: str, strip: Strip) -> dict[str, Any] | None:
    if strip.to_test is None:
        return None
    low, high = strip.to_test
    rates = [round((low * high) ** 0.5, 3)]
    return {"task": "digits_mlp", "methods": [method], "learning_rates": rates, "seeds": [1, 2, 3]}


def score_losses(
    losses: Mapping[str, Mapping[float, Sequence[float | None]]], **options: Any
) -> TaskScore:
    """Score losses by label, rate and seed."""
    curves = {
        label: RateCurve.from_results(
            (lr, SeedResult(seed, value, INITIAL, outcome(value)))
            for lr, values in by_rate.items()
            for seed, value in enumerate(values, 1)
        )
        for label, by_rate in losses.items()
    }
    return score_task(curves, **options)


@lru_cache
def scored(*, on_test: bool = False) -> TaskScore:
    """Score the formula's losses, three seeds of EB and IB."""
    losses = {
        method: {lr: [loss(method, lr, seed) for seed in SEEDS] for lr in RATES}
        for method in ("eb", "ib")
    }
    return score_losses(losses, on_test=on_test)


def rows(study_id: int = 1) -> list[ScorecardRow]:
    return rows_of(scored(), study_id)


def row(method: str, study_id: int = 1) -> ScorecardRow:
    return next(one for one in rows(study_id) if one.method == method)


def answers_of(*tasks: str) -> list[TaskAnswerRead]:
    """Return what the formula's task says, once for each name."""
    return [
        TaskAnswerRead(
            task=task,
            title=f"Task {task}",
            answer=answer(scored()),
            common_range=(RATES[0], RATES[-1]),
            rows=[one.id for one in rows()],
        )
        for task in tasks
    ]


#: Best mean losses by task and method; ib_plus is last everywhere, the others can hardly be told.
VALUES = {
    f"t{place}": {"eb": 1.0 + place / 9, "ib": 1.0 + (place * 4 % 9) / 9, "ib_plus": 3.0}
    for place in range(12)
}


#: Epochs to the target: eb is the fastest but never gets there on the last four.
TIMES = {
    f"t{place}": {"eb": 2.0 if place < 8 else math.inf, "ib": 3.0, "ib_plus": 4.0 + place}
    for place in range(12)
}


def across() -> AcrossRead:
    test = rank_test(VALUES)
    taus = [1.0, 1.1, 1.5, 2.0, 4.0]
    lines, times = (performance_profiles(one, taus) for one in (VALUES, TIMES))
    ranks = [
        RanksRead(
            number=name,
            title=KINDS[name].title,
            mean_ranks=test.ranks,
            p=test.p,
            critical_difference=test.critical_difference,
            groups=[list(group) for group in test.groups],
            tasks=test.n,
        )
        for name in ("best_mean", "lr_sensitivity")
    ]
    pairs = (("ib", "eb"), ("ib_plus", "eb"), ("ib", "ib_plus"))
    return AcrossRead(
        tasks=len(VALUES),
        methods=list(test.ranks),
        ranks=ranks,
        profiles=[
            ProfileLineRead(label=label, taus=taus, shares=list(shares))
            for label, shares in lines.items()
        ],
        times=[
            ProfileLineRead(label=label, taus=taus, shares=list(shares))
            for label, shares in times.items()
        ],
        chances=[
            TaskChanceRead(first=one, second=two, value=0.7, low=0.6, high=0.8, n=12)
            for one, two in pairs
        ],
        iqm=[
            MiddleHalfRead(label=label, value=0.2 + at / 10, low=0.1, high=0.6, n=12)
            for at, label in enumerate(test.ranks)
        ],
    )


def timing(state: Any, error: str | None = None) -> TimingRead:
    return TimingRead(
        id=1,
        state=state,
        task="digits_mlp",
        methods=["eb", "ib"],
        device="auto",
        measured_on="cpu" if state == "done" else "",
        error=error,
        created_at=NOW,
        finished_at=NOW if state in ("done", "failed") else None,
    )
