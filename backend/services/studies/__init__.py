"""Studies: questions with a name, that hold sweeps, tags and what people note about them.

| module | for |
| --- | --- |
| `study` | one study: create, read, change, delete, discuss; and people's views of the history |
| `history` | all studies: filtered, ordered, paged, with small curves; sums of sweeps that ended |
"""

from backend.models import BUNDLE_KEY
from backend.services.studies.history import (
    Filters,
    Sort,
    page,
    sparklines,
    store_summaries,
)
from backend.services.studies.study import (
    add_note,
    create,
    delete,
    delete_note,
    delete_view,
    get,
    list_views,
    notes_page,
    of_bundle,
    of_sweep,
    owner_of,
    save_view,
    update,
)

__all__ = [
    "BUNDLE_KEY",
    "Filters",
    "Sort",
    "add_note",
    "create",
    "delete",
    "delete_note",
    "delete_view",
    "get",
    "list_views",
    "notes_page",
    "of_bundle",
    "of_sweep",
    "owner_of",
    "page",
    "save_view",
    "sparklines",
    "store_summaries",
    "update",
]
