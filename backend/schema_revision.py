"""Which tables this version needs and which the database has, without loading Alembic for it."""

from functools import lru_cache
from importlib.resources import files

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

PREFIX = 4  # of a migration's file name: its revision


@lru_cache(maxsize=1)
def needed() -> str:
    """Return the newest revision that came with this version."""
    found = (file.name for file in files("migrations").joinpath("versions").iterdir())
    return max(name[:PREFIX] for name in found if name[:PREFIX].isdecimal())


def why_unusable(session: Session) -> str | None:
    """Return what is wrong with the database's tables; None if they are this version's."""
    try:
        found = session.execute(text("SELECT version_num FROM alembic_version")).scalar()
    except SQLAlchemyError:
        found = None
    if found == needed():
        return None
    if found is not None and found > needed():
        return f"The database belongs to a newer version (its tables are at {found})."
    return f"The database's tables are at {found}, not {needed()}. Run: etascope db upgrade"
