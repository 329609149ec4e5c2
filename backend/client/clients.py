"""`Client` for scripts and the command line, `AsyncClient` for event loops."""

import time
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, Literal, ParamSpec, Self, TypeVar

import httpx
from pydantic import TypeAdapter

from backend.client import calls
from backend.client.answers import Call, away, error_of, read_events
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

T = TypeVar("T")
P = ParamSpec("P")
DEFAULT_URL = "http://127.0.0.1:8050"
POLL_SECONDS = 1.0
ENDED = (SweepState.COMPLETED, SweepState.FAILED, SweepState.CANCELLED)


def sends(make: Callable[P, Call[T]]) -> Callable[Concatenate["Client", P], T]:
    """Return the method that makes a call and returns its answer, with the call's own types."""

    @wraps(make)
    def method(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.send(make(*args, **kwargs))

    return method


class Client:
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
        self, study_id: int, path: Path, *, format: Literal["csv", "json", "parquet"] = "csv"
    ) -> None:
        """Write every trial of a study to a file, without holding them in memory."""
        address, query = f"/api/studies/{study_id}/export", {"format": format}
        try:
            with self._http.stream("GET", address, params=query) as response:
                if not response.is_success:
                    response.read()
                    raise error_of(response)
                with path.open("wb") as file:
                    file.writelines(response.iter_bytes())
        except httpx.TransportError as cause:
            raise away(self._http.base_url, cause) from cause

    def import_runs(
        self, path: Path, *, study_id: int | None = None, name: str | None = None
    ) -> ImportRead:
        """Bring runs made elsewhere into a study, a new one unless an id is given."""
        content = path.read_bytes()
        return self.send(
            calls.import_runs(content, filename=path.name, study_id=study_id, name=name)
        )

    # What needs no more than to be sent; tests/backend/client compares it with the API's document.
    health = sends(calls.health)
    ready = sends(calls.ready)
    workers = sends(calls.workers)
    queue = sends(calls.queue)
    storage = sends(calls.storage)
    catalog = sends(calls.catalog)
    study = sends(calls.study)
    update_study = sends(calls.update_study)
    delete_study = sends(calls.delete_study)
    notes = sends(calls.notes)
    add_note = sends(calls.add_note)
    delete_note = sends(calls.delete_note)
    sweeps = sends(calls.sweeps)
    sweep = sends(calls.sweep)
    cancel = sends(calls.cancel)
    retry = sends(calls.retry)
    trial = sends(calls.trial)
    curve = sends(calls.curve)
    sensitivity = sends(calls.sensitivity)
    scorecard = sends(calls.scorecard)
    differences = sends(calls.differences)
    compare = sends(calls.compare)
    paper = sends(calls.paper)
    bundle = sends(calls.bundle)
    load_bundle = sends(calls.load_bundle)
    begin_first_study = sends(calls.begin_first_study)
    quadratic = sends(calls.quadratic)
    update = sends(calls.update)
    race = sends(calls.race)
    me = sends(calls.me)
    log_in = sends(calls.log_in)
    log_out = sends(calls.log_out)
    change_password = sends(calls.change_password)
    people = sends(calls.people)
    tokens = sends(calls.tokens)
    create_token = sends(calls.create_token)
    revoke_token = sends(calls.revoke_token)
    users = sends(calls.users)
    user = sends(calls.user)
    create_user = sends(calls.create_user)
    update_user = sends(calls.update_user)
    delete_user = sends(calls.delete_user)
    reset_password = sends(calls.reset_password)
    audit = sends(calls.audit)
    views = sends(calls.views)
    save_view = sends(calls.save_view)
    delete_view = sends(calls.delete_view)

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


def is_elsewhere(url: str) -> bool:
    """Return whether a server is on another machine; a proxy would not find our loopback."""
    return httpx.URL(url).host not in ("127.0.0.1", "localhost", "::1")


def headers_of(token: str | None) -> dict[str, str]:
    """Return what every request carries."""
    return {"Authorization": f"Bearer {token}"} if token else {}


def read_answer(response: httpx.Response, call: Call[T]) -> T:
    """Return a body as the type its call promises."""
    if not response.content:
        return TypeAdapter(call.answer).validate_python(None)
    return TypeAdapter(call.answer).validate_json(response.content)


def _sweep(body: SweepCreate | Mapping[str, Any]) -> SweepCreate:
    return body if isinstance(body, SweepCreate) else SweepCreate.model_validate(dict(body))
