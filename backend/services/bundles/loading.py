"""Loads the bundle that comes with the program, in a process of its own, and says how far it is.

A web process that read ten thousand trials itself would answer nobody meanwhile, and keep the
memory. Loading twice changes nothing, so it does not matter which web process was asked.
"""

import sys
import threading

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from backend.child import Child, environment
from backend.models import StudyRow
from backend.schemas.start import BundleRead
from backend.services.studies import of_bundle
from backend.settings import Settings
from ib_core.reproduction import SHIPPED


class Loading:
    """The process of a web process that loads the bundle."""

    def __init__(self) -> None:
        """Nothing is being loaded yet."""
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._fault = ""

    def begin(self, settings: Settings) -> None:
        """Begin to load, unless that goes on already."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._fault = ""
                # The process lives as long as the thread that starts it, so one waits for it.
                self._thread = threading.Thread(
                    target=self._load, args=(settings,), name="bundle", daemon=True
                )
                self._thread.start()

    def _load(self, settings: Settings) -> None:
        child = Child(
            "The import",
            [sys.executable, "-P", "-m", "backend.cli", "import-bundle", SHIPPED],
            log=settings.home / "logs" / "import-bundle.log",
            environment=environment(settings),
        )
        try:
            child.start()
            if child.wait():
                self._fault = child.tail(1)
        except OSError as error:
            self._fault = str(error)

    def read(self, session: Session) -> BundleRead:
        """Return how far it is."""
        here = select(func.count()).select_from(StudyRow).where(of_bundle())
        studies = session.scalars(here).one()
        if self._thread is not None and self._thread.is_alive():
            return BundleRead(state="loading", studies=studies)
        if self._fault:
            return BundleRead(state="failed", studies=studies, message=self._fault)
        return BundleRead(state="loaded" if studies else "absent", studies=studies)
