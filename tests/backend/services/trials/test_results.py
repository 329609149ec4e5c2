"""What an engine reports, made safe for any database."""

import json
import math
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from backend.services import trials
from backend.services.trials import rows

#: Halves of surrogate pairs too: Python has them in the names of files that are not UTF-8.
any_text = st.text(st.characters(exclude_categories=()))
leaves = st.none() | st.booleans() | st.integers() | st.floats() | any_text
trees = st.recursive(
    leaves, lambda inner: st.lists(inner) | st.dictionaries(any_text, inner), max_leaves=20
)


@given(trees)
def test_any_record_becomes_json_that_postgresql_takes(tree) -> None:
    found = rows.plain(tree)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert not any(b"\x00" in text.encode() for text in texts(found))


def texts(tree) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, dict):
        for key, value in tree.items():
            yield key
            yield from texts(value)
    elif isinstance(tree, list):
        for item in tree:
            yield from texts(item)


def test_a_record_keeps_what_can_be_kept() -> None:
    record = {"a": (1, 2.5, None, True), "path": type("P", (), {"__str__": lambda _: "p"})()}
    assert rows.plain(record) == {"a": [1, 2.5, None, True], "path": "p"}


@given(st.floats())
def test_only_finite_numbers_stay(value) -> None:
    found = trials.finite(value)
    assert (found is None) == (not math.isfinite(value))


def test_an_endless_error_is_cut() -> None:
    text = trials.readable("x" * 100_000)
    assert len(text) < rows.LONGEST_ERROR + 20
    assert text.endswith("(cut)")
