"""`python -m ib_core.reproduction [uci] [music] [jsb] [classifier]`: run and print the checks."""

import os
import sys
import time
from collections.abc import Collection

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: spinning threads hurt

from ib_core.errors import IBError, lookup
from ib_core.reproduction.checks import CHECKS
from ib_core.sweep.result import Observer


class _Dots(Observer):
    """A percentage on stderr, once a second."""

    def __init__(self) -> None:
        self.last = 0.0

    def progress(self, fraction: float) -> Collection[int]:
        """Print how far it is."""
        if time.monotonic() - self.last > 1:
            self.last = time.monotonic()
            sys.stderr.write(f"\r{100 * fraction:5.1f}% ")
            sys.stderr.flush()
        return ()


def main(names: list[str]) -> int:
    """Run the named checks, all of them without a name; 2 if the data is missing."""
    try:
        for name in names or list(CHECKS):
            check = lookup("check", name, CHECKS)
            start = time.monotonic()
            text, _ = check(observer=_Dots())
            sys.stderr.write("\r")
            sys.stdout.write(f"{text}\n({time.monotonic() - start:.0f} s)\n\n")
            sys.stdout.flush()
    except IBError as error:
        sys.stderr.write(f"{error.message} {error.hint or ''}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
