"""What a service bears of programs that train elsewhere: a thousand cells of twenty lines.

Every line is a request of its own here, which no client of ours would send, from agents that never
rest. They are another process than the service, as agents are.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import httpx

from backend.bench.crowd import waits_row
from backend.bench.installation import WebProcess, web_process
from backend.bench.servers import ThrowawayPostgres
from backend.operations.programs import find_postgres

AGENTS = 4
LINES = 20
#: 100 rates x 10 seeds.
SWEEP = {"where": "agents", "task": "load", "learning_rates": "0.01:10:100", "seeds": 10}
#: What is promised of the 99th percentile, and of how much memory grows.
P99_MS, GROWTH_MB = 300.0, 50.0


def measure_agents(
    *, tell: Callable[[str], None], sweep: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Return a row for every kind of request, on SQLite and, where it is, on PostgreSQL.

    Args:
        tell: Called with what is measured now.
        sweep: The cells; a thousand if not given.
    """
    rows = _measured("SQLite", "", sweep or SWEEP, tell)
    if find_postgres() is None:
        return rows
    server = ThrowawayPostgres(durable=True)
    server.start()
    try:
        server.execute("CREATE DATABASE agents")
        return rows + _measured("PostgreSQL", server.url("agents"), sweep or SWEEP, tell)
    finally:
        server.remove()


def _measured(
    name: str, url: str, sweep: dict[str, Any], tell: Callable[[str], None]
) -> list[dict[str, Any]]:
    tell(f"{AGENTS} agents on {name}")
    with web_process(database_url=url) as web:
        _, sweep_id = web.submit(sweep)
        asyncio.run(_train(web, sweep_id, {}, cells=20))  # what is loaded once is not growth
        waits: dict[str, list[float]] = {"claim": [], "line": [], "result": [], "a read": []}
        before = web.megabytes()
        asyncio.run(_train(web, sweep_id, waits))
        grown = web.megabytes() - before
    goal = f"p99 below {P99_MS:.0f}"
    rows = [
        {**waits_row(f"{what}, {name} ({len(found):,})", found), "goal": goal}
        for what, found in waits.items()
    ]
    empty = dict.fromkeys(rows[0], "")
    memory = {"what": f"memory, {name}", "p50 ms": f"{grown:+.1f} MB"}
    return [*rows, {**empty, **memory, "goal": f"below {GROWTH_MB:.0f} MB"}]


async def _train(
    web: WebProcess, sweep_id: int, waits: dict[str, list[float]], cells: int = 10**6
) -> None:
    """Let agents finish what waits; note how long each request took, of each kind."""
    limits = httpx.Limits(max_connections=None)
    address = str(web.http.base_url)
    left = iter(range(cells))
    ended = asyncio.Event()
    async with httpx.AsyncClient(
        base_url=address, limits=limits, timeout=60, trust_env=False
    ) as http:

        async def timed(kind: str, path: str, body: dict[str, Any] | None = None) -> Any:
            began = time.perf_counter()
            answer = await (http.get(path) if body is None else http.post(path, json=body))
            waits.setdefault(kind, []).append((time.perf_counter() - began) * 1000)
            return answer.raise_for_status().json()

        async def read() -> None:
            while not ended.is_set():
                await timed("a read", f"/api/sweeps/{sweep_id}")
                await asyncio.sleep(0.5)

        async def work(number: int) -> None:
            cells_path = f"/api/sweeps/{sweep_id}/cells"
            for _ in left:
                cell = (await timed("claim", cells_path, {"agent": f"agent {number}"}))["cell"]
                if cell is None:
                    return
                mine, lease = f"{cells_path}/{cell['trial_id']}", cell["lease"]
                for step in range(LINES):
                    point = {"step": step, "train_loss": 1 / (step + 1)}
                    line = {"lease": lease, "start": step, "points": [point]}
                    await timed("line", mine, line)
                await timed("result", mine, {"lease": lease, "result": {"train_loss": 0.05}})

        reader = asyncio.create_task(read())
        await asyncio.gather(*(work(number) for number in range(AGENTS)))
        ended.set()
        await reader
