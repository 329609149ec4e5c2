"""The tables, by noun; a row is typed and small, and the database refuses nonsense.

| module | tables of |
| --- | --- |
| `accounts` | people, logins, tokens, attempts, who did what |
| `studies` | studies, tags, notes, saved views |
| `sweeps` | sweeps, their trials and summaries |
| `trials` | trials and their curves |
| `shards` | shards and workers |
| `timings` | races that tell what a step costs |
| `recordings` | what was recorded of trials, and replays |
"""

from backend.models.accounts import AuditRow, LoginAttemptsRow, SessionRow, TokenRow, UserRow
from backend.models.recordings import RecordingRow
from backend.models.shards import AGENTS, DEVICES, OfferRow, ShardRow, ShardState, WorkerRow
from backend.models.studies import SavedViewRow, StudyNoteRow, StudyRow, StudyTagRow
from backend.models.sweeps import BUNDLE_KEY, SweepRow, SweepSummaryRow, SweepTrialRow
from backend.models.timings import TimingRow
from backend.models.trials import LONGEST_METHOD, CurveRow, TrialRow

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
