"""The tables, by noun; a row is typed and small, and the database refuses nonsense.

| module | tables of |
| --- | --- |
| `accounts` | people, logins, tokens, attempts, who did what |
| `studies` | studies, tags, notes, saved views; sweeps, their trials and summaries |
| `trials` | trials, their curves, recordings and replays; shards and workers; what a step costs |
"""

from backend.models.accounts import AuditRow, LoginAttemptsRow, SessionRow, TokenRow, UserRow
from backend.models.studies import (
    BUNDLE_KEY,
    LIVE_KEY,
    SavedViewRow,
    StudyNoteRow,
    StudyRow,
    StudyTagRow,
    SweepRow,
    SweepSummaryRow,
    SweepTrialRow,
)
from backend.models.trials import (
    AGENTS,
    DEVICES,
    LONGEST_METHOD,
    CurveRow,
    OfferRow,
    RecordingRow,
    ShardRow,
    ShardState,
    TimingRow,
    TrialRow,
    WorkerRow,
)

__all__ = [
    "AGENTS",
    "BUNDLE_KEY",
    "DEVICES",
    "LIVE_KEY",
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
