"""Who sits at the browser, and what to offer them.

What they may really do is the API's business: these answers only spare people buttons that
would be refused.
"""

from backend.client import calls
from backend.schemas import MeRead, StudyRead
from dashboard.api_client import ask


async def get_visitor() -> MeRead:
    """Return who is asking."""
    return await ask(calls.me())


def may_write(visitor: MeRead) -> bool:
    """Return whether somebody may create things."""
    return visitor.role != "viewer"


def may_change(visitor: MeRead, study: StudyRead) -> bool:
    """Return whether a study is somebody's to change."""
    return visitor.role == "admin" or (may_write(visitor) and study.owner == visitor.username)
