"""JSON is read value by value; a slow twin reads it at once."""

import json
import threading
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.errors import InvalidInput, TooLarge
from backend.services import importing
from backend.services.importing import files

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
runs = st.lists(st.dictionaries(st.text(max_size=5), values, max_size=4), min_size=1, max_size=6)


class _All:
    def __contains__(self, _: object) -> bool:
        return True


ALL = _All()


def at_once(text: str) -> list[dict[str, Any]]:
    """The slow twin: every other thread waits meanwhile."""
    found = json.loads(text)
    runs = found["trials"] if isinstance(found, dict) else found
    return [{name.strip().lower(): value for name, value in run.items()} for run in runs]


@given(found=runs, indent=st.none() | st.integers(0, 40), window=st.integers(300, 2000))
def test_values_across_the_window_are_read_as_at_once(
    found: list[dict[str, Any]], indent: int | None, window: int
) -> None:
    longest = max(len(json.dumps({"trials": [run]}, indent=indent)) for run in found)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "WINDOW", max(window, longest + 1))
        for whole in (found, {"study": "a", "n": 12, "trials": found, "z": [1, {}]}):
            text = json.dumps(whole, indent=indent)
            read = files.read_rows(text.encode(), most_bytes=10**9, columns=ALL)
            assert [row.cells for row in read] == at_once(text)


SPOILT = "[{} | [{},] | [{}] 1 | {'trials': [{}] | {'trials' [{}]} | [{},,{}] | [{} {}] | [nul]"


@pytest.mark.parametrize("text", [one.replace("'", '"') for one in SPOILT.split(" | ")])
def test_what_is_not_json_is_refused_with_the_place(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        json.loads(text)
    with pytest.raises(InvalidInput, match=r"not JSON: .* at character"):
        files.read_rows(text.encode(), most_bytes=1000, columns=ALL)


def test_a_value_longer_than_the_window_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "WINDOW", 1000)
    text = json.dumps([{"options": [0] * 1000}])
    with pytest.raises(TooLarge, match="longer than 1,000 characters"):
        files.read_rows(text.encode(), most_bytes=10**9, columns=ALL)


def test_other_threads_go_on_meanwhile() -> None:
    row = {"task": "x", "method": "eb", "lr": 0.1, "options": {"a": [1, 2]}, "pad": "y" * 150}
    text = json.dumps([row] * 60_000).encode()
    turns, over = [time.perf_counter()], threading.Event()

    def watch() -> None:
        while not over.is_set():
            time.sleep(0.001)
            turns.append(time.perf_counter())

    watcher = threading.Thread(target=watch)
    watcher.start()
    began = time.thread_time()
    files.read_rows(text, most_bytes=10**9, columns=ALL)
    taken = time.thread_time() - began
    over.set()
    watcher.join()
    # Read at once there would be a turn or two; a busy machine takes turns away, but not so many.
    assert len(turns) > 20 * taken


def test_a_table_is_read_line_by_line_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a line of 15 million cells Python makes a list, and nothing else for seconds."""
    monkeypatch.setattr(files, "WINDOW", 1000)
    head = "task,method,lr,train_loss,error\n"
    with pytest.raises(TooLarge, match="Line 2 is longer than 1,000 characters"):
        files.read_rows((head + "a," * 500 + "\n").encode(), most_bytes=10**6, columns=ALL)
    long = '"' + "many lines\n" * 200 + '"'
    (row,) = files.read_rows(f"{head}x,eb,0.1,0.5,{long}\n".encode(), most_bytes=10**6, columns=ALL)
    assert row.cells["error"] == "many lines\n" * 200


ROW = "x,eb,0.1,{},0.5"
TABLE = "task,method,lr,seed,train_loss"


def _wide() -> str:
    head = ",".join([TABLE, *(f"c{number}" for number in range(195))])
    return "\n".join([head, *(ROW.format(n) + "," * 195 for n in range(3000))])


def _wide_json() -> str:
    run = {"task": "x", "method": "eb", "lr": 0.1, "train_loss": 0.5}
    return json.dumps(
        [{**run, "seed": n, **dict.fromkeys(map(str, range(150)))} for n in range(3000)]
    )


def _long() -> str:
    curve = ";".join(["1"] * 9_999)
    rows = (f"{ROW.format(n)},{curve}" for n in range(12))
    return "\n".join([f"{TABLE},train_loss_by_epoch", *rows])


@pytest.mark.parametrize("make", [_wide, _wide_json, _long])
def test_what_is_kept_of_a_file_is_not_many_times_as_large(make: Callable[[], str]) -> None:
    """Its other columns and its points as objects took a gigabyte of a file of 20 MB."""
    content = make().encode()
    tracemalloc.start()
    try:
        found = importing.read_runs(content, most_bytes=10**9)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found.trials) in (12, 3000)
    assert kept < 10e6
    assert peak - 2 * len(content) < 20e6
