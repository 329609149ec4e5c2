"""Cheap password digests."""

import pytest

from backend.services.accounts import passwords
from tests.backend.accounts import CHEAP


@pytest.fixture(autouse=True)
def _cheap_digests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "HASHER", CHEAP)
