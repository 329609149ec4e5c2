"""The tables, by noun; a row is typed and small, and the database refuses nonsense.

| module | tables of |
| --- | --- |
| `accounts` | people, logins, tokens, attempts, who did what |
| `studies` | studies, tags, notes, saved views |
| `sweeps` | sweeps, their trials and summaries |
| `trials` | trials and their curves |
| `shards` | shards and workers |
"""

from backend.models.accounts import AuditRow, LoginAttemptsRow, SessionRow, TokenRow, UserRow
from backend.models.shards import DEVICES, ShardRow, ShardState, WorkerRow
from backend.models.studies import SavedViewRow, StudyNoteRow, StudyRow, StudyTagRow
from backend.models.sweeps import SweepRow, SweepSummaryRow, SweepTrialRow
from backend.models.trials import CurveRow, TrialRow

__all__ = [
    "DEVICES",
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
