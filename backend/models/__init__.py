"""The tables, by noun; a row is typed and small, and the database refuses nonsense."""

from backend.models.accounts import AuditRow, LoginAttemptsRow, SessionRow, TokenRow, UserRow
from backend.models.shards import ShardRow, ShardState, WorkerRow
from backend.models.studies import SavedViewRow, StudyNoteRow, StudyRow, StudyTagRow
from backend.models.sweeps import SweepRow, SweepSummaryRow, SweepTrialRow
from backend.models.trials import CurveRow, TrialRow

__all__ = [
    "AuditRow",
    "CurveRow",
    "LoginAttemptsRow",
    "SavedViewRow",
    "SessionRow",
    "ShardRow",
    "ShardState",
    "StudyNoteRow",
    "StudyRow",
    "StudyTagRow",
    "SweepRow",
    "SweepSummaryRow",
    "SweepTrialRow",
    "TokenRow",
    "TrialRow",
    "UserRow",
    "WorkerRow",
]
