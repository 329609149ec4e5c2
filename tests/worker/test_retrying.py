"""Patience: with passing faults without end, with others not at all."""

import pytest
from sqlalchemy.exc import IntegrityError, OperationalError

from worker import reporter
from worker.reporter import LONGEST_WAIT, backoff, until_it_works


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr(reporter.time, "sleep", found.append)
    return found


def failing(times: int, error: Exception):
    left = [times]

    def action() -> str:
        if left[0]:
            left[0] -= 1
            raise error
        return "done"

    return action


LOCKED = OperationalError("UPDATE secret", {}, Exception("database is locked"))


def test_a_locked_database_is_tried_until_it_works(waits, caplog) -> None:
    assert until_it_works(failing(20, LOCKED), what="store") == "done"
    assert len(waits) == 20
    assert waits == sorted(waits)
    assert waits[-1] == LONGEST_WAIT == backoff(10_000)
    assert "Cannot store (database is locked)" in caplog.text
    assert "secret" not in caplog.text


def test_the_wait_begins_short_and_doubles(waits) -> None:
    until_it_works(failing(5, LOCKED), what="store")
    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0]


def test_a_fault_of_our_own_is_not_repeated(waits) -> None:
    broken = IntegrityError("INSERT", {}, Exception("CHECK"))
    with pytest.raises(IntegrityError):
        until_it_works(failing(1, broken), what="store")
    assert waits == []


def test_one_can_give_up(waits) -> None:
    with pytest.raises(OperationalError):
        until_it_works(failing(99, LOCKED), what="store", give_up=lambda _: len(waits) == 3)
    assert len(waits) == 3
