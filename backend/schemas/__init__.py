"""Every wire type, by noun. Imports pydantic only, so that clients get no torch and no SQL.

| module | whose types |
| --- | --- |
| `base` | what all share: strictness, paging, errors, states |
| `studies`, `sweeps`, `trials` | the nouns themselves; notes and saved views with the studies |
| `analysis` | curves, scorecards, differences, comparisons |
| `paper` | the reproduction's verdicts |
| `cells` | trials that programs elsewhere claim and report on, and runs logged live |
| `accounts` | people, logins, tokens, who did what |
| `catalog` | what can be run |
| `system` | the service, its workers and its disk |
| `illustrations` | toy pictures |
"""

from backend.schemas import (
    accounts,
    analysis,
    base,
    catalog,
    cells,
    illustrations,
    paper,
    studies,
    sweeps,
    system,
    trials,
)
from backend.schemas.accounts import *
from backend.schemas.analysis import *
from backend.schemas.base import *
from backend.schemas.catalog import *
from backend.schemas.cells import *
from backend.schemas.illustrations import *
from backend.schemas.paper import *
from backend.schemas.studies import *
from backend.schemas.sweeps import *
from backend.schemas.system import *
from backend.schemas.trials import *

__all__: list[str] = []
__all__ += accounts.__all__
__all__ += analysis.__all__
__all__ += base.__all__
__all__ += catalog.__all__
__all__ += cells.__all__
__all__ += illustrations.__all__
__all__ += paper.__all__
__all__ += studies.__all__
__all__ += sweeps.__all__
__all__ += system.__all__
__all__ += trials.__all__
