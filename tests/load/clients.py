"""Many clients at once, each doing what a person or a script does, with pauses in between."""

import asyncio
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import httpx

#: Shares of what clients do; the rest of them only read.
STREAMING, SUBMITTING = 0.2, 0.1
#: Seconds between two requests of one client: somebody looks, then clicks. Sweeps take thought.
PAUSES, THOUGHTS = (1.0, 5.0), (4.0, 20.0)


@dataclass
class Notes:
    """What all clients saw."""

    reads: list[tuple[float, str]] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    accepted: list[int] = field(default_factory=list)
    events: int = 0
    broken: list[str] = field(default_factory=list)

    def p99(self) -> float:
        """Return the 99th percentile of the reads' seconds."""
        return sorted(self.reads)[int(0.99 * (len(self.reads) - 1))][0]

    def slowest(self) -> dict[str, int]:
        """Return the longest read of each kind, in milliseconds."""
        return {path: round(seconds * 1000) for seconds, path in sorted(self.reads)}


class Crowd:
    """Clients that read one large study and each other's; who submits has a study of their own."""

    def __init__(self, url: str, study: int, sweep: int) -> None:
        self._url = url
        self._reads = [
            "/api/studies/{study}/sensitivity",
            "/api/studies/{study}/scorecard",
            "/api/studies/{study}",
            f"/api/sweeps/{sweep}",
            f"/api/sweeps/{sweep}/trials?limit=100",
            "/api/studies?spark=true&limit=20",
            "/api/queue",
            "/api/workers",
            "/api/catalog",
        ]
        self._studies = [study]
        self.notes = Notes()

    async def run(self, clients: int, seconds: float) -> Notes:
        """Let so many clients loose for so long."""
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        timeout = httpx.Timeout(60.0, read=None)
        async with httpx.AsyncClient(
            base_url=self._url, trust_env=False, limits=limits, timeout=timeout
        ) as http:
            end = time.monotonic() + seconds
            await asyncio.gather(*(self._client(http, n, clients, end) for n in range(clients)))
        return self.notes

    async def _client(self, http: httpx.AsyncClient, number: int, of: int, end: float) -> None:
        chance = random.Random(number)
        await asyncio.sleep(chance.uniform(0, PAUSES[1]))  # nobody arrives all at once
        role = number / of
        submits = STREAMING <= role < STREAMING + SUBMITTING
        own = await self._new_study(http, number) if submits else 0
        while time.monotonic() < end:
            try:
                if role < STREAMING:
                    await self._follow(http, end)
                elif submits:
                    await self._submit(http, own, chance)
                else:
                    await self._read(http, chance)
            except httpx.HTTPError as error:
                self.notes.broken.append(repr(error))
            pause = chance.uniform(*(THOUGHTS if submits else PAUSES))
            await asyncio.sleep(min(pause, max(0.0, end - time.monotonic())))

    async def _new_study(self, http: httpx.AsyncClient, number: int) -> int:
        made = await http.post("/api/studies", json={"name": f"Of client {number}"})
        self.notes.statuses[made.status_code] += 1
        self._studies.append(int(made.json()["id"]))
        return self._studies[-1]

    async def _read(self, http: httpx.AsyncClient, chance: random.Random) -> None:
        path, study = chance.choice(self._reads), chance.choice(self._studies)
        began = time.monotonic()
        answer = await http.get(path.format(study=study))
        self.notes.reads.append((time.monotonic() - began, path))
        self.notes.statuses[answer.status_code] += 1

    async def _submit(self, http: httpx.AsyncClient, study: int, chance: random.Random) -> None:
        body: dict[str, Any] = {
            "task": "toy/quadratic",
            "methods": ["eb", "ib"],
            "learning_rates": [0.1, 1.0],
            "seeds": [chance.randrange(10**6)],
            "epochs": 1,
        }
        answer = await http.post(f"/api/studies/{study}/sweeps", json=body)
        self.notes.statuses[answer.status_code] += 1
        if answer.status_code == 202:
            self.notes.accepted.append(int(answer.json()["id"]))

    async def _follow(self, http: httpx.AsyncClient, end: float) -> None:
        """Listen to the newest sweep until it is done, or the time is over."""
        sweep = self.notes.accepted[-1] if self.notes.accepted else 1
        async with http.stream("GET", f"/api/sweeps/{sweep}/events") as answer:
            self.notes.statuses[answer.status_code] += 1
            async for line in answer.aiter_lines():
                self.notes.events += line.startswith("event:")
                if time.monotonic() > end:
                    return
