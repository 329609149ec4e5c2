"""Kept answers: one version each, and never more than fits."""

import random

from backend.web import AnswerCache


def answer(size: int) -> bytes:
    """Return so many bytes that no packing makes fewer."""
    return random.Random(size).randbytes(size)


def test_a_new_version_takes_the_place_of_the_old_one() -> None:
    cache = AnswerCache(most_bytes=140)
    for number in range(50):
        cache.put("curve", str(number), answer(60))
    assert cache.get("curve", "49") == answer(60)
    assert cache.get("curve", "48") is None


def test_beyond_its_size_the_longest_unused_answer_goes() -> None:
    cache = AnswerCache(most_bytes=140)
    cache.put("one", "1", answer(50))
    cache.put("two", "1", answer(50))
    assert cache.get("one", "1")
    cache.put("three", "1", answer(50))
    assert cache.get("two", "1") is None
    assert cache.get("one", "1")
    assert cache.get("three", "1")


def test_one_answer_that_is_too_large_is_kept_alone() -> None:
    cache = AnswerCache(most_bytes=10)
    cache.put("one", "1", answer(5))
    cache.put("large", "1", answer(50))
    assert cache.get("one", "1") is None
    assert cache.get("large", "1") == answer(50)
