"""The scorecard: every series' numbers, strip and advice.

All series that a study has on a task are scored together: the lowest loss and the common range are
theirs. Each is compared with the EB series that shares its settings.

What a step of a series costs, from races that workers have run on its network.
"""

import csv
import hashlib
import io
import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from backend.schemas import (
    BestOfRead,
    NumberRead,
    RateCellRead,
    ScorecardRow,
    StripRead,
)
from backend.services.analysis.rate_curves import Measure, Plotted, Training, key_fields
from backend.services.analysis.series import (
    BASELINE,
    Key,
    baselines,
    labels,
    series_id,
    varied,
)
from ib_core.errors import IBError
from ib_core.methods import OF_A_METHOD
from ib_core.metrics import (
    KINDS,
    Number,
    NumberKind,
    RateCurve,
    SeedCurve,
    Strip,
    TaskScore,
    TaskTable,
    advice,
    score_table,
)
from ib_core.sweep import ENGINE_VERSION
from ib_core.sweep.request import PROFILES, body_of
from ib_core.written import inert

if TYPE_CHECKING:  # a sweep on the terminal is scored here, and has no database
    from sqlalchemy.orm import Session

#: Rates that a sweep into the gap between sound and broken tries.
GAP_RATES = 3
#: How the names of the paper's presets begin.
PAPER_PRESET = "paper/"
ERRORS = "Losses here are errors, 1 - accuracy."
StepCosts = Mapping[Key, Number]


@dataclass(frozen=True, slots=True)
class ScoredTask:
    """One task of one study.

    Attributes:
        task: Its name.
        plots: Its series that have results, by id.
        score: Their numbers, by id.
    """

    task: str
    plots: dict[str, Plotted]
    score: TaskScore

    @property
    def keys(self) -> dict[str, Key]:
        """What its series are, by id."""
        return {name: plot.series.key for name, plot in self.plots.items()}


def score_plots(
    plots: Sequence[Plotted],
    measure: Measure,
    *,
    paper: Collection[int] = (),
    step_costs: StepCosts | None = None,
    training: Training | None = None,
) -> list[ScoredTask]:
    """Score every task of every study by itself, in the order they come in.

    Args:
        plots: Read with their initial losses; those of one study and task in any order.
        measure: Which number they are.
        paper: Studies to which the paper's own rule belongs.
        step_costs: Measured costs of a step over EB's, by series.
        training: Reads losses over training; those at the best rates are asked for, all at once.
    """
    known = [plot for plot in plots if plot.curve is not None]
    places = list(dict.fromkeys(_place(plot) for plot in known))
    known.sort(key=lambda plot: places.index(_place(plot)) if len(places) > 1 else 0)
    tables: list[tuple[tuple[int, str], dict[str, Plotted], TaskTable]] = []
    for place, members in groupby(known, key=_place):
        by_id = {series_id(plot.series.key): plot for plot in members}
        table = TaskTable.of(
            {name: _curve(plot) for name, plot in by_id.items()},
            baseline=_baselines({name: plot.series.key for name, plot in by_id.items()}),
            on_test=measure.metric.startswith("test"),
        )
        tables.append((place, by_id, table))
    trained = _at_best([(by_id, table) for _, by_id, table in tables], training)
    return [
        ScoredTask(
            task,
            by_id,
            score_table(
                table,
                {name: _curve(plot) for name, plot in by_id.items()},
                step_costs=_costs(by_id, step_costs or {}),
                training=trained,
                paper=study_id in paper,
            ),
        )
        for (study_id, task), by_id, table in tables
    ]


def _at_best(
    scored: Sequence[tuple[Mapping[str, Plotted], TaskTable]], training: Training | None
) -> dict[str, list[SeedCurve]]:
    """Return the losses over training of every series' trials at its best rate, read at once."""
    ids = {
        name: [dot.trial_id for dot in by_id[name].dots if dot.lr == rate]
        for by_id, table in scored
        for name, rate in table.best_rates.items()
    }
    read = training({one for some in ids.values() for one in some}) if training else {}
    known = {name: [read[one] for one in some if one in read] for name, some in ids.items()}
    # Of the seeds that broke alone one would not see when the others got there.
    return {name: [] if all(one.diverged for one in some) else some for name, some in known.items()}


def _place(plot: Plotted) -> tuple[int, str]:
    return plot.series.key.study_id, plot.series.key.task


def _curve(plot: Plotted) -> RateCurve:
    assert plot.curve is not None
    return plot.curve


def _baselines(keys: Mapping[str, Key]) -> dict[str, str]:
    """Return by series the EB series that shares all its settings."""
    against = baselines(list(keys.values()))
    names = {key: name for name, key in keys.items()}
    return {name: names[against[key]] for name, key in keys.items() if key in against}


def _costs(plots: Mapping[str, Plotted], measured: StepCosts) -> dict[str, Number]:
    return {
        name: measured[plot.series.key]
        for name, plot in plots.items()
        if plot.series.key in measured
    }


def to_rows(
    tasks: Sequence[ScoredTask], measure: Measure, study_names: Mapping[int, str] | None = None
) -> list[ScorecardRow]:
    """Return one row for each series that has a finished trial with the metric.

    Args:
        tasks: From `score_plots`.
        measure: Which number was scored.
        study_names: To tell several studies' series apart.
    """
    keys = [key for task in tasks for key in task.keys.values()]
    named = dict(zip(keys, labels(keys, study_names), strict=True))
    settings = dict(zip(keys, varied(keys, study_names), strict=True))
    return [
        ScorecardRow(
            **key_fields(plot.series.key),
            label=named[plot.series.key],
            settings=settings[plot.series.key],
            advice=advice(task.score.strips[name], task.score.rows[name]),
            trials=len(plot.series.rows),
            metrics={
                kind: to_number(KINDS[kind], number, as_errors=measure.higher_is_better)
                for kind, number in task.score.rows[name].items()
            },
            strip=_strip(task.score.strips[name]),
            best_of=[
                BestOfRead(k=k, value=one.value, low=one.low, high=one.high)
                for k, one in enumerate(task.score.best_of[name], start=1)
            ],
            gap=gap_body(plot, task.score.strips[name]),
        )
        for task in tasks
        for name, plot in task.plots.items()
    ]


def to_number(kind: NumberKind, number: Number, *, as_errors: bool = False) -> NumberRead:
    """Return a number as it is answered.

    Args:
        kind: What it is.
        number: Its value.
        as_errors: Whether the losses are errors, 1 - accuracy.
    """
    error = as_errors and kind.unit == "loss"
    return NumberRead(
        value=number.value,
        low=number.low,
        high=number.high,
        censored=number.censored,
        n=number.n,
        definition=number.definition or kind.definition,
        note=f"{number.note} {ERRORS}".strip() if error else number.note,
        title=kind.title,
        unit="error" if error else kind.unit,
        better=kind.better,
        text=kind.write.value(number),
        interval=kind.write.interval(number),
    )


def _strip(strip: Strip) -> StripRead:
    return StripRead(
        cells=[
            RateCellRead(lr=cell.lr, state=cell.state, n=cell.n, broke=cell.broke)
            for cell in strip.cells
        ],
        best=strip.best,
        run=list(strip.run),
        to_test=strip.to_test,
    )


#: What a file of a scorecard has in each line, one line a series and number.
CSV_COLUMNS = (
    *("study_id", "task", "series", "label", "method", "number", "title", "unit"),
    *("value", "low", "high", "censored", "n", "note", "definition", "settings"),
)


def scorecard_csv(rows: Sequence[ScorecardRow]) -> str:
    """Return every number of every series as CSV; what is not defined is empty."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(CSV_COLUMNS)
    for row in rows:
        whose = (row.study_id or "", row.task, row.id, row.label, row.method)
        settings = json.dumps(row.settings)
        for name, one in row.metrics.items():
            numbers = (one.value, one.low, one.high, one.censored, one.n)
            cells = (*whose, name, one.title, one.unit, *numbers, one.note, one.definition)
            writer.writerow([inert(cell) for cell in (*cells, settings)])
    return text.getvalue()


def gap_body(plot: Plotted, strip: Strip) -> dict[str, Any] | None:
    """Return the sweep that tests where a series begins to break, with the same settings.

    None without such a gap, and for series that this engine would not carry on: imported ones and
    those of another version.
    """
    key = plot.series.key
    if strip.to_test is None or key.imported or key.engine_version != ENGINE_VERSION:
        return None
    rates = rates_between(*strip.to_test)
    if not rates:
        return None
    body = {
        "task": key.task,
        "methods": [key.method],
        "learning_rates": rates,
        "seeds": sorted({row.seed for row in plot.series.rows if row.lr in strip.to_test}),
        "epochs": key.epochs,
        "batch_size": key.batch_size,
        "clips": [key.clip],
        "mu": key.mu or None,
        "batch_rule": key.batch_rule,
        "profile": key.profile,
        "activation": key.activation,
        "options": key.settings,
    }
    try:
        return body_of(body)
    except IBError:  # a setting of another time, which nothing can be trained with today
        return None


def rates_between(low: float, high: float) -> list[float]:
    """Return a few rates between two others, evenly in log rate and easy to say."""
    ratio = math.log(high / low)
    each = (low * math.exp(ratio * i / (GAP_RATES + 1)) for i in range(1, GAP_RATES + 1))
    short = sorted({float(f"{rate:.3g}") for rate in each})
    inside = [rate for rate in short if low < rate < high]
    middle = math.sqrt(low) * math.sqrt(high)
    return inside or ([middle] if low < middle < high else [])


def paper_studies(session: "Session", *, study_ids: Sequence[int]) -> set[int]:
    """Return the studies of the paper's experiments, to which its own rule belongs.

    Those that came with the reproduction, that were submitted as one of its presets, or that hold
    its authors' recorded runs.
    """
    from sqlalchemy import and_, exists, or_, select

    from backend.models import BUNDLE_KEY, SweepRow, SweepTrialRow, TrialRow

    preset = SweepRow.body["preset"].as_string()
    shipped = (
        SweepRow.idempotency_key.startswith(f"{BUNDLE_KEY}{profile}/", autoescape=True)
        for profile in PROFILES
    )
    recorded = exists(
        select(1)
        .select_from(SweepTrialRow)
        .join(TrialRow, TrialRow.id == SweepTrialRow.trial_id)
        .where(SweepTrialRow.sweep_id == SweepRow.id, TrialRow.imported)
        .where(TrialRow.options["experiment"].as_string().is_not(None))
    )
    query = select(SweepRow.study_id).where(
        SweepRow.study_id.in_(study_ids),
        or_(
            preset.startswith(PAPER_PRESET, autoescape=True),
            and_(SweepRow.owner_id.is_(None), or_(*shipped)),
            and_(SweepRow.imported, recorded),
        ),
    )
    return set(session.scalars(query.distinct()))


def network_of(key: Key) -> dict[str, Any]:
    """Return what decides the work of a step besides the method; not data, epochs or study."""
    return {
        "task": key.task,
        "profile": key.profile,
        "activation": key.activation,
        "clip": key.clip,
        "mu": key.mu,
        "batch_size": key.batch_size,
        "options": key.group.settings,
    }


def method_of(key: Key) -> dict[str, Any]:
    """Return a method's own settings."""
    own = {name: value for name, value in key.settings.items() if name in OF_A_METHOD}
    return {"batch_rule": key.batch_rule, **own} if key.batch_rule else own


def name_of(key: Key) -> str:
    """Return a name for a method with its own settings, the same whenever they are."""
    own = method_of(key)
    return f"{key.method} {json.dumps(own, sort_keys=True)}" if own else key.method


def network_hash(key: Key) -> str:
    """Return the address of a network: equal for series whose steps do equal work."""
    network = network_of(key)
    return hashlib.sha256(json.dumps(network, sort_keys=True).encode()).hexdigest()


def step_costs(session: "Session", keys: Sequence[Key]) -> dict[Key, Number]:
    """Return what was measured, by series; the newest measurement counts."""
    from sqlalchemy import select

    from backend.models import ShardState, TimingRow

    by_hash: dict[str, list[Key]] = {}
    for key in keys:
        if not key.imported:
            by_hash.setdefault(network_hash(key), []).append(key)
    found: dict[Key, Number] = {}
    if not by_hash:
        return found
    done = (
        select(TimingRow.network_hash, TimingRow.results, TimingRow.measured_on)
        .where(TimingRow.network_hash.in_(by_hash), TimingRow.state == ShardState.DONE)
        .order_by(TimingRow.id)
    )
    for address, results, measured_on in session.execute(done):
        for key in by_hash[address]:
            if one := (results or {}).get(name_of(key)):
                found[key] = _number(one, measured_on, is_baseline=key.method == BASELINE)
    return found


def _number(one: Mapping[str, Any], measured_on: str, *, is_baseline: bool) -> Number:
    rounds = int(one["rounds"])
    if is_baseline:
        return Number(1.0, n=rounds, note="This is what the others are compared with.")
    note = f"Measured in {rounds} rounds on {measured_on}; low and high are quartiles."
    return Number(one["value"], one["low"], one["high"], n=rounds, note=note)
