"""A small client of the API: ``from backend.client import Client``.

    with Client("http://127.0.0.1:8050") as client:
        study = client.create_study("Digits: EB against IB")
        sweep = client.submit(study.id, {"task": "digits_mlp", "methods": ["eb", "ib"],
                                         "learning_rates": [0.1, 1, 10], "seeds": 3})
        client.wait(sweep.id, on_progress=lambda sweep: print(sweep.progress))
        curves = client.sensitivity(study.id)

Needs httpx and pydantic only. Whatever `Client` has no method for is in `backend.client.calls`:
``client.send(calls.queue())``, and for `AsyncClient` ``await client.send(calls.queue())``.
"""

from backend.client.asynchronous import AsyncClient
from backend.client.errors import ApiError, ServerAway
from backend.client.synchronous import Client

__all__ = ["ApiError", "AsyncClient", "Client", "ServerAway"]
