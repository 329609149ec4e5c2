"""Manifests as workers announce them, and workers that announce them, without any code."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from backend.services import offers, submission, workers
from backend.services.accounts import Caller
from backend.services.submission import Submission
from backend.services.workers import Worker
from ib_core.announced import offer_key
from ib_core.options import Option, choice, number, options_schema, whole
from tests.factories import new_study

TASK, METHOD = "my_file.py:task", "my_file.py:lion"
OPTIONS: dict[str, Option] = {
    "width": whole(4, 512, 32, help="Units a layer."),
    "norm": choice("batch", "none", default="batch"),
    "dropout": number(0, 0.9, 0.0),
}


def task_manifest(code: str = "aaaa0000aaaa0000", **changes: Any) -> dict[str, Any]:
    """Return what a worker says about a task."""
    return {
        "kind": "task",
        "name": TASK,
        "title": TASK,
        "summary": "Digits by a small network.",
        "options": options_schema(OPTIONS),
        "defaults": {
            "epochs": 1,
            "batch_size": 50,
            "learning_rates": [0.001, 0.01, 0.1],
            "seeds": 3,
        },
        "code": code,
        "data": "d" * 64,
        "linear_output": True,
        "implicit": False,
        "versions": {"torch": "2.9.0"},
        **changes,
    }


def method_manifest(code: str = "bbbb0000bbbb0000", **changes: Any) -> dict[str, Any]:
    """Return what a worker says about a method."""
    return {
        "kind": "method",
        "name": METHOD,
        "title": METHOD,
        "summary": "",
        "options": options_schema({"wd": number(0, 1, 0.0)}),
        "code": code,
        "versions": {"lion-pytorch": "0.2"},
        **changes,
    }


def arrive(session: Session, name: str, *manifests: Mapping[str, Any], host: str = "") -> Worker:
    """Have a worker introduce itself and announce what it has."""
    keys = tuple(offer_key(one) for one in manifests)
    worker = Worker(
        name=name, host=host or f"{name}.lab", pid=1, device="cpu", queues=("cpu",), offers=keys
    )
    offers.announce(session, worker=name, host=worker.host, manifests=manifests)
    workers.register(session, worker=worker)
    return worker


def leave(session: Session, name: str) -> None:
    """Have a worker sign off."""
    offers.leave(session, worker=name)
    workers.remove(session, name=name)


def submit_body(session: Session, study_id: int | None = None, **body: Any) -> Submission:
    """Submit a body as the API does."""
    given = {"task": TASK, "methods": ["eb"], "learning_rates": [0.1, 1.0], "seeds": 2, **body}
    known = offers.known_to(session, given)
    return submission.submit(
        session,
        study_id=study_id or new_study(session).id,
        request=submission.prepare(given, known),
        by=Caller("owner", "admin"),
    )
