"""Whose study a submission lands in, on both databases."""

from typing import Any

import pytest
from sqlalchemy.orm import Session

from backend.schemas import StudyCreate
from backend.services import submission
from backend.services.accounts import Caller
from tests.backend.accounts import new_user

BODY = {"task": "toy/quadratic", "learning_rates": [0.1], "seeds": 1}


def caller(session: Session, name: str) -> Caller:
    return Caller(name, "member", user_id=new_user(session, name).id)


@pytest.fixture
def ada(session: Session) -> Caller:
    return caller(session, "ada")


@pytest.fixture
def eve(session: Session) -> Caller:
    return caller(session, "eve")


def study_of(session: Session, by: Caller, **changes: Any) -> int:
    found = submission.submit_into(
        session,
        study=StudyCreate(name="How far?"),
        request=submission.prepare(BODY),
        by=by,
        **changes,
    )
    return found.sweep.study_id


def test_reuse_finds_only_a_study_that_one_may_change(
    session: Session, ada: Caller, eve: Caller
) -> None:
    hers, newer = study_of(session, ada), study_of(session, eve)
    assert newer > hers
    assert study_of(session, ada, reuse=True) == hers
    assert study_of(session, eve, reuse=True) == newer


def test_a_key_finds_only_what_its_own_sender_made(
    session: Session, ada: Caller, eve: Caller
) -> None:
    hers = study_of(session, ada, idempotency_key="click")
    assert study_of(session, eve, idempotency_key="click") != hers
    assert study_of(session, ada, idempotency_key="click") == hers
