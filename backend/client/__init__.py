"""A small client of the API: ``from backend.client import Client``.

    with Client("http://127.0.0.1:8050") as client:
        study = client.create_study("Digits: EB against IB")
        sweep = client.submit(study.id, {"task": "digits_mlp", "methods": ["eb", "ib"],
                                         "learning_rates": [0.1, 1, 10], "seeds": 3})
        client.wait(sweep.id, on_progress=lambda sweep: print(sweep.progress))
        curves = client.sensitivity(study.id)

Needs httpx and pydantic only. `Client` has a method for every call of the API; with `AsyncClient`
they are sent as values: ``await client.send(calls.queue())``. Both are here.

| module | what it is for |
| --- | --- |
| `calls` | every request as a value |
| `cells` | cells of a sweep for one's own program to train: `client.cells(sweep_id)` |
| `runs` | runs logged live, on disk first: `client.run(...)` |
| `trainers` | callbacks for Lightning, Hugging Face's Trainer, Keras; imported by name |
| `requests` | what a request is, and what comes back: answers, errors, events; those about people |
"""

import time
from collections.abc import Callable, Generator, Iterator, Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

import httpx

from backend.client import calls
from backend.client.cells import FLUSH_SECONDS, Cell, agent_name, cells
from backend.client.requests import (
    AccountCalls,
    ApiError,
    Call,
    Event,
    ServerAway,
    away,
    download,
    error_of,
    headers_of,
    is_elsewhere,
    read_answer,
    read_events,
)
from backend.client.runs import (
    SILENT_SECONDS,
    ElsewhereCalls,
    Run,
    default_spool,
    log,
    new_run,
    send_file,
    send_spooled,
    spooled,
)
from backend.schemas import (
    DryRunRead,
    ImportRead,
    StudyCreate,
    StudyRead,
    SweepCreate,
    SweepRead,
    SweepState,
    SweepSubmitted,
    TrialRead,
)

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
    "send_spooled",
    "spooled",
]


T = TypeVar("T")
DEFAULT_URL = "http://127.0.0.1:8050"
POLL_SECONDS = 1.0
ENDED = (SweepState.COMPLETED, SweepState.FAILED, SweepState.CANCELLED)


class Client(calls.StudyCalls, AccountCalls, ElsewhereCalls):
    """Talks to an Etascope server; every method raises `ApiError` or `ServerAway`."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        token: str | None = None,
        timeout: float = 30.0,
        http: httpx.Client | None = None,
    ) -> None:
        """Connect to a server.

        Args:
            url: The server's address.
            token: Bearer token, where accounts are on.
            timeout: Seconds until a silent server counts as away.
            http: A client of one's own, for instance with a proxy; it brings its address along.
        """
        self._http = http or httpx.Client(
            base_url=url, headers=headers_of(token), timeout=timeout, trust_env=is_elsewhere(url)
        )

    def send(self, call: Call[T]) -> T:
        """Make any call of `backend.client.calls` and return its answer."""
        try:
            response = self._http.request(
                call.method,
                call.path,
                params=call.parameters,
                json=call.json,
                content=call.content,
                headers=call.headers,
            )
        except httpx.TransportError as cause:
            raise away(self._http.base_url, cause) from cause
        if not response.is_success and response.status_code not in call.accepted:
            raise error_of(response)
        return read_answer(response, call)

    def studies(self, **filters: Any) -> Iterator[StudyRead]:
        """Yield the history, newest first, page by page."""
        cursor = None
        while True:
            page = self.send(calls.studies(**filters, cursor=cursor))
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def create_study(
        self, name: str, *, tags: list[str] | None = None, notes: str = ""
    ) -> StudyRead:
        """Create a study."""
        return self.send(calls.create_study(StudyCreate(name=name, tags=tags or [], notes=notes)))

    def submit(
        self,
        study: int | str,
        body: SweepCreate | Mapping[str, Any],
        *,
        idempotency_key: str | None = None,
    ) -> SweepSubmitted:
        """Submit a sweep; with a key, repeating a lost request does not run it twice.

        Args:
            study: Its id; or a name, of a study that is there or shall be made.
            body: What to train.
            idempotency_key: Anything that no other submission has.
        """
        if isinstance(study, int):
            call = calls.submit(study, _sweep(body), idempotency_key=idempotency_key)
        else:
            call = calls.submit_into(
                StudyCreate(name=study), _sweep(body), reuse=True, idempotency_key=idempotency_key
            )
        return self.send(call)

    def forecast(self, body: SweepCreate | Mapping[str, Any]) -> DryRunRead:
        """Return what submitting would mean."""
        return self.send(calls.forecast(_sweep(body)))

    def dry_run(self, study_id: int, body: SweepCreate | Mapping[str, Any]) -> DryRunRead:
        """Return what submitting into a study would mean."""
        return self.send(calls.dry_run(study_id, _sweep(body)))

    def trials(self, sweep_id: int, **filters: Any) -> Iterator[TrialRead]:
        """Yield a sweep's trials, page by page."""
        cursor = None
        while True:
            page = self.send(calls.trials(sweep_id, **filters, cursor=cursor))
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def wait(
        self,
        sweep_id: int,
        *,
        on_progress: Callable[[SweepRead], None] = lambda _: None,
        timeout: float | None = None,
    ) -> SweepRead:
        """Block until a sweep has ended.

        Follows the event stream; where that breaks (a proxy, a restart) it asks every second.

        Args:
            sweep_id: Which sweep.
            on_progress: Called with the sweep whenever something changed.
            timeout: Seconds after which to give up; None: never.

        Raises:
            TimeoutError: If the sweep has not ended in time; it goes on running.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            for sweep in self._progress(sweep_id, deadline):
                on_progress(sweep)
                if sweep.state in ENDED:
                    return sweep
                if deadline is not None and time.monotonic() > deadline:
                    raise TimeoutError(
                        f"Sweep {sweep_id} is still {sweep.state} after {timeout} s."
                    )
            time.sleep(POLL_SECONDS)

    def _progress(self, sweep_id: int, deadline: float | None) -> Iterator[SweepRead]:
        """Yield the sweep as it is now, then as events tell, until the stream ends."""
        yield self.sweep(sweep_id)
        # A stream that says nothing still ends in time: the server's keep-alives are 10 s apart.
        left = 30.0 if deadline is None else max(0.05, min(30.0, deadline - time.monotonic()))
        path = f"/api/sweeps/{sweep_id}/events"
        try:
            with self._http.stream("GET", path, timeout=httpx.Timeout(left)) as response:
                if not response.is_success:
                    return
                for event in read_events(response.iter_lines()):
                    if event.name in ("progress", "done"):
                        yield SweepRead.model_validate_json(event.data)
        except httpx.TransportError:
            return

    def export(
        self,
        study_id: int,
        path: Path,
        *,
        format: Literal["csv", "json", "parquet"] = "csv",
        content: Literal["trials", "scorecard"] = "trials",
    ) -> None:
        """Write every trial of a study to a file, without holding them in memory.

        Or its scorecard, one line a series and number.
        """
        query = {"format": format, "content": content}
        download(self._http, f"/api/studies/{study_id}/export", query, path)

    def export_recording(self, trial_id: int, path: Path) -> None:
        """Write what was recorded of a trial's way to a CSV file, one line a step."""
        download(self._http, f"/api/trials/{trial_id}/recording/export", {}, path)

    def publish(self, study_ids: list[int], path: Path, *, format: str = "html") -> None:
        """Write a study, or several on one axis, as one HTML file or a zip (`format`)."""
        download(self._http, "/api/publish", {"study": study_ids, "format": format}, path)

    def import_runs(self, path: Path, **into: Any) -> ImportRead:
        """Bring a file of runs made elsewhere into a study; `into` as `calls.import_runs` has."""
        return self.send(calls.import_runs(path.read_bytes(), filename=path.name, **into))

    def cells(self, sweep_id: int, **options: Any) -> Generator[Cell, None, None]:
        """Yield a sweep's cells for this program to train; see `backend.client.cells`."""
        return cells(self, sweep_id, **options)

    def run(
        self,
        *,
        study: int | str,
        method: str,
        lr: float,
        task: str = "training",
        seed: int = 1,
        spool: Path | None = None,
        flush_seconds: float = FLUSH_SECONDS,
        **settings: Any,
    ) -> Run:
        """Begin to log a run live; used as a context manager, whose end is the run's.

        Args:
            study: Its id; or a name, of a study that is there or shall be made.
            method: What is compared, an optimizer say.
            lr: The learning rate.
            task: What is learnt; losses of different tasks are never mixed.
            seed: Of this run.
            spool: Where the run is kept until it is sent.
            flush_seconds: How often new points are sent.
            settings: `epochs`, `batch_size`, `clip`; `settings`, an object of one's own.
        """
        made = new_run(study=study, method=method, lr=lr, task=task, seed=seed, **settings)
        return Run(self, made, spool=spool, flush_seconds=flush_seconds)

    def sync_runs(
        self, spool: Path | None = None, *, silent_seconds: float = SILENT_SECONDS
    ) -> int:
        """Send the runs that are still on disk; return how many.

        Args:
            spool: Where they are.
            silent_seconds: After such a silence a run of another machine has ended.
        """
        found = send_spooled(self, spool, silent_seconds=silent_seconds)
        for sentence in found.refused:
            log.warning("A run stays on disk, %s", sentence)
        return found.sent

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()


class AsyncClient:
    """Sends `backend.client.calls` to a server, or without any network to an app."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        token: str | None = None,
        app: Any = None,
        timeout: float = 30.0,
    ) -> None:
        """Connect to a server, or without any network to an app.

        Args:
            url: The server's address.
            token: Bearer token, where accounts are on.
            app: An ASGI app in this process to talk to instead.
            timeout: Seconds until a silent server counts as away.
        """
        transport = httpx.ASGITransport(app=app) if app is not None else None
        self._http = httpx.AsyncClient(
            base_url=url,
            # Within one process, packing and unpacking would only take time.
            headers=headers_of(token) | ({"Accept-Encoding": "identity"} if app else {}),
            timeout=timeout,
            transport=transport,
            trust_env=is_elsewhere(url),
            # One client serves many people: what one is told to remember is not another's.
            cookies=CookieJar(policy=DefaultCookiePolicy(allowed_domains=[])),
        )

    async def send(self, call: Call[T]) -> T:
        """Make a call and return its answer.

        Raises:
            ApiError: With the service's own sentence.
            ServerAway: If nobody answers.
        """
        try:
            response = await self._http.request(
                call.method,
                call.path,
                params=call.parameters,
                json=call.json,
                content=call.content,
                headers=call.headers,
            )
        except httpx.TransportError as cause:
            raise away(self._http.base_url, cause) from cause
        if not response.is_success and response.status_code not in call.accepted:
            raise error_of(response)
        return read_answer(response, call)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        await self.aclose()


def _sweep(body: SweepCreate | Mapping[str, Any]) -> SweepCreate:
    return body if isinstance(body, SweepCreate) else SweepCreate.model_validate(dict(body))
