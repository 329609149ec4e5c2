"""What the database itself refuses, whoever writes."""

from typing import Any

import pytest
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

from backend.db import clock, transaction
from backend.models import TrialRow


def trial(**changes: Any) -> dict[str, Any]:
    row = {"fingerprint": "0" * 64, "state": "queued", "task": "t", "profile": "text"}
    row |= {"method": "eb", "lr": 0.1, "seed": 1, "mu": 0.0, "epochs": 1, "options": {}}
    return row | changes


NONSENSE = [
    {"lr": 0.0},
    {"lr": -1.0},
    {"lr": float("inf")},
    {"mu": -1.0},
    {"clip": 0.0},
    {"seed": -1},
    {"epochs": 0},
    {"batch_size": 0},
    {"attempts": -1},
    {"state": "lost"},
    {"state": "running"},
    {"state": "completed", "finished_at": True},
    {"state": "completed", "train_loss": 1.0},
    {"state": "failed", "finished_at": True},
    {"state": "queued", "train_loss": 1.0},
    {"state": "diverged", "finished_at": True, "train_loss": float("inf")},
    {"fingerprint": "short"},
]


@pytest.mark.parametrize("nonsense", NONSENSE, ids=str)
def test_the_database_refuses_nonsense(session, nonsense: dict[str, Any]) -> None:
    values = trial(**nonsense)
    if "finished_at" in values:
        values["finished_at"] = clock()
    nested = session.begin_nested()
    with pytest.raises(IntegrityError):
        session.execute(insert(TrialRow).values(values))
    nested.rollback()


@pytest.mark.parametrize(
    "sense",
    [
        {},
        {"state": "diverged", "finished_at": True},
        {"state": "diverged", "finished_at": True, "train_loss": 1e308},
        {"state": "completed", "finished_at": True, "train_loss": 0.0},
        {"state": "completed", "finished_at": True, "test_loss": 0.0, "imported": True},
        {"state": "failed", "finished_at": True, "error": "why"},
        {"state": "cancelled"},
    ],
    ids=str,
)
def test_the_database_takes_what_makes_sense(session, sense: dict[str, Any]) -> None:
    values = trial(**sense)
    if "finished_at" in values:
        values["finished_at"] = clock()
    session.execute(insert(TrialRow).values(values))


def test_a_trial_exists_once(session) -> None:
    session.execute(insert(TrialRow).values(trial()))
    nested = session.begin_nested()
    with pytest.raises(IntegrityError):
        session.execute(insert(TrialRow).values(trial()))
    nested.rollback()


def test_nan_is_no_learning_rate(postgresql_database: str) -> None:
    with pytest.raises(IntegrityError), transaction() as session:
        session.execute(insert(TrialRow).values(trial(lr=float("nan"))))
