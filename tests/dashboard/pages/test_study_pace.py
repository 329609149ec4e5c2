"""One picture of a running study for all who watch it."""

import asyncio

import pytest

from dashboard.pages.study.pace import REDRAW_SECONDS, Pace, Shared
from tests.coroutines import run


def test_a_running_study_s_pictures_follow_at_a_pace_and_its_end_at_once():
    now = [0.0]
    pace = Pace(lambda: now[0])
    assert pace.shown(1, "a", running=True) == "a"
    assert pace.shown(1, "b", running=True) == "a", "too soon"
    assert pace.shown(2, "x", running=True) == "x", "another study"
    now[0] += REDRAW_SECONDS
    assert pace.shown(1, "c", running=True) == "c"
    assert pace.shown(1, "d", running=False) == "d"


def test_work_for_one_is_handed_to_all_who_ask_for_the_same():
    calls = []

    async def scene():
        shared = Shared(8)

        async def make():
            calls.append(1)
            await asyncio.sleep(0.01)
            return "drawn"

        found = await asyncio.gather(*(shared.get("key", make) for _ in range(5)))
        return [*found, await shared.get("key", make), await shared.get("other", make)]

    assert run(scene()) == ["drawn"] * 7
    assert len(calls) == 2


def test_a_failure_reaches_all_and_is_not_kept():
    async def scene():
        shared = Shared(8)

        async def fail():
            raise ValueError("away")

        async def work():
            return 1

        with pytest.raises(ValueError, match="away"):
            await shared.get("key", fail)
        return await shared.get("key", work)

    assert run(scene()) == 1


def test_one_who_leaves_does_not_take_the_work_with_them():
    async def scene():
        shared, going_on = Shared(8), asyncio.Event()

        async def make():
            await going_on.wait()
            return "drawn"

        leaving = asyncio.ensure_future(shared.get("key", make))
        staying = asyncio.ensure_future(shared.get("key", make))
        await asyncio.sleep(0)
        leaving.cancel()
        going_on.set()
        return await staying

    assert run(scene()) == "drawn"


def test_only_so_many_answers_are_held():
    async def scene():
        shared, made = Shared(2), []

        def work(key):
            async def make():
                made.append(key)

            return make

        for key in "abacab":
            await shared.get(key, work(key))
        return made

    assert run(scene()) == ["a", "b", "c", "b"], "the one that was asked for longest ago went"
