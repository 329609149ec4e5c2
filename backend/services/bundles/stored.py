"""Trials of this installation's database as results, found by their content address."""

import math
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import inspect, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from backend.db import get_engine, reading
from backend.models import CurveRow, TrialRow
from backend.schemas import TrialState
from backend.services import curves
from backend.services.trials import chunks
from backend.settings import get_settings
from ib_core.sweep import CurvePoint, Divergence, Outcome, TrialResult, TrialSpec

ENDED = (TrialState.COMPLETED, TrialState.DIVERGED)
SETTINGS = (
    *("task", "profile", "method", "batch_rule", "activation", "lr", "seed", "clip", "mu"),
    *("epochs", "batch_size", "options"),
)


def stored_results(addresses: Sequence[str]) -> dict[str, TrialResult]:
    """Return what was already trained here; nothing where there is no database yet."""
    if not addresses or not _exists():
        return {}
    try:
        with reading() as session:
            return _find(session, addresses)
    except SQLAlchemyError:
        return {}  # away or of another version: nothing to reuse, and no reason not to train


def _exists() -> bool:
    """Return whether there is a database, without making one."""
    url = make_url(get_settings().database)
    missing = not url.database or not Path(url.database).is_file()
    if url.get_backend_name() == "sqlite" and missing:
        return False
    try:
        return inspect(get_engine()).has_table(TrialRow.__tablename__)
    except SQLAlchemyError:
        return False


def _find(session: Session, addresses: Sequence[str]) -> dict[str, TrialResult]:
    found = {}
    for chunk in chunks(sorted(addresses)):
        rows = session.execute(
            select(TrialRow, CurveRow.data)
            .outerjoin(CurveRow, CurveRow.trial_id == TrialRow.id)
            .where(TrialRow.fingerprint.in_(chunk), TrialRow.state.in_(ENDED))
            .where(TrialRow.imported.is_(False))
        )
        for row in rows:
            result = _result(row[0], row[1])
            found[result.fingerprint] = result
    return found


def _result(trial: TrialRow, data: bytes | None) -> TrialResult:
    curve = _curve(data)
    has_classes = any(point.train_accuracy is not None for point in curve)

    def number(name: str) -> float:
        value = getattr(trial, name)
        return math.nan if value is None else float(value)

    return TrialResult(
        spec=TrialSpec.from_dict({name: getattr(trial, name) for name in SETTINGS}),
        outcome=Outcome(trial.state.value),
        initial_loss=number("initial_loss"),
        train_loss=number("train_loss"),
        test_loss=number("test_loss"),
        train_accuracy=number("train_accuracy") if has_classes else None,
        test_accuracy=number("test_accuracy") if has_classes else None,
        divergence=None
        if trial.diverged_at_step is None
        else Divergence(
            trial.diverged_at_step, trial.diverged_where or "loss", trial.diverged_layer
        ),
        seconds=trial.seconds or 0.0,
        curve=curve,
        fingerprint=trial.fingerprint,
        record=trial.record or {},
    )


def _curve(data: bytes | None) -> tuple[CurvePoint, ...]:
    if data is None:
        return ()
    rows = curves.unpack(data).T.tolist()
    has_classes = any(not math.isnan(row[4]) for row in rows)
    return tuple(
        CurvePoint(int(row[0]), *row[1:4], *(row[4:] if has_classes else (None, None)))
        for row in rows
    )
