"""Results as rows: the columns every export of a trial has, in one place."""

import csv
import json
import math
from collections.abc import Iterable
from dataclasses import asdict
from typing import IO, Any

from ib_core.sweep.result import TrialResult
from ib_core.sweep.spec import Options

COLUMNS = (
    "task",
    "profile",
    "method",
    "batch_rule",
    "activation",
    "lr",
    "seed",
    "clip",
    "mu",
    "epochs",
    "batch_size",
    "options",
    "outcome",
    "initial_loss",
    "train_loss",
    "test_loss",
    "train_accuracy",
    "test_accuracy",
    "diverged_at_step",
    "seconds",
    "fingerprint",
)


def row_of(result: TrialResult) -> dict[str, Any]:
    """Return a result's row. A number that is not finite is None beside its outcome."""
    spec = result.spec
    row = {name: getattr(spec, name) for name in COLUMNS if hasattr(spec, name)}
    row["options"] = options_text(spec.options)
    row["outcome"] = result.outcome.value
    for name in ("initial_loss", "train_loss", "test_loss", "train_accuracy", "test_accuracy"):
        row[name] = finite_or_none(getattr(result, name))
    row["diverged_at_step"] = result.divergence.step if result.divergence else None
    row["seconds"] = round(result.seconds, 4)
    row["fingerprint"] = result.fingerprint
    return {name: row[name] for name in COLUMNS}


def options_text(options: Options) -> str:
    """Return the options that were set as JSON, empty if none was."""
    chosen = {name: value for name, value in asdict(options).items() if value not in (None, False)}
    return json.dumps(chosen, sort_keys=True) if chosen else ""


def finite_or_none(value: float | None) -> float | None:
    """Return the number, or None where it is missing or not finite."""
    return value if value is not None and math.isfinite(value) else None


def write_csv(results: Iterable[TrialResult], file: IO[str]) -> None:
    """Write one line a trial; what is not defined is empty."""
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for result in results:
        writer.writerow(row_of(result))


def write_json(results: Iterable[TrialResult], file: IO[str]) -> None:
    """Write a list of trials with their curves and records."""
    found = [
        {
            **row_of(result),
            "record": result.record,
            "curve": [
                {name: finite_or_none(value) for name, value in asdict(point).items()}
                for point in result.curve
            ],
        }
        for result in results
    ]
    json.dump({"trials": found}, file, indent=1, allow_nan=False)
    file.write("\n")
