"""How much room results, logs and data sets take, and how much is left."""

import shutil
import tempfile
from pathlib import Path

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from backend.models import CurveRow, TrialRow
from backend.schemas import PlaceRead, StorageRead
from backend.settings import Settings

#: A SQLite database is several files while it is open.
PROBE_BYTES = 64 * 1024
SUFFIXES = ("", "-wal", "-shm")


def read(session: Session, *, settings: Settings, data: Path) -> StorageRead:
    """Return the room each kind of file takes.

    Args:
        session: For reading.
        settings: Where things are.
        data: The folder of the data sets.
    """
    home = settings.home
    trials = session.scalar(select(func.count(TrialRow.id))) or 0
    curves = session.scalar(select(func.sum(func.length(CurveRow.data)))) or 0
    places = [
        PlaceRead(name="database", used_bytes=_database(session)),
        PlaceRead(name="logs", used_bytes=_folder(home / "logs")),
        PlaceRead(name="broker", used_bytes=_folder(home / "broker")),
        PlaceRead(name="data sets", used_bytes=_folder(data)),
    ]
    return StorageRead(
        places=places,
        trials=trials,
        curve_bytes=int(curves),
        free_bytes=shutil.disk_usage(_there(home)).free,
    )


def why_not_writable(folder: Path) -> str | None:
    """Return why nothing can be written into a folder (a full disk, say); None if it can.

    By writing: a full disk shows in no permission, and the space that is left may be another's.
    """
    try:
        with tempfile.TemporaryFile(dir=folder, prefix=".probe-") as probe:
            probe.write(bytes(PROBE_BYTES))
            probe.flush()
    except OSError as error:
        return error.strerror or type(error).__name__
    return None


def _database(session: Session) -> int:
    engine = session.get_bind().engine
    if engine.dialect.name == "postgresql":
        return int(session.scalar(text("SELECT pg_database_size(current_database())")) or 0)
    name = engine.url.database or ""
    files = (Path(f"{name}{suffix}") for suffix in SUFFIXES)
    return sum(file.stat().st_size for file in files if file.is_file())


def _folder(folder: Path) -> int:
    found = 0
    for file in folder.rglob("*") if folder.is_dir() else ():
        try:
            found += file.stat().st_size if file.is_file() else 0
        except OSError:  # gone between the listing and the look
            continue
    return found


def _there(folder: Path) -> Path:
    """Return a folder or the nearest one above it that exists."""
    return next(place for place in (folder, *folder.parents) if place.exists())
