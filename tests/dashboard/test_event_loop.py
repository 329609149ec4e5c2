"""Drawing a large study leaves the event loop to everybody else."""

import threading

import pytest

from dashboard.pages.study import curves
from tests.coroutines import run
from tests.dashboard.pages.test_study import CHOSEN, FAMILY


@pytest.mark.parametrize(
    ("view", "slow"),
    [
        ("curves", ["_mark", "view_figure"]),
        ("method", ["_mark", "difference_figure"]),
    ],
)
def test_what_takes_long_is_done_beside_the_loop(api, monkeypatch, view, slow):
    """In a thread of its own, whatever the machine is doing: no clock would tell as surely."""
    threads = {}

    def noting(name):
        original = getattr(curves, name)

        def noted(*args, **kwargs):
            threads[name] = threading.get_ident()
            return original(*args, **kwargs)

        return noted

    for name in slow:
        monkeypatch.setattr(curves, name, noting(name))
    values = (*CHOSEN[:4], view, *CHOSEN[5:])

    async def draw() -> int:
        await curves.draw("v", *values, *FAMILY, "light", False, 1, None, None, None)
        return threading.get_ident()

    loop = run(draw())
    assert sorted(threads) == sorted(slow)
    assert loop not in threads.values()
