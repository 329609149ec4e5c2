"""How a bundle writes results: one on a line, or many as columns.

A line is whole in itself: it can be appended to a journal while a run goes on, and read by eye.
Where trials are a hundred thousand, most of a line is what its neighbours have as well, and the
losses over training: `fold` writes what is shared once, the rest in columns, and of these losses
the first alone. A trial takes a tenth of the bytes then; every number of its end is kept to the
same digits.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from types import UnionType
from typing import Any

from ib_core.errors import CorruptData, IBError
from ib_core.methods import stayed_at_zero
from ib_core.sweep import (
    ENGINE_VERSION,
    CurvePoint,
    Divergence,
    Options,
    Outcome,
    Recording,
    TrialResult,
    TrialSpec,
    fingerprint,
)

NUMBERS = ("initial_loss", "train_loss", "test_loss", "train_accuracy", "test_accuracy")
COLUMNS = ("step", "epoch", "train_loss", "test_loss", "train_accuracy", "test_accuracy")
LOSSES = ("initial_loss", "train_loss", "test_loss")
#: Of trials that hold rows out; others say nothing of them.
HELD_OUT = ("validation_loss", "validation_accuracy")
#: Of a sweep that records, the seed whose recordings are kept, thinned: each takes kilobytes.
RECORDED_SEED, MOST_RECORDED = 1, 120
#: Of trials that restart (App. C).
RESTARTED = ("restarts", "at_zero")
#: What a setting must be for trials to be compared, counted and told apart.
SETTINGS: dict[str, type | UnionType] = {
    **dict.fromkeys(("task", "profile", "method", "activation"), str),
    **dict.fromkeys(("seed", "epochs", "batch_size"), int),
    **dict.fromkeys(("lr", "mu"), float),
    "batch_rule": str | None,
    "clip": float | int | None,
}


def encode(result: TrialResult, *, addressed: bool = True) -> str:
    """Return the result as one line; one of this engine can do without its address."""
    return _written(_content(result, addressed=addressed))


def _content(result: TrialResult, *, addressed: bool) -> dict[str, Any]:
    spec = result.spec.as_dict()
    spec["options"] = {k: v for k, v in spec["options"].items() if v not in (None, False)}
    known = not addressed and result.fingerprint == _address(result.spec, result.record)
    content: dict[str, Any] = {
        **({} if known else {"fingerprint": result.fingerprint}),
        "spec": spec,
        "outcome": result.outcome.value,
        **{name: _short(getattr(result, name), 9) for name in NUMBERS},
        **{n: _short(v, 9) for n in HELD_OUT if (v := getattr(result, n)) is not None},
        **{n: getattr(result, n) for n in RESTARTED if result.spec.options.restart},
        "seconds": _short(result.seconds, 4),
        "curve": _columns(result.curve),
        "record": result.record,
    }
    if result.recording is not None and result.spec.seed == RECORDED_SEED:
        content["recording"] = result.recording.thin(MOST_RECORDED).to_text()
    if (broken := result.divergence) is not None:
        content["divergence"] = [broken.step, broken.where, broken.layer]
    return content


def _written(content: Any) -> str:
    return json.dumps(content, separators=(",", ":"), allow_nan=False)


def decode(line: str) -> TrialResult:
    """Return the result a line holds.

    Raises:
        CorruptData: If it holds none, with what is wrong; where it stood only the caller knows.
    """
    (result,) = _read(line, lambda content: [content])
    return result


def fold(results: Sequence[TrialResult]) -> list[str]:
    """Return many results as few lines of columns; of losses over training the start alone."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for result in sorted(results, key=_order):
        # The start stays: a loss that ends above it has broken. A trial without it has none here.
        start = tuple(point for point in result.curve[:1] if point.step == 0)
        content = _content(replace(result, curve=start), addressed=False)
        groups.setdefault(_written(_names(content)), []).append(content)
    return [
        _written({"trials": len(group), "columns": _columns_of(group)}) for group in groups.values()
    ]


def unfold(line: str) -> list[TrialResult]:
    """Return the results of a line of columns.

    Raises:
        CorruptData: As `decode`.
    """
    return _read(line, lambda content: _rows(content["columns"], int(content["trials"])))


def _order(result: TrialResult) -> tuple[str, float, int, str]:
    """Sort neighbours to be alike."""
    return result.spec.method, result.spec.lr, result.spec.seed, result.fingerprint


def _names(content: Any) -> Any:
    """Return what names there are in a line, and in what is in it: columns need the same ones."""
    if not isinstance(content, dict):
        return None
    return {name: _names(value) for name, value in sorted(content.items())}


def _columns_of(values: Sequence[Any]) -> Any:
    """Return values one below the other; what all of them share stands once."""
    if isinstance(values[0], dict):
        return {name: _columns_of([one[name] for one in values]) for name in values[0]}
    same = len({_written(value) for value in values}) == 1
    return [values[0]] if same else list(values)


def _rows(columns: Any, count: int) -> Iterator[Any]:
    """Return what `_columns_of` was given.

    Raises:
        ValueError: If a column is too short or too long.
    """
    if isinstance(columns, dict):
        fields = [_rows(column, count) for column in columns.values()]
        for values in zip(*fields, strict=True) if fields else repeat((), count):
            yield dict(zip(columns, values, strict=True))
        return
    if len(columns) not in (1, count):
        raise ValueError(f"a column of {len(columns)} values stands among {count} trials")
    yield from repeat(columns[0], count) if len(columns) == 1 else columns


def _read(line: str, rows: Callable[[Any], Iterable[Any]]) -> list[TrialResult]:
    try:
        return [_result(content) for content in rows(json.loads(line))]
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
    if not isinstance(content["record"], dict):
        raise ValueError("its record is of the wrong kind")
    address = content.get("fingerprint") or _address(spec, content["record"])
    if not isinstance(address, str):
        raise ValueError("its fingerprint is of the wrong kind")
    numbers: dict[str, Any] = {
        name: None if content[name] is None else float(content[name]) for name in NUMBERS
    }
    for name in LOSSES if content["curve"].get("train_accuracy") is None else NUMBERS:
        numbers[name] = math.nan if numbers[name] is None else numbers[name]
    for name in set(HELD_OUT) & set(content):  # written as nothing where it was lost
        numbers[name] = math.nan if content[name] is None else float(content[name])
    divergence = content.get("divergence")
    return TrialResult(
        spec=spec,
        outcome=Outcome(content["outcome"]),
        **numbers,
        divergence=Divergence(*divergence) if divergence else None,
        seconds=float(content["seconds"]),
        curve=_points(content["curve"]),
        fingerprint=address,
        record=content["record"],
        recording=Recording.from_text(content["recording"]) if "recording" in content else None,
        **_restarted(content),
    )


def _address(spec: TrialSpec, record: Mapping[str, Any]) -> str:
    """Return a trial's address; empty, which is nobody's, where another engine made it."""
    return fingerprint(spec, str(record["data"])) if record["engine"] == ENGINE_VERSION else ""


def _restarted(content: dict[str, Any]) -> dict[str, Any]:
    """Return a line's count of restarts; one of an older version has it in its record alone."""
    if "restarts" in content:
        return {"restarts": int(content["restarts"]), "at_zero": bool(content["at_zero"])}
    noted = content["record"].get("theorem", {"theta": [None], "restarts": [0]})
    count = int(noted["restarts"][-1])
    return {"restarts": count, "at_zero": stayed_at_zero(noted["theta"][-1], count)}


def _short(value: float | None, digits: int) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{digits}g}")


def _columns(curve: Sequence[CurvePoint]) -> dict[str, list[Any] | None]:
    found: dict[str, list[Any] | None] = {"step": [point.step for point in curve]}
    held_out = [name for name in HELD_OUT if any(getattr(p, name) is not None for p in curve)]
    for name in (*COLUMNS[1:], *held_out):
        values = [getattr(point, name) for point in curve]
        known = any(value is not None for value in values)
        found[name] = [_short(value, 6) for value in values] if known else None
    return found


def _points(columns: dict[str, list[Any] | None]) -> tuple[CurvePoint, ...]:
    lists: list[list[Any]] = []
    for name in (*COLUMNS, *HELD_OUT):
        column = columns[name] if name in COLUMNS else columns.get(name)
        if column is None:
            lists.append([None] * len(columns["step"] or ()))
            continue
        kind = int if name == "step" else float
        lists.append([math.nan if value is None else kind(value) for value in column])
    return tuple(CurvePoint(*row) for row in zip(*lists, strict=True))
