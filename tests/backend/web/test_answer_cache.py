"""Kept answers: one version each, and never more than fits."""

from backend.web.answer_cache import AnswerCache


def test_a_new_version_takes_the_place_of_the_old_one() -> None:
    cache = AnswerCache(most_bytes=100)
    for number in range(50):
        cache.put("curve", str(number), b"x" * 60)
    assert cache.get("curve", "49") == b"x" * 60
    assert cache.get("curve", "48") is None


def test_beyond_its_size_the_longest_unused_answer_goes() -> None:
    cache = AnswerCache(most_bytes=100)
    cache.put("one", "1", b"x" * 50)
    cache.put("two", "1", b"x" * 50)
    assert cache.get("one", "1")
    cache.put("three", "1", b"x" * 50)
    assert cache.get("two", "1") is None
    assert cache.get("one", "1")
    assert cache.get("three", "1")


def test_one_answer_that_is_too_large_is_kept_alone() -> None:
    cache = AnswerCache(most_bytes=10)
    cache.put("one", "1", b"x" * 5)
    cache.put("large", "1", b"x" * 50)
    assert cache.get("one", "1") is None
    assert cache.get("large", "1") == b"x" * 50
