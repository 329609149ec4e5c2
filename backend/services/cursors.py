"""Opaque cursors: where a page ended, so that the next one starts there whatever was added."""

import base64
import binascii
import json
from typing import Any

from backend.errors import InvalidInput


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
