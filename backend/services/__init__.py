"""What happens, by noun, inside the caller's transaction; knows no web framework.

Others import a noun's package or module from here and nothing inside a package: its `__init__`
says what they may use. Imports go down this table, never up.

| noun | owns |
| --- | --- |
| `start` | what a newcomer finds: a race, the first study, the bundle that comes along |
| `reproduction` | bundles of results put into the database, and the paper's claims judged on it |
| `publishing` | studies as files that need no server |
| `submission` | from a request's body to stored sweeps; runs that are logged as they happen |
| `catalog` | what can be run here |
| `importing` | runs made elsewhere |
| `maintenance` | contradictions between rows, old rows, room on the disks |
| `studies` | studies, what people note about them, and the history |
| `sweeps` | sweeps: submitted, followed, cancelled, retried |
| `timings` | what a step costs: races asked for, leased, announced |
| `errands` | what one worker does alone: leases of races; replays asked for, leased, stored |
| `shards` | what one worker trains together: planned, leased, announced |
| `analysis` | from trials to curves, robustness numbers and comparisons |
| `trials` | trials, their curves, and files of them |
| `offers` | tasks and methods that workers bring along, known by their manifests |
| `workers` | training processes: who has been heard of, and who still lives |
| `accounts` | people, their passwords, logins and tokens, and what each did |
| `illustrations` | numbers behind the guide's pictures |

Here is what they share: lists page by page, by opaque cursors that say where a page ended, so that
the next one starts there whatever was added.
"""

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from backend.errors import InvalidInput
from backend.schemas import Page

T = TypeVar("T")


def write_cursor(*keys: str | int | float) -> str:
    """Return a cursor that remembers the sort keys of a page's last row."""
    text = json.dumps(keys, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(cursor: str, *kinds: type) -> tuple[Any, ...]:
    """Return the sort keys of a cursor; refuse one this list cannot have given out."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        keys = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        keys = None
    fits = isinstance(keys, list) and len(keys) == len(kinds)
    if not fits or not all(type(key) is kind for key, kind in zip(keys, kinds, strict=True)):
        raise InvalidInput(
            "This cursor belongs to no page of this list; start without one.", field="cursor"
        )
    if any(isinstance(key, int) and not 0 <= key < 2**63 for key in keys):
        raise InvalidInput("This cursor is out of range; start without one.", field="cursor")
    return tuple(keys)


def cut(
    items: Sequence[T],
    *,
    key: Callable[[T], tuple[str | int, ...]],
    limit: int,
    cursor: str | None,
    falling: bool = False,
) -> Page[T]:
    """Return one page of a list that is short enough to be read whole.

    Args:
        items: All of them, in any order: databases disagree about that of names.
        key: Tells items apart, and orders them.
        limit: Most items to return.
        cursor: Where the page before ended.
        falling: Whether keys fall instead of rise.
    """
    items = sorted(items, key=key, reverse=falling)
    if cursor is not None and items:
        last = read_cursor(cursor, *(type(part) for part in key(items[0])))
        items = [one for one in items if (key(one) < last if falling else key(one) > last)]
    more = len(items) > limit
    return Page(
        items=items[:limit],
        next_cursor=write_cursor(*key(items[limit - 1])) if more else None,
    )
