"""Trials that no database holds, as series: a sweep's on the terminal, a bundle's.

And what the comparison of all methods on every UCI table says, which comes with the program: made
of its bundle by the code that makes every scorecard, once, because to read and score its 118,800
trials takes half a minute. `make tables` trains what is missing of the bundle and judges it anew; a
test does it again for some of the tables.
"""

import gzip
import json
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from backend.schemas import Metric, NumberRead, OnTableNumber, OnTableRead, TablesRead
from backend.services.analysis import to_across
from backend.services.analysis.rate_curves import Measure, Training, seed_curve, to_plots
from backend.services.analysis.scorecards import score_plots, to_rows
from backend.services.analysis.series import Finished, Key, Series, key_of_spec
from ib_core.metrics import SeedCurve
from ib_core.sweep import Outcome, TrialResult, finite_or_none

#: What is said of every method on every table.
SHOWN = ("best_rate", "best_mean", "price", "lr_sensitivity", "best_of_3", "edge")
#: Losses on rows that no method has seen; rates are chosen on others.
METRIC: Metric = "test_loss"
DIGITS = 5
FILE = Path(__file__).with_name("on_tables.json.gz")


def series_of(results: Sequence[TrialResult], metric: Metric = "train_loss") -> list[Series]:
    """Group results as the server groups a study's trials, with one metric's final values."""
    found: dict[Key, Series] = {}
    for number, result in enumerate(results):
        spec = result.spec
        key = key_of_spec(spec, result.record.get("data"))
        series = found.setdefault(key, Series(key))
        if result.outcome is Outcome.FAILED:
            series.failed += 1
            continue
        trial = Finished(
            id=number,
            lr=spec.lr,
            seed=spec.seed,
            state=result.outcome.value,
            initial_loss=finite_or_none(result.initial_loss),
            train_loss=finite_or_none(result.train_loss),
            at_zero=result.at_zero,
            final=finite_or_none(getattr(result, metric)),
            curve=None if metric == "train_loss" else _packed(result),
            validation=finite_or_none(result.validation_loss),
        )
        series.rows.append(trial)
    return [series for series in found.values() if series.rows]


def _packed(result: TrialResult) -> bytes | None:
    """Return a trial's curve as the database has it: a metric's value before the first step."""
    from backend.services.trials import curve_row

    return curve_row(0, result.curve)["data"] if result.curve else None


def training_of(results: Sequence[TrialResult]) -> Training:
    """Return what reads the training losses of the trials that `series_of` numbered."""

    def read(ids: Collection[int]) -> dict[int, SeedCurve]:
        found: dict[int, SeedCurve] = {}
        for number in ids:
            points = results[number].curve
            names = ("step", "epoch", "train_loss")
            columns = {name: np.array([getattr(one, name) for one in points]) for name in names}
            one = seed_curve(columns, Measure("train_loss"), results[number].outcome.value)
            found |= {number: one} if one else {}
        return found

    return read


@lru_cache(maxsize=1)
def stored_tables() -> TablesRead:
    """Return what comes with the program."""
    return TablesRead.model_validate_json(gzip.decompress(FILE.read_bytes()))


def judge_tables(results: Iterable[TrialResult]) -> TablesRead:
    """Return what trials say, as the API answers it."""
    found = list(results)
    measure = Measure(METRIC)
    tasks = score_plots(to_plots(series_of(found, METRIC), measure, initial=True), measure)
    return TablesRead(
        metric=METRIC,
        trials=len(found),
        seeds=len({one.spec.seed for one in found}),
        rates=sorted({one.spec.lr for one in found}),
        rows=[
            OnTableRead(
                table=row.task.removeprefix("uci/"),
                method=row.method,
                metrics={name: _number(row.metrics[name]) for name in SHOWN},
            )
            for row in to_rows(tasks, measure)
        ],
        across=to_across(tasks),
    )


def _number(one: NumberRead) -> OnTableNumber:
    ends = {name: _short(getattr(one, name)) for name in ("value", "low", "high")}
    return OnTableNumber(**ends, censored=one.censored, n=one.n)


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")


def write_tables() -> None:
    """Judge the bundle and keep what is found."""
    from ib_core.reproduction import SHIPPED_TABLES, TABLES, find_bundle

    found = judge_tables(find_bundle(SHIPPED_TABLES).results_of(TABLES))
    text = json.dumps(found.model_dump(mode="json"), separators=(",", ":"))
    FILE.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


if __name__ == "__main__":
    write_tables()
