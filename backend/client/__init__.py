"""A small client of the API: ``from backend.client import Client``.

    with Client("http://127.0.0.1:8050") as client:
        study = client.create_study("Digits: EB against IB")
        sweep = client.submit(study.id, {"task": "digits_mlp", "methods": ["eb", "ib"],
                                         "learning_rates": [0.1, 1, 10], "seeds": 3})
        client.wait(sweep.id, on_progress=lambda sweep: print(sweep.progress))
        curves = client.sensitivity(study.id)

Needs httpx and pydantic only. `Client` has a method for every call of the API; with `AsyncClient`
they are sent as values: ``await client.send(calls.queue())``.

| module | what it is for |
| --- | --- |
| `calls` | every request as a value |
| `clients` | `Client` and `AsyncClient`, which send them |
| `cells` | cells of a sweep for one's own program to train: `client.cells(sweep_id)` |
| `runs` | runs logged live, on disk first: `client.run(...)` |
| `trainers` | callbacks for Lightning, Hugging Face's Trainer, Keras; imported by name |
| `accounts` | requests about people |
| `answers` | what a request is, and what comes back: answers, errors, events |
"""

from backend.client import calls
from backend.client.answers import ApiError, Call, Event, ServerAway, read_events
from backend.client.cells import Cell, agent_name
from backend.client.clients import ENDED, AsyncClient, Client
from backend.client.runs import Run, default_spool, send_file, spooled

__all__ = [
    "ENDED",
    "ApiError",
    "AsyncClient",
    "Call",
    "Cell",
    "Client",
    "Event",
    "Run",
    "ServerAway",
    "agent_name",
    "calls",
    "default_spool",
    "read_events",
    "send_file",
    "spooled",
]
