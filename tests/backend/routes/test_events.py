"""The event stream: what it tells, where it resumes, when it ends."""

import json
from collections.abc import Callable
from typing import Any

from fastapi.testclient import TestClient

from backend.client import Event, read_events


def listen(api: TestClient, sweep: int, last_event_id: str | None = None) -> list[Event]:
    """Return every event of a stream that ends by itself."""
    headers = {"Last-Event-ID": last_event_id} if last_event_id else {}
    with api.stream("GET", f"/api/sweeps/{sweep}/events", headers=headers) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        return list(read_events(answer.iter_lines()))


def test_a_finished_sweep_tells_every_trial_and_ends(
    api: TestClient, submit: Callable[..., dict[str, Any]], train: Callable[..., None]
) -> None:
    sweep = submit()["id"]
    train()
    events = listen(api, sweep)
    assert [event.name for event in events] == ["trial"] * 12 + ["progress", "done"]
    assert json.loads(events[-1].data)["state"] == "completed"
    lost = [json.loads(event.data) for event in events[:12]]
    assert sum(trial["train_loss"] is None for trial in lost) == 1
    assert {trial["outcome"] for trial in lost} == {"completed", "diverged"}


def test_events_are_separate_lines_with_the_id_before_the_data(
    api: TestClient, submit: Callable[..., dict[str, Any]], train: Callable[..., None]
) -> None:
    sweep = submit()["id"]
    train()
    told = api.get(f"/api/sweeps/{sweep}/events").text.split("\n\n")
    assert [line.partition(": ")[0] for line in told[0].split("\n")] == ["event", "data"]
    assert [line.partition(": ")[0] for line in told[-2].split("\n")] == ["event", "id", "data"]
    assert told[-2].startswith("event: done\nid: done~")
    assert told[-1] == ""


def test_a_stream_that_was_cut_off_goes_on_where_it_was(
    api: TestClient, submit: Callable[..., dict[str, Any]], train: Callable[..., None]
) -> None:
    sweep = submit()["id"]
    train()
    first = listen(api, sweep)
    position = next(event.id for event in first if event.name == "progress")
    assert [event.name for event in listen(api, sweep, position)] == ["progress", "done"]


def test_who_has_heard_the_end_is_told_to_stay_away(
    api: TestClient, submit: Callable[..., dict[str, Any]], train: Callable[..., None]
) -> None:
    sweep = submit()["id"]
    train()
    done = listen(api, sweep)[-1]
    answer = api.get(f"/api/sweeps/{sweep}/events", headers={"Last-Event-ID": done.id})
    assert answer.status_code == 204


def test_nonsense_as_last_event_id_means_the_beginning(
    api: TestClient, submit: Callable[..., dict[str, Any]], train: Callable[..., None]
) -> None:
    sweep = submit()["id"]
    train()
    for nonsense in ("x", "~", "9999-99-99~1", "2020-01-01T00:00:00+00:00~-5", "done~0"):
        assert len(listen(api, sweep, nonsense)) == 14


def test_an_unknown_sweep_has_no_stream(api: TestClient) -> None:
    answer = api.get("/api/sweeps/7/events")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"
