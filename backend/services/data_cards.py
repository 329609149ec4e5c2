"""Cards of data sets, made by a process of their own, so that the web process stays small."""

import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from threading import Lock

from ib_core.datasets import DATASETS, has_card

#: Reading all data sets there are takes seconds; what takes longer than this is read here.
PATIENCE = 120

_one_at_a_time = Lock()
_prepared: set[str] = set()


def prepare(names: Iterable[str]) -> None:
    """See to it that asking for these data sets' cards takes neither time nor memory.

    Data that is missing or broken stays without a card; whoever asks for that one is told why.
    """
    with _one_at_a_time:
        asked = set(names) - _prepared
        unread = sorted(name for name in asked if DATASETS[name].present() and not has_card(name))
        if unread:
            command = [sys.executable, "-P", "-m", "ib_core.datasets", *unread]
            with suppress(subprocess.TimeoutExpired):
                subprocess.run(command, stdin=subprocess.DEVNULL, timeout=PATIENCE, check=False)
        _prepared.update(name for name in asked if DATASETS[name].present())
