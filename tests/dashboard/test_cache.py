"""One cache: what is the same version is made once, and one picture serves all who watch."""

import asyncio

import pytest

from dashboard.api_client import REDRAW_SECONDS, Cache, ShownVersions, now_in_steps
from tests.coroutines import run


def giving(value, made):
    async def make():
        made.append(value)
        await asyncio.sleep(0.01)
        return value

    return make


def test_a_running_study_s_pictures_follow_at_a_pace_and_its_end_at_once():
    now = [0.0]
    shown = ShownVersions(lambda: now[0])
    assert shown.of(1, "a", running=True) == "a"
    assert shown.of(1, "b", running=True) == "a", "too soon"
    assert shown.of(2, "x", running=True) == "x", "another study"
    now[0] += REDRAW_SECONDS
    assert shown.of(1, "c", running=True) == "c"
    assert shown.of(1, "d", running=False) == "d"


def test_work_for_one_is_handed_to_all_who_ask_for_the_same():
    made = []

    async def scene():
        cache = Cache(8)
        make = giving("drawn", made)
        found = await asyncio.gather(*(cache.get("key", 1, make) for _ in range(5)))
        return [*found, await cache.get("key", 1, make), await cache.get("other", 1, make)]

    assert run(scene()) == ["drawn"] * 7
    assert len(made) == 2


def test_the_version_decides_what_is_stale_and_one_of_each_is_kept():
    made = []

    async def scene():
        cache = Cache(8)
        for version in (1, 1, 2, 2, 1):
            assert await cache.get("key", version, giving(version, made)) == version

    run(scene())
    assert made == [1, 2, 1], "another version takes the place of the one before"


def test_a_version_that_is_overtaken_reaches_who_waits_for_it():
    made = []

    async def scene():
        cache = Cache(8)
        old = asyncio.ensure_future(cache.get("key", 1, giving("old", made)))
        await asyncio.sleep(0)
        return [await cache.get("key", 2, giving("new", made)), await old]

    assert run(scene()) == ["new", "old"]


def test_a_failure_reaches_all_and_is_not_kept():
    async def scene():
        cache = Cache(8)

        async def fail():
            await asyncio.sleep(0.01)
            raise ValueError("away")

        both = (cache.get("key", 1, fail) for _ in range(2))
        found = await asyncio.gather(*both, return_exceptions=True)
        assert [str(one) for one in found] == ["away", "away"]
        with pytest.raises(ValueError, match="away"):
            await cache.get("key", 1, fail)
        return await cache.get("key", 1, giving(1, []))

    assert run(scene()) == 1


def test_one_who_leaves_does_not_take_the_work_with_them():
    async def scene():
        cache, going_on = Cache(8), asyncio.Event()

        async def make():
            await going_on.wait()
            return "drawn"

        leaving = asyncio.ensure_future(cache.get("key", 1, make))
        staying = asyncio.ensure_future(cache.get("key", 1, make))
        await asyncio.sleep(0)
        leaving.cancel()
        going_on.set()
        return await staying

    assert run(scene()) == "drawn"


def test_what_is_there_outlives_its_loop_and_what_was_begun_does_not():
    made, cache = [], Cache(8)

    async def leave():
        waiting = asyncio.ensure_future(cache.get("begun", 1, giving("begun", made)))
        await asyncio.sleep(0)
        waiting.cancel()

    run(cache.get("done", 1, giving("done", made)))
    run(leave())
    assert run(cache.get("done", 1, giving("done", made))) == "done"
    assert run(cache.get("begun", 1, giving("begun", made))) == "begun"
    assert made == ["done", "begun", "begun"]


def test_only_so_many_things_are_held():
    async def scene():
        cache, made = Cache(2), []
        for key in "abacab":
            await cache.get(key, 1, giving(key, made))
        return made

    assert run(scene()) == ["a", "b", "c", "b"], "the one that was asked for longest ago went"


def test_what_one_api_answered_is_not_handed_to_who_asks_another():
    made, apis = [], ["first"]
    cache = Cache(8, owner=lambda: apis[0])

    async def scene():
        for apis[0] in ("first", "other", "first"):
            await cache.get("catalog", 1, giving(apis[0], made))

    run(scene())
    assert made == ["first", "other"]


def test_what_is_forgotten_is_made_anew():
    made = []

    async def scene():
        cache = Cache(8)
        await cache.get("key", 1, giving(1, made))
        cache.forget("key")
        cache.forget("never there")
        await cache.get("key", 1, giving(2, made))

    run(scene())
    assert made == [1, 2]


def test_a_version_of_time_lasts_as_long_as_it_says(monkeypatch):
    now = [120.0]
    monkeypatch.setattr("dashboard.api_client.time.monotonic", lambda: now[0])
    first = now_in_steps(60)
    now[0] += 59
    assert now_in_steps(60) == first
    now[0] += 1
    assert now_in_steps(60) != first
