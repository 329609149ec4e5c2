"""What the start page's charts are made from; the browser draws them, to follow a finger."""

import math
from collections.abc import Iterable
from typing import Any

from backend.schemas import RaceRead, StudyRead, SweepRead
from dashboard.figures import SPARK_REACH, spark_fades, spark_setting, spark_words
from dashboard.theme import method_style

Chart = dict[str, Any]
#: So many times the loss before training is still on the chart; the rest is on its rail.
RACE_REACH = 40.0


def race_picture(race: RaceRead, first: float) -> Chart:
    """Return all the browser needs for every rate: curves, words, colours and one scale for all."""
    ends = [loss for rate in race.rates for lane in rate.lanes for loss in lane.median if loss]
    methods = {lane.method for rate in race.rates for lane in rate.lanes}
    last = race.epochs[-1]
    return {
        "race": race.model_dump(mode="json"),
        "first": first,
        "styles": {method: style_of(method) for method in sorted(methods)},
        "scale": {
            "x": {"range": [0, last], "ticks": [0, last / 2, last], "title": "Epoch"},
            "y": log_axis(min(ends), RACE_REACH * race.initial, "Training loss"),
            "room": 92,
        },
    }


def curve_chart(study: StudyRead, sweep: SweepRead | None) -> Chart | None:
    """Return a study's curves so far, on the axis of its last sweep; None: nothing has ended yet.

    The axis is there from the beginning, so that one sees the curves grow along it.
    """
    means = [p.mean for spark in study.spark for p in spark.points if p.mean and p.mean > 0]
    planned = sweep.spec.get("learning_rates", ()) if sweep else ()
    rates = [*planned, *(point.lr for spark in study.spark for point in spark.points)]
    if not means:
        return None
    low, high = min(rates), max(rates)
    return {
        "x": {
            "range": [low, high] if low < high else [low / 3, high * 3],
            "ticks": _decades(low, high, most=4),
            "title": "Learning rate",
            "log": True,
        },
        "y": log_axis(min(means), min(max(means), SPARK_REACH * min(means)), "Mean final loss"),
        "words": spark_words(study.spark),
        "room": 92 if any(spark_setting(spark) for spark in study.spark) else 44,
        "labels": [
            {
                "style": style_of(spark.method),
                "value": spark.points[-1].mean,
                "words": spark_setting(spark),
            }
            for spark in study.spark
            if spark.points
        ],
        "lines": [
            {
                "style": style_of(spark.method),
                "dots": True,
                "opacity": opacity,
                "points": [[point.lr, point.mean] for point in spark.points],
            }
            for spark, opacity in zip(study.spark, spark_fades(study.spark), strict=True)
        ],
    }


def style_of(method: str) -> dict[str, str]:
    """Return what a method looks like, for the browser."""
    style = method_style(method)
    return {
        "short": style.short,
        "title": style.title,
        "colour": style.colour,
        "dash": style.dash,
        "light": style.ink_light,
        "dark": style.ink_dark,
    }


def log_axis(low: float, high: float, title: str) -> Chart:
    """Return a logarithmic axis a little wider than its values, with a tick a decade."""
    bottom, top = low / 1.25, max(high, 3 * low)
    return {"range": [bottom, top], "ticks": _decades(bottom, top), "title": title, "log": True}


def _decades(low: float, high: float, most: int = 6) -> list[float]:
    """Return the powers of ten between two values, a few of them where there are many."""
    powers = range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)
    step = max(1, math.ceil(len(powers) / most))
    return _plain(10.0**power for power in powers[::step])


def _plain(values: Iterable[float]) -> list[float]:
    """Return numbers without the noise of their last digits."""
    return [int(value) if value >= 1 else float(f"{value:.1g}") for value in values]
