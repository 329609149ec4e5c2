"""What an engine reports, as columns: NaN never reaches the database."""

import math
from typing import TYPE_CHECKING, Any

from backend.schemas import TrialState

if TYPE_CHECKING:
    from ib_core.sweep import TrialResult

LONGEST_ERROR = 10_000
_LOSSES = ("initial_loss", "train_loss", "test_loss", "train_accuracy", "test_accuracy")


def to_columns(result: "TrialResult") -> dict[str, Any]:
    """Return the columns of a finished trial.

    A completed trial whose loss is not finite would be a contradiction, so it counts as diverged.
    """
    state = TrialState(result.outcome.value)
    if state is TrialState.COMPLETED and not math.isfinite(result.train_loss):
        state = TrialState.DIVERGED
    where = result.divergence
    return {
        "state": state,
        **{name: finite(getattr(result, name)) for name in _LOSSES},
        "diverged_at_step": where.step if where else None,
        "diverged_where": where.where if where else None,
        "diverged_layer": where.layer if where else None,
        "seconds": finite(result.seconds),
        "record": plain(result.record),
        "error": readable(result.error or "The engine gave no reason.")
        if state is TrialState.FAILED
        else None,
    }


#: What a trial goes back to when it is to be trained again.
CLEARED: dict[str, Any] = {
    "state": TrialState.QUEUED,
    "started_at": None,
    "finished_at": None,
    **dict.fromkeys(_LOSSES),
    "diverged_at_step": None,
    "diverged_where": None,
    "diverged_layer": None,
    "seconds": None,
    "record": None,
    "error": None,
    "attempts": 0,
}


def finite(value: float | None) -> float | None:
    """Return the number, or None if it is none or not finite."""
    return None if value is None or not math.isfinite(value) else float(value)


def readable(error: str) -> str:
    """Return an error that any database takes and any answer can repeat; not endless."""
    text = _storable(error)
    return text if len(text) <= LONGEST_ERROR else text[:LONGEST_ERROR] + " ... (cut)"


def _storable(text: str) -> str:
    """Return text without what UTF-8 cannot write or PostgreSQL keep: halves of pairs, and NUL.

    Halves come from file names that are not UTF-8, which Python puts into its errors.
    """
    return text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")


def plain(value: Any) -> Any:
    """Return the value as JSON takes it: numbers that are not finite become null."""
    if isinstance(value, float):
        return finite(value)
    if isinstance(value, dict):
        return {plain(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, str):
        return _storable(value)
    return value if isinstance(value, int | bool | None) else str(value)
