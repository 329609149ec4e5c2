"""A result as one line of JSON, and back.

Losses that are not finite are null. Final numbers keep nine digits, all that float32 has; points
of the curve keep six, which no picture can tell from more.
"""

import json
import math
from collections.abc import Sequence
from types import UnionType
from typing import Any

from ib_core.errors import CorruptData, IBError
from ib_core.sweep.result import CurvePoint, Divergence, Outcome, TrialResult
from ib_core.sweep.spec import Options, TrialSpec

NUMBERS = ("initial_loss", "train_loss", "test_loss", "train_accuracy", "test_accuracy")
COLUMNS = ("step", "epoch", "train_loss", "test_loss", "train_accuracy", "test_accuracy")
LOSSES = ("initial_loss", "train_loss", "test_loss")
#: What a setting must be for trials to be compared, counted and told apart.
SETTINGS: dict[str, type | UnionType] = {
    **dict.fromkeys(("task", "profile", "method", "activation"), str),
    **dict.fromkeys(("seed", "epochs", "batch_size"), int),
    **dict.fromkeys(("lr", "mu"), float),
    "batch_rule": str | None,
    "clip": float | int | None,
}


def encode(result: TrialResult) -> str:
    """Return the result as one line."""
    spec = result.spec.as_dict()
    spec["options"] = {k: v for k, v in spec["options"].items() if v not in (None, False)}
    content: dict[str, Any] = {
        "fingerprint": result.fingerprint,
        "spec": spec,
        "outcome": result.outcome.value,
        **{name: _short(getattr(result, name), 9) for name in NUMBERS},
        "seconds": _short(result.seconds, 4),
        "curve": _columns(result.curve),
        "record": result.record,
    }
    if result.divergence is not None:
        divergence = result.divergence
        content["divergence"] = [divergence.step, divergence.where, divergence.layer]
    return json.dumps(content, separators=(",", ":"), allow_nan=False)


def decode(line: str) -> TrialResult:
    """Return the result a line holds.

    Raises:
        CorruptData: If it holds none, with what is wrong; where it stood only the caller knows.
    """
    try:
        return _result(json.loads(line))
    except json.JSONDecodeError as error:
        raise CorruptData(f"it is not JSON ({error})") from None
    except KeyError as error:
        raise CorruptData(f"it has no {error}") from None
    except (IBError, TypeError, ValueError, AttributeError) as error:
        raise CorruptData(str(error).rstrip(".")) from None


def _result(content: Any) -> TrialResult:
    spec = TrialSpec.from_dict({"options": Options(), **content["spec"]})
    for name, kind in SETTINGS.items():
        if not isinstance(getattr(spec, name), kind):
            raise ValueError(f"its {name} cannot be {getattr(spec, name)!r}")
    # Options of every kind: they must have an address, and a place in a dict.
    json.dumps(content["spec"], allow_nan=False)
    hash(spec)
    if not isinstance(content["record"], dict) or not isinstance(content["fingerprint"], str):
        raise ValueError("its record or its fingerprint is of the wrong kind")
    has_classes = content["curve"].get("train_accuracy") is not None
    numbers: dict[str, Any] = {
        name: None if content[name] is None else float(content[name]) for name in NUMBERS
    }
    for name in LOSSES if not has_classes else NUMBERS:
        numbers[name] = math.nan if numbers[name] is None else numbers[name]
    divergence = content.get("divergence")
    return TrialResult(
        spec=spec,
        outcome=Outcome(content["outcome"]),
        **numbers,
        divergence=Divergence(*divergence) if divergence else None,
        seconds=float(content["seconds"]),
        curve=_points(content["curve"]),
        fingerprint=content["fingerprint"],
        record=content["record"],
    )


def _short(value: float | None, digits: int) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{digits}g}")


def _columns(curve: Sequence[CurvePoint]) -> dict[str, list[Any] | None]:
    found: dict[str, list[Any] | None] = {"step": [point.step for point in curve]}
    for name in COLUMNS[1:]:
        values = [getattr(point, name) for point in curve]
        missing = all(value is None for value in values)
        found[name] = None if missing else [_short(value, 6) for value in values]
    return found


def _points(columns: dict[str, list[Any] | None]) -> tuple[CurvePoint, ...]:
    count = len(columns["step"] or ())
    lists: list[list[Any]] = []
    for name in COLUMNS:
        column = columns[name]
        if column is None:
            lists.append([None] * count)
        else:
            kind = int if name == "step" else float
            lists.append([math.nan if value is None else kind(value) for value in column])
    return tuple(CurvePoint(*row) for row in zip(*lists, strict=True))
