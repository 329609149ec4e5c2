"""Drawing a large study leaves the event loop to everybody else."""

import asyncio
import time

from dashboard.pages.study import picture
from tests.coroutines import run
from tests.dashboard.answers import series

CHOSEN = ("loss", "train", "final", "all", "curves", "std", True, "focus", "all")


def test_a_figure_of_many_seeds_is_drawn_beside_the_loop(api, monkeypatch):
    lines = [series("eb"), series("ib")]
    for point in (point for line in lines for point in line.points):
        point.seeds = point.seeds * 400
    answer = api._sensitivity
    monkeypatch.setattr(
        api, "_sensitivity", lambda *asked: answer(*asked).model_copy(update={"series": lines})
    )

    async def draw_and_watch() -> tuple[float, float]:
        longest, done = 0.0, asyncio.Event()

        async def watch() -> None:
            nonlocal longest
            while not done.is_set():
                before = time.perf_counter()
                await asyncio.sleep(0)
                longest = max(longest, time.perf_counter() - before)

        watching = asyncio.create_task(watch())
        began = time.perf_counter()
        await picture.draw("v", *CHOSEN, "light", False, 1, None, None)
        taken = time.perf_counter() - began
        done.set()
        await watching
        return taken, longest

    taken, longest = run(draw_and_watch())
    assert longest < taken / 2
