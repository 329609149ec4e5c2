"""Cursors: what was given out is taken back, anything else is refused politely."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.errors import InvalidInput
from backend.services import cut, read_cursor, write_cursor


@given(st.text(), st.integers(0, 2**63 - 1))
def test_a_cursor_comes_back_as_it_was(text, number) -> None:
    assert read_cursor(write_cursor(text, number), str, int) == (text, number)


@given(st.text())
def test_any_other_text_is_refused(text) -> None:
    with pytest.raises(InvalidInput, match="cursor"):
        read_cursor(text, str, int)


@pytest.mark.parametrize(
    "cursor",
    [
        write_cursor(1),
        write_cursor(1, 2),
        write_cursor("a", 2.5),
        write_cursor("a", -1),
        write_cursor("a", 2**63),
        write_cursor("a", True),
        "W" * 100_000,
        "[1,2]",
        "ä",
    ],
)
def test_a_cursor_of_another_list_is_refused(cursor) -> None:
    with pytest.raises(InvalidInput, match="start without one"):
        read_cursor(cursor, str, int)


def test_cursors_are_safe_in_an_address() -> None:
    assert write_cursor("???>>>~~~", 1).replace("-", "").replace("_", "").isalnum()


@given(st.sets(st.text(max_size=3), max_size=12), st.integers(1, 5), st.booleans())
def test_pages_of_a_short_list_hold_everything_once_and_in_order(names, limit, falling) -> None:
    found: list[str] = []
    cursor = None
    while True:
        page = cut(
            list(names), key=lambda name: (name,), limit=limit, cursor=cursor, falling=falling
        )
        found += page.items
        if (cursor := page.next_cursor) is None:
            break
        names -= {found[-1]}  # what a cursor remembers may be gone when the next page is asked for
    assert found == sorted(set(found), reverse=falling)
    assert set(names) <= set(found)


@given(st.sets(st.integers(0, 99), max_size=12), st.integers(1, 5), st.booleans())
def test_a_list_nobody_changes_is_paged_without_a_gap_or_a_repetition(
    items, limit, falling
) -> None:
    found: list[int] = []
    cursor = None
    for _ in range(len(items) + 1):
        page = cut(
            list(items), key=lambda item: (item,), limit=limit, cursor=cursor, falling=falling
        )
        found += page.items
        if (cursor := page.next_cursor) is None:
            break
    assert cursor is None
    assert found == sorted(items, reverse=falling)


def test_a_list_that_has_become_empty_ends() -> None:
    assert cut([], key=lambda name: (name,), limit=5, cursor=write_cursor("a")).items == []
