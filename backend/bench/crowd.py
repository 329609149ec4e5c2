"""How long ordinary requests wait beside a crowd: listeners, dawdlers, bad bodies, agents.

Two figures. The listener curve: an ordinary read beside so many event streams of one running
sweep, and beside bodies that never end. The event loop's budget: the longest that `/api/health`,
which needs nothing, waits while a large or nasty body is taken or refused, on every route.

Every line is a request of its own here, which no client of ours would send, from agents that never
rest. They are another process than the service, as agents are.
"""

import asyncio
import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from statistics import quantiles
from typing import Any
from urllib.parse import urlsplit

import httpx

from backend.bench.installation import ThrowawayPostgres, WebProcess, web_process
from backend.operations.programs import LaunchError, find_postgres

STREAMS = (0, 100, 300, 1000)
UNFINISHED = 500
#: What is promised of the longest wait, on a quiet machine.
WAIT_MS = 250.0
SWEEP = {
    "task": "toy/quadratic",
    "methods": ["eb", "ib"],
    "learning_rates": [0.1, 1.0],
    "seeds": 20,
}
#: A body of JSON may have 2 MB.
LARGEST = 1_900_000
FORM = {"Content-Type": 'multipart/form-data; boundary="b"'}
JSON = {"Content-Type": "application/json"}
HEAD = b"task,method,lr,seed,train_loss\n"
PART = b'--b\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n'


def _nasty() -> Iterator[tuple[str, str, bytes, dict[str, str]]]:
    """Yield bodies near every limit: what, where to, the body, its headers."""
    nested = b"".join(
        b"--b%d\r\nContent-Type: multipart/mixed; boundary=b%d\r\n\r\n" % (n, n + 1)
        for n in range(5000)
    )
    rows = b"".join(b"x,eb,0.1,%d,0.5\n" % seed for seed in range(60_000))
    run = b'{"task":"x","method":"eb","lr":0.1,"train_loss":0.5,"options":{"a":[1]},"pad":"%s"}'
    runs = b",".join([run % (b"y" * 180)] * 99_000)
    yield "import of 60,000 runs", "/api/import", HEAD + rows, {}
    yield "import of 99,000 runs as JSON", "/api/import", b"[" + runs + b"]", {}
    yield "import of one endless list", "/api/import", b"[" + b"0," * 15_000_000 + b"0]", {}
    yield "form of 30 MB", "/api/import", PART + b"x,y\n" * 7_500_000 + b"\r\n--b--\r\n", FORM
    yield "form in form in form", "/api/import", nested, FORM
    yield "ends of parts that are none", "/api/import", PART + b"\r\n--" * 2_000_000, FORM
    yield "lists in lists", "/api/import", b"[" * 900_000, {}
    yield "line of 15 million cells", "/api/import", HEAD + b"a," * 15_000_000, {}
    yield "cell without an end", "/api/import", HEAD + b'"' + b"a" * 20_000_000, {}
    yield "2 MB of JSON in lists", "/api/studies", b"[" * 2_000_000, JSON
    yield "notes of 2 MB", "/api/studies", b'{"name":"x","notes":"' + b"y" * 2_000_000 + b'"}', JSON
    yield "callback in lists", "/_dash-update-component", b"[" * 2_000_000, JSON
    yield "forecast of 19,683 methods", "/api/forecast", json.dumps(_many_methods()).encode(), JSON
    sweep = {**SWEEP, "learning_rates": {"from": 0.01, "to": 1, "count": 1000}, "seeds": 10}
    body = {"study": {"name": "20,000 trials"}, "sweep": sweep}
    yield "sweep of 20,000 trials", "/api/sweeps", json.dumps(body).encode(), JSON
    yield "callback that is none", "/_dash-update-component", b'{"output":"x"}', JSON


def _many_methods() -> dict[str, Any]:
    """Return a sweep of as many methods as a sweep may have trials, all combinations of options."""
    each = [round(0.5 + n / 100, 2) for n in range(27)]
    return {
        "task": "toy/quadratic",
        "methods": ["torch.optim.AdamW"],
        "learning_rates": [0.1],
        "seeds": 1,
        "vary": {"beta1": each, "beta2": each, "weight_decay": each},
    }


def large_studies() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield runs whose studies are the dearest to read: of many seeds, settings and names."""
    run = {"task": "x", "method": "eb", "lr": 0.1, "seed": 1, "train_loss": 0.5}
    yield "60,000 seeds", [{**run, "seed": n} for n in range(60_000)]
    yield "60,000 settings", [{**run, "options": {"a": n}} for n in range(60_000)]
    yield "20,000 names of settings", [{**run, "options": {f"a{n}": n}} for n in range(20_000)]


def nasty_bodies(document: dict[str, Any]) -> dict[tuple[str, str], list[bytes]]:
    """Return the nastiest bodies of every call that takes JSON, by method and path.

    Too many names, and every known one with endless lists, names and text for a value.
    """
    endless = [
        b"[" + b"0," * (LARGEST // 2) + b"0]",
        b"[" + b'"x",' * (LARGEST // 4) + b"0]",
        b"[" + b"{}," * (LARGEST // 3) + b"0]",
        b"{" + b",".join(b'"%d":0' % n for n in range(LARGEST // 11)) + b"}",
        b'"' + b"y" * LARGEST + b'"',
        b'"' + b"\\u0000" * (LARGEST // 6) + b'"',
    ]
    found: dict[tuple[str, str], list[bytes]] = {}
    for path, calls in document["paths"].items():
        for method, call in calls.items():
            content = call.get("requestBody", {}).get("content", {}).get("application/json")
            if content is None:
                continue
            names = _names(content["schema"], document)
            values = [b'{"%s":%s}' % (name.encode(), value) for name in names for value in endless]
            found[method.upper(), path] = [*endless, *values]
    return found


def _names(schema: dict[str, Any], document: dict[str, Any]) -> list[str]:
    """Return the fields of a body, whichever of several kinds it is."""
    if "$ref" in schema:
        return _names(document["components"]["schemas"][schema["$ref"].split("/")[-1]], document)
    kinds = [kind for word in ("anyOf", "oneOf", "allOf") for kind in schema.get(word, ())]
    return [
        *schema.get("properties", ()),
        *(name for kind in kinds for name in _names(kind, document)),
    ]


def measure_crowd(*, rounds: int, tell: Callable[[str], None]) -> list[dict[str, Any]]:
    """Return the rows of both figures.

    Args:
        rounds: Ordinary requests behind every number, in tens.
        tell: Called with what is measured now.
    """
    with web_process() as web:
        _, sweep = web.submit(SWEEP)
        return asyncio.run(_measure(web, sweep, rounds * 10, tell))


async def _measure(
    web: WebProcess, sweep: int, asked: int, tell: Callable[[str], None]
) -> list[dict[str, Any]]:
    address = str(web.http.base_url)
    limits = httpx.Limits(max_connections=None)
    found = []
    async with httpx.AsyncClient(
        base_url=address, limits=limits, timeout=300, trust_env=False
    ) as http:
        for streams in STREAMS:
            tell(f"{streams} event streams")
            async with AsyncExitStack() as stack:
                for _ in range(streams):
                    stream = http.stream("GET", f"/api/sweeps/{sweep}/events")
                    answer = await stack.enter_async_context(stream)
                    answer.raise_for_status()
                waits = [await _timed(http, "/api/studies") for _ in range(asked)]
            found.append(waits_row(f"a read beside {streams:,} event streams", waits))
        tell(f"{UNFINISHED} bodies without an end")
        async with AsyncExitStack() as stack:
            for _ in range(UNFINISHED):
                await _begin_body(address, stack)
            waits = [await _timed(http, "/api/studies") for _ in range(asked)]
        found.append(waits_row(f"a read beside {UNFINISHED} bodies without an end", waits))
        await asyncio.sleep(1)  # until all of them are seen to be gone
        for what, path, body, headers in _nasty():
            tell(what)
            request = http.post(path, content=body, headers=headers)
            waits, status = await _waits_during(http, request)
            found.append(waits_row(f"health during: {what} ({status})", waits, target=WAIT_MS))
        document = (await http.get("/api/openapi.json")).raise_for_status().json()
        for (method, path), bodies in nasty_bodies(document).items():
            tell(f"{method} {path}")
            found.append(await _during_all(http, method, path, bodies))
        for what, runs in large_studies():
            tell(f"reading {what}")
            content = json.dumps(runs).encode()
            made = (await http.post("/api/import", content=content)).raise_for_status().json()
            found.append(await _during_reads(http, what, reads_of(document, made)))
    return found


def reads_of(document: dict[str, Any], made: dict[str, Any]) -> list[str]:
    """Return the address of every read of a study, of its first sweep, and of several studies."""
    study, sweep = str(made["study_id"]), str(made["sweep_ids"][0])
    every = [path for path, calls in document["paths"].items() if "get" in calls]
    own = [path for path in every if "{study_id}" in path or "{sweep_id}" in path]
    found = [one.replace("{study_id}", study).replace("{sweep_id}", sweep) for one in own]
    export = f"/api/studies/{study}/export?format="
    further = [f"{export}json", f"{export}parquet", "/api/studies?spark=true"]
    places = [path for path in ("/api/compare", "/api/publish") if path in every]
    return [*found, *further, *(f"{path}?study={study}" for path in places)]


async def _during_reads(http: httpx.AsyncClient, what: str, places: list[str]) -> dict[str, Any]:
    """Return one row for all reads of a study."""
    waits = []
    for place in places:
        more, status = await _waits_during(http, http.get(place))
        if status != "200":
            raise LaunchError(f"{place} was answered {status}.")
        waits += more
    return waits_row(f"health during: {len(places)} reads of {what}", waits, target=WAIT_MS)


async def _during_all(
    http: httpx.AsyncClient, method: str, path: str, bodies: list[bytes]
) -> dict[str, Any]:
    """Return one row for all nasty bodies of a call."""
    waits, statuses = [], set()
    address = re.sub(r"\{\w+\}", "1", path)
    for body in bodies:
        request = http.request(method, address, content=body, headers=JSON)
        more, status = await _waits_during(http, request)
        waits += more
        statuses.add(status)
    answers = ", ".join(sorted(statuses))
    what = f"health during: {method} {path}, {len(bodies)} bodies ({answers})"
    return waits_row(what, waits, target=WAIT_MS)


async def _begin_body(address: str, stack: AsyncExitStack) -> None:
    parts = urlsplit(address)
    _, writer = await asyncio.open_connection(parts.hostname, parts.port)
    stack.callback(writer.close)
    writer.write(
        f"POST /api/studies HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Length: 1000\r\n"
        "Content-Type: application/json\r\n\r\n{".encode()
    )
    await writer.drain()


async def _timed(http: httpx.AsyncClient, path: str) -> float:
    began = time.perf_counter()
    (await http.get(path)).raise_for_status()
    return (time.perf_counter() - began) * 1000


async def _waits_during(http: httpx.AsyncClient, request: Any) -> tuple[list[float], str]:
    """Return how long health took meanwhile, and what the request was answered."""
    running = asyncio.ensure_future(request)
    waits = [await _timed(http, "/api/health")]
    while not running.done():
        waits.append(await _timed(http, "/api/health"))
        await asyncio.sleep(0.005)
    try:
        return waits, str((await running).status_code)
    except httpx.TransportError:
        return waits, "cut off while sending"


def waits_row(what: str, waits: list[float], target: float | None = None) -> dict[str, Any]:
    """Return how long requests waited as a row: half of them, 99 of 100, and all."""
    cuts = quantiles(waits, n=100, method="inclusive") if len(waits) > 1 else [*waits] * 99
    return {
        "what": what,
        "p50 ms": round(cuts[49], 1),
        "p99 ms": round(cuts[98], 1),
        "worst ms": round(max(waits), 1),
        "goal": "" if target is None else f"worst below {target:.0f}",
    }


# --- programs that train elsewhere


AGENTS = 4
LINES = 20
#: 100 rates x 10 seeds.
AGENTS_SWEEP = {"where": "agents", "task": "load", "learning_rates": "0.01:10:100", "seeds": 10}
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
    rows = _measured("SQLite", "", sweep or AGENTS_SWEEP, tell)
    if find_postgres() is None:
        return rows
    server = ThrowawayPostgres(durable=True)
    server.start()
    try:
        server.execute("CREATE DATABASE agents")
        return rows + _measured("PostgreSQL", server.url("agents"), sweep or AGENTS_SWEEP, tell)
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
