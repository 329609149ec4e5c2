"""Every wire type, by noun. Imports pydantic only, so that clients get no torch and no SQL.

| module | whose types |
| --- | --- |
| `base` | what all share: strictness, paging, errors, states |
| `studies` | studies, notes, saved views; sweeps |
| `trials` | trials, their curves, and cells that programs elsewhere claim and report on |
| `analysis` | curves, scorecards, differences, comparisons |
| `paper` | the reproduction's verdicts; toy pictures after its figures |
| `accounts` | people, logins, tokens, who did what |
| `system` | the service itself, and what can be run |
"""

from backend.schemas import (
    accounts,
    analysis,
    base,
    paper,
    studies,
    system,
    trials,
)
from backend.schemas.accounts import *
from backend.schemas.analysis import *
from backend.schemas.base import *
from backend.schemas.paper import *
from backend.schemas.studies import *
from backend.schemas.system import *
from backend.schemas.trials import *

__all__: list[str] = []
__all__ += accounts.__all__
__all__ += analysis.__all__
__all__ += base.__all__
__all__ += paper.__all__
__all__ += studies.__all__
__all__ += system.__all__
__all__ += trials.__all__
