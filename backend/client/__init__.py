"""A small client of the API: ``from backend.client import Client``.

    with Client("http://127.0.0.1:8050") as client:
        study = client.create_study("Digits: EB against IB")
        sweep = client.submit(study.id, {"task": "digits_mlp", "methods": ["eb", "ib"],
                                         "learning_rates": [0.1, 1, 10], "seeds": 3})
        client.wait(sweep.id, on_progress=lambda sweep: print(sweep.progress))
        curves = client.sensitivity(study.id)

Needs httpx and pydantic only. Whatever `Client` has no method for is in `calls`:
``client.send(calls.queue())``, and for `AsyncClient` ``await client.send(calls.queue())``.

| module | what it is for |
| --- | --- |
| `calls` | every request as a value: what to send, and what the answer is |
| `clients` | `Client` and `AsyncClient`, which send them |
| `answers` | errors, and streams of events |
"""

from backend.client import calls
from backend.client.answers import ApiError, Event, ServerAway, read_events
from backend.client.calls import Call
from backend.client.clients import ENDED, AsyncClient, Client

__all__ = [
    "ENDED",
    "ApiError",
    "AsyncClient",
    "Call",
    "Client",
    "Event",
    "ServerAway",
    "calls",
    "read_events",
]
