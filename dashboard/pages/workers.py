"""Who trains, on what, and how much waits."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import dash_mantine_components as dmc
from dash import Input, Output

from backend.client import calls
from backend.schemas import QueueRead, ReadyRead, StorageRead, WorkerRead
from dashboard.api_client import ask
from dashboard.components import age, answering, card, local_time, tick_from, tick_stores
from dashboard.dash_blocks import Component, callback, dcc, html
from dashboard.ids import Workers as ids
from dashboard.router import Page
from dashboard.theme import NONE, count, counted, duration, number, size

INTERVAL_MS = 2000

tick_from(ids.INTERVAL, ids.TICK)


async def layout(**_: str) -> Component:
    """Return the page of workers."""
    return html.Div(
        [
            html.Div(
                html.Div(
                    [
                        html.H1("Workers"),
                        html.P(
                            "A worker trains shards: trials that fit together as one program.",
                            className="page-lead",
                        ),
                    ]
                ),
                className="page-head",
            ),
            dcc.Interval(id=ids.INTERVAL, interval=INTERVAL_MS),
            *tick_stores(ids.TICK),
            html.Div(await _body(), id=ids.BODY),
        ]
    )


@callback(
    Output(ids.BODY, "children"),
    Input(ids.TICK, "data"),
    running=answering(ids.TICK),
    prevent_initial_call=True,
)
async def refresh(_tick: Any) -> Component:
    """Ask again."""
    return await _body()


async def _body() -> Component:
    workers, queue, ready, storage = await asyncio.gather(
        ask(calls.workers()), ask(calls.queue()), ask(calls.ready()), ask(calls.storage())
    )
    return html.Div(
        [
            _checks(ready),
            card(_queue(queue), title="Queue"),
            card(_table(workers.items), title="Workers"),
            card(_storage(storage), title="Room on disk"),
        ],
        className="stack",
    )


def _checks(ready: ReadyRead) -> Component | None:
    missing = [check.reason for check in ready.checks.values() if not check.ready]
    if ready.ready:
        return None
    return dmc.Alert(
        [dmc.Text(reason or "not ready") for reason in missing],
        title="Sweeps would not run right now",
        color="yellow",
    )


def _queue(queue: QueueRead) -> Component:
    facts = [
        ("Shards waiting", count(queue.depth)),
        ("Shards in training", count(queue.running)),
        ("Trials waiting", count(queue.trials_queued)),
        ("Trials in training", count(queue.trials_running)),
        ("Longest wait", duration(queue.oldest_seconds)),
    ]
    return _numbers(facts)


def _storage(storage: StorageRead) -> Component:
    """Return how much room everything takes, and how to get some back."""
    facts = [(place.name.capitalize(), size(place.used_bytes)) for place in storage.places]
    facts.append(("Left on this disk", size(storage.free_bytes)))
    words = (
        f"{counted(storage.trials, 'trial')}, their curves {size(storage.curve_bytes)} of the "
        "database. Deleting a study frees the room of trials no other study shares; the database "
        "uses it again. Data sets can be fetched again: etascope data list says where they are."
    )
    return html.Div([_numbers(facts), html.P(words, className="history-meta")])


def _numbers(facts: list[tuple[str, str]]) -> Component:
    return html.Div(
        [
            html.Div([html.Div(value, className="big number"), html.Div(name, className="muted")])
            for name, value in facts
        ],
        className="numbers",
    )


def _table(workers: list[WorkerRead]) -> Component:
    if not workers:
        return html.P(
            "No worker has been heard of. Start one with: etascope worker", className="muted"
        )
    head = ("Worker", "State", "Device", "Working on", "Heartbeat", "Throughput", "Since")
    now = datetime.now(UTC)
    return html.Table(
        [
            html.Thead(html.Tr([html.Th(name, scope="col") for name in head])),
            html.Tbody([_row(worker, now) for worker in workers]),
        ],
        className="table responsive",
    )


def _row(worker: WorkerRead, now: datetime) -> Component:
    state = worker.state if worker.alive else "silent"
    per_minute = (
        f"{number(worker.trials_per_minute)} trials/min" if worker.trials_per_minute else NONE
    )
    shard = NONE
    if worker.current_shard is not None:
        trials = f", {worker.trials} trials" if worker.trials else ""
        shard = f"shard {worker.current_shard}{trials}"
    cells = [
        ("", html.Span([html.B(worker.name), html.Div(worker.host, className="history-meta")])),
        ("State", html.Span(state, className=f"state state-{state}")),
        ("Device", f"{worker.device} {worker.device_name}".strip()),
        ("Working on", shard),
        ("Heartbeat", age(worker.last_heartbeat, now)),
        ("Throughput", f"{per_minute} ({count(worker.trials_done)} done)"),
        ("Since", local_time(worker.started_at)),
    ]
    return html.Tr(
        [html.Td(value, **({"data-label": name} if name else {})) for name, value in cells]
    )


PAGE = Page("/workers", "Workers", layout, navigation="Workers")
