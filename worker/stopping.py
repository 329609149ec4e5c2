"""A flag that a worker's parent raises and its training processes see."""

from multiprocessing.sharedctypes import RawValue


class StopFlag:
    """Shared by processes that are forked after it was made; each may also raise its own.

    Without a lock on purpose: a process that is killed while it looks must not take a lock along
    that the others then wait for.
    """

    def __init__(self) -> None:
        self._everywhere = RawValue("b", 0)
        self._here = False

    def set(self) -> None:
        """Raise the flag for everybody: the whole worker stops."""
        self._everywhere.value = 1

    def set_here(self) -> None:
        """Raise the flag in this process only: it alone was told to stop what it does."""
        self._here = True

    def clear_here(self) -> None:
        """Lower this process's own flag; the shared one stays as it is."""
        self._here = False

    def is_set(self) -> bool:
        """Return whether the flag is up, here or everywhere."""
        return self._here or bool(self._everywhere.value)
