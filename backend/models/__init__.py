"""The tables, by noun; a row is typed and small, and the database refuses nonsense.

| module | tables of |
| --- | --- |
| `accounts` | people, logins, tokens, attempts, who did what |
| `studies` | studies, tags, notes, saved views; sweeps, their trials and summaries |
| `trials` | trials, their curves, recordings and replays; races that tell what a step costs |
| `shards` | shards and workers |
"""

from backend.models.accounts import AuditRow, LoginAttemptsRow, SessionRow, TokenRow, UserRow
from backend.models.shards import AGENTS, DEVICES, OfferRow, ShardRow, ShardState, WorkerRow
from backend.models.studies import (
    BUNDLE_KEY,
    SavedViewRow,
    StudyNoteRow,
    StudyRow,
    StudyTagRow,
    SweepRow,
    SweepSummaryRow,
    SweepTrialRow,
)
from backend.models.trials import LONGEST_METHOD, CurveRow, RecordingRow, TimingRow, TrialRow

__all__ = [
    "AGENTS",
    "BUNDLE_KEY",
    "DEVICES",
    "LONGEST_METHOD",
    "AuditRow",
    "CurveRow",
    "LoginAttemptsRow",
    "OfferRow",
    "RecordingRow",
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
    "TimingRow",
    "TokenRow",
    "TrialRow",
    "UserRow",
    "WorkerRow",
]
