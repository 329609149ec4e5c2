"""Who trains, on what, and how much waits; your model: what workers bring along, how to add one.

Code is never sent through a browser: it runs where somebody started a worker with it.
"""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import dash_mantine_components as dmc
from dash import Input, Output

from backend.client import calls
from backend.schemas import OfferRead, QueueRead, ReadyRead, StorageRead, WorkerRead
from dashboard.api_client import ask, get_catalog
from dashboard.components import (
    age,
    answering,
    button_link,
    card,
    code,
    empty_state,
    local_time,
    tick_from,
    tick_stores,
)
from dashboard.dash_blocks import Component, callback, dcc, html
from dashboard.ids import Workers as ids
from dashboard.ids import YourModel
from dashboard.router import Page
from dashboard.theme import NONE, count, counted, duration, number, size
from ib_core.written import written

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


# --- Your model: what workers bring along, in which version and with which options


LOOK_MS = 5000
NEW = "etascope new-task my_file.py"
TRY = "etascope sweep my_file.py:task --methods torch.optim.AdamW,eb"
UP = "etascope up --with my_file.py"
WORKER = "etascope worker --with my_file.py"
PACKAGE = """[project.entry-points."etascope.tasks"]
digits = "my_package.tasks:digits"

[project.entry-points."etascope.methods"]
lion = "my_package.optimizers:lion"
"""

tick_from(YourModel.INTERVAL, YourModel.TICK)


async def model_layout(**_: str) -> Component:
    """Return the page of what workers bring along."""
    return html.Div(
        [
            html.Div(
                html.Div(
                    [
                        html.H1("Your model"),
                        html.P(
                            "Any torch model, any data, any optimizer: how far can its rate be "
                            "turned? Your code stays on the machine where you start a worker with "
                            "it; this page shows what workers bring along.",
                            className="page-lead",
                        ),
                    ]
                ),
                className="page-head",
            ),
            dcc.Interval(id=YourModel.INTERVAL, interval=LOOK_MS),
            *tick_stores(YourModel.TICK),
            html.Div(
                [html.Div(await _brought(), id=YourModel.BODY, className="stack"), _how_to()],
                className="stack",
            ),
        ]
    )


@callback(
    Output(YourModel.BODY, "children"),
    Input(YourModel.TICK, "data"),
    running=answering(YourModel.TICK),
    prevent_initial_call=True,
)
async def refresh_offers(_tick: Any) -> list[Component]:
    """Ask again: a worker may have come or gone."""
    return await _brought()


async def _brought() -> list[Component]:
    offers = (await get_catalog(fresh=True)).offers
    if not offers:
        return [
            empty_state(
                "No worker brings anything along yet",
                "Start one with a file of yours, as below; it appears here within seconds.",
            )
        ]
    now = datetime.now(UTC)
    return [offer_card(offer, now) for offer in offers]


def offer_card(offer: OfferRead, now: datetime) -> Component:
    """Return one version of a task or method: whose it is, its options, and how to run it."""
    return card(
        html.P(offer.summary) if offer.summary else None,
        html.Div(_facts(offer, now), className="history-meta"),
        _options(offer.options.get("properties", {})),
        _run(offer),
        title=offer.title,
    )


def _facts(offer: OfferRead, now: datetime) -> list[Any]:
    """Return name, version, whose worker, and the packages."""
    packages = ", ".join(f"{name} {version}" for name, version in offer.packages.items())
    living = f"on {', '.join(offer.workers)}"
    gone = ["no living worker has it; ", offer.last_host or offer.last_worker, " had it "]
    where = [living] if offer.workers else [*gone, age(offer.last_seen_at, now)]
    data = f" · data {offer.data[:8]}" if offer.data else ""
    return [
        html.Code(offer.name),
        f" · {offer.kind} · version ",
        html.Code(offer.version),
        f"{data} · ",
        *where,
        f" · {packages}" if packages else "",
    ]


def _options(options: Mapping[str, Any]) -> Component:
    if not options:
        return html.P("It has no options.", className="muted")
    head = ("Option", "Takes", "Default", "What it is")
    rows = [
        html.Tr(
            [
                html.Td(html.Code(name)),
                html.Td(taken(schema), **{"data-label": "Takes"}),
                html.Td(_plain(schema.get("default")), **{"data-label": "Default"}),
                html.Td(schema.get("description") or NONE, **{"data-label": "What it is"}),
            ]
        )
        for name, schema in options.items()
    ]
    return html.Table(
        [
            html.Thead(html.Tr([html.Th(name, scope="col") for name in head])),
            html.Tbody(rows),
        ],
        className="table responsive",
    )


def taken(schema: Mapping[str, Any]) -> str:
    """Return in words what an option takes."""
    if "enum" in schema:
        return ", ".join(_plain(value) for value in schema["enum"])
    kind = "whole numbers" if schema["type"] == "integer" else "numbers"
    return f"{kind} from {written(schema['minimum'])} to {written(schema['maximum'])}"


def _plain(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return written(value)
    return value if isinstance(value, str) else str(value).lower()


def _run(offer: OfferRead) -> Component:
    """Return how to use it: the form, and the command line."""
    name = f"{offer.name}@{offer.version}"
    if offer.kind == "task":
        seeds = counted(int(offer.defaults.get("seeds", 1)), "seed")
        words = f"etascope submit {name}"
        foot = html.Div(
            button_link("New sweep", f"/new?task={quote(offer.name, safe='')}"),
            className="card-foot",
        )
        usual = f"By default {counted(len(offer.defaults['learning_rates']), 'rate')} and {seeds}."
        return html.Div([html.P(usual, className="muted"), code(words, f"Run {name}"), foot])
    words = f"etascope submit digits_mlp --methods eb,{name}"
    return html.Div(code(words, f"Run with {name}"))


def _how_to() -> Component:
    steps = [
        ("A file to begin with, which runs at once and says in comments what may be changed:", NEW),
        ("Try it without a server:", TRY),
        ("Then bring it along, on one machine:", UP),
        ("or with a worker of a team's server, on any machine that reaches its database:", WORKER),
    ]
    listed = [html.Li([html.P(words), code(line, words)]) for words, line in steps]
    package = "A package that names its tasks and methods in pyproject.toml needs no file:"
    return card(
        html.Ol(listed),
        html.P(package),
        code(PACKAGE, package),
        html.P(
            "The server stores what a worker says about its tasks: names, options, hashes of code "
            "and data. It never stores or runs the code. A changed file is a new version with "
            "trials of its own; an unchanged one reuses all of them. A sweep whose version nobody "
            "has waits, and says who had it last.",
            className="muted",
        ),
        dmc.Text("Bringing a file along runs it: take only files you trust.", size="sm"),
        title="Add one",
    )


MODEL_PAGE = Page("/your-model", "Your model", model_layout, navigation="Your model")
