"""Between the network and the routes: limits, guards, one error shape.

| module | what it is for |
| --- | --- |
| `intake` | what may come in: how large, how slowly, how many at a time; the file in a request |
| `request_scope` | around every request: id, time, numbers for Prometheus; failures in one shape |
| `gate` | nobody gets past without a login or a token; without accounts, no other web site |
| `pages` | the login pages, their cookies, where to go afterwards; the API's documentation |

Here is what is made once for all who ask: one look at a sweep, told to all who listen to it; and
answers that cost time, kept until what they tell has changed.
"""

import asyncio
import logging
import zlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from anyio import CapacityLimiter, to_thread
from fastapi import Request, Response
from sqlalchemy import Engine

from backend.db import PASSING_FAULTS, reading
from backend.errors import NotFound, TooManyAttempts
from backend.schemas import Output
from backend.services import sweeps
from backend.services.accounts import Caller, still_hold
from backend.services.sweeps import News, Position
from backend.web.gate import AccountGate, LocalGuard, document_tokens
from backend.web.intake import ImpatientProtocol, Intake, Upload, read_upload, reading_in_turns
from backend.web.pages import docs_page, drop_cookies, put_cookies
from backend.web.pages import router as entrance_router
from backend.web.request_scope import ApiFallback, Monitor, RequestScope, add_failure_handlers

__all__ = [
    "AccountGate",
    "AnswerCache",
    "ApiFallback",
    "ImpatientProtocol",
    "Intake",
    "LocalGuard",
    "Monitor",
    "RequestScope",
    "Upload",
    "Watch",
    "Watches",
    "add_failure_handlers",
    "answer_by_version",
    "docs_page",
    "document_tokens",
    "drop_cookies",
    "entrance_router",
    "put_cookies",
    "read_upload",
    "reading_in_turns",
]


T = TypeVar("T")
log = logging.getLogger("etascope.web")

POLL_SECONDS = 0.5
#: Threads that look at sweeps; ordinary requests have their own, which listeners cannot take.
LOOKING_AT_ONCE = 4
#: Streams of one account, in all its windows and scripts, and of everybody in this process.
MOST_PER_ACCOUNT = 100
MOST_IN_ALL = 2000
WAIT_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Ended:
    """A trial that ended while somebody watched, as it goes over the wire."""

    id: int
    at: datetime | None
    text: str


class Watch:
    """Looks at one sweep for as long as somebody listens.

    Attributes:
        log: Trials that have ended since the watch began, oldest first.
        rounds: How often it has looked.
        whole: The sweep as JSON, and without its forecast, which moves all the time, `plain`.
        done: Whether nothing will happen any more.
        gone: Whether the sweep was deleted.
        sent_away: Listeners whose login or token has ended.
        limiter: For every look on behalf of listeners.
    """

    def __init__(self, engine: Engine, sweep_id: int, limiter: CapacityLimiter) -> None:
        self.log: list[Ended] = []
        self.rounds = 0
        self.whole = self.plain = ""
        self.done = self.gone = False
        self.sent_away: frozenset[Caller] = frozenset()
        self._engine = engine
        self._sweep_id = sweep_id
        self.limiter = limiter
        self._position = Position()
        self._listeners: Counter[Caller] = Counter()
        self._news = asyncio.Event()
        self._begun = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    @property
    def over(self) -> bool:
        """Whether it looks no more."""
        return self.done or self.gone

    def add(self, caller: Caller) -> None:
        """Count a listener."""
        self._listeners[caller] += 1

    def remove(self, caller: Caller) -> bool:
        """Forget a listener; returns whether it was the last."""
        self._listeners -= Counter([caller])
        if not self._listeners:
            self._task.cancel()
        return not self._listeners

    async def begun(self) -> None:
        """Wait until whatever ends from now on will be in the log."""
        await self._begun.wait()

    async def pause(self) -> None:
        """Wait as long as it waits between two looks."""
        await asyncio.sleep(POLL_SECONDS)

    async def next_round(self, seconds: float) -> None:
        """Wait until it has looked again, or so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return

    async def _run(self) -> None:
        try:
            # What has ended by now is not in the log: listeners look for themselves first.
            while not await self._in_thread(self._count_ended):
                await asyncio.sleep(POLL_SECONDS)
            self._begun.set()
            while not self.over:
                await asyncio.sleep(POLL_SECONDS)
                await self._rounds()
        except Exception:  # listeners come back, and find a watch that works
            log.exception("looking at sweep %d failed", self._sweep_id)
            self.gone = True
            self._begun.set()
            self._tell()

    async def _rounds(self) -> None:
        more = True
        while more:
            found = await self._in_thread(self._look, tuple(self._listeners))
            more = found is not None and found.news.more
            self._note(found)

    async def _in_thread(self, do: Callable[..., T], *given: Any) -> T:
        return await to_thread.run_sync(do, *given, limiter=self.limiter)

    def _count_ended(self) -> bool:
        try:
            with reading(self._engine) as session:
                self._position.seen.update(sweeps.ended_ids(session, sweep_id=self._sweep_id))
        except PASSING_FAULTS:
            return False
        return True

    def _look(self, callers: Sequence[Caller]) -> "_Round | None":
        """Return what is new; None while the database is away."""
        try:
            with reading(self._engine) as session:
                welcome = still_hold(session, callers=callers)
                news = sweeps.news(session, sweep_id=self._sweep_id, position=self._position)
        except PASSING_FAULTS:
            return None
        except NotFound:
            self.gone = True
            return None
        return _Round(
            news,
            [Ended(one.id, at, one.model_dump_json()) for one, at in news.timed()],
            frozenset(callers) - welcome,
        )

    def _note(self, found: "_Round | None") -> None:
        """Let listeners see a round; here, in the event loop, where they read it."""
        if found is not None:
            self.log += found.ended
            self.sent_away = found.sent_away
            self.whole = found.news.sweep.model_dump_json()
            self.plain = found.news.sweep.model_dump_json(exclude={"eta_seconds"})
            self.done = found.news.done
            self.rounds += 1
        self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


@dataclass(frozen=True, slots=True)
class _Round:
    """What one look found."""

    news: News
    ended: list[Ended]
    sent_away: frozenset[Caller]


class Watches:
    """This process's watches, one for each sweep that somebody listens to."""

    def __init__(self) -> None:
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Desk] = WeakKeyDictionary()

    def desk(self) -> "Desk":
        """Return those of this event loop; a server has one, tests may have several."""
        return self._by_loop.setdefault(asyncio.get_running_loop(), Desk())


class Desk:
    """Where listeners come and go.

    Attributes:
        limiter: For every look on behalf of listeners.
    """

    def __init__(self) -> None:
        self._watches: dict[int, Watch] = {}
        self._listening: Counter[int | None] = Counter()
        self.limiter = CapacityLimiter(LOOKING_AT_ONCE)

    def enter(self, engine: Engine, sweep_id: int, caller: Caller) -> Watch:
        """Count a listener and return what it listens to.

        Raises:
            TooManyAttempts: The account has too many streams, or all together have.
        """
        own = self._listening[caller.user_id]
        if caller.user_id is not None and own >= MOST_PER_ACCOUNT:
            raise TooManyAttempts(
                f"Your account has {own} event streams open; close some first.", WAIT_SECONDS
            )
        if self._listening.total() >= MOST_IN_ALL:
            raise TooManyAttempts(
                f"{MOST_IN_ALL} event streams are open here; try again later.", WAIT_SECONDS
            )
        self._listening[caller.user_id] += 1
        watch = self._watches.get(sweep_id)
        if watch is None or watch.over:  # over, and yet the sweep may have been begun again
            watch = self._watches[sweep_id] = Watch(engine, sweep_id, self.limiter)
        watch.add(caller)
        return watch

    def leave(self, watch: Watch, sweep_id: int, caller: Caller) -> None:
        """Forget a listener, and the watch if it was the last."""
        self._listening -= Counter([caller.user_id])
        if watch.remove(caller) and self._watches.get(sweep_id) is watch:
            del self._watches[sweep_id]


# --- Answers that cost time to make, kept until what they tell has changed


MOST_BYTES = 16 * 1024 * 1024


class AnswerCache:
    """The most recently used answers, packed, one version of each; safe for threads.

    A running study has a new version every second: keeping the old ones, which nobody will ask
    for again, would only fill the memory.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._size = 0
        self._answers: OrderedDict[Hashable, tuple[str, bytes]] = OrderedDict()
        self._lock = Lock()

    def get(self, question: Hashable, version: str) -> bytes | None:
        """Return the answer of this version, if it is there."""
        with self._lock:
            kept, answer = self._answers.get(question, ("", b""))
            if kept != version:
                return None
            self._answers.move_to_end(question)
        return zlib.decompress(answer)

    def put(self, question: Hashable, version: str, answer: bytes) -> None:
        """Keep an answer in place of its last version; forget the oldest ones beyond the size."""
        packed = zlib.compress(answer, level=1)
        with self._lock:
            self._size += len(packed) - len(self._answers.pop(question, ("", b""))[1])
            self._answers[question] = (version, packed)
            while self._size > self._most and len(self._answers) > 1:
                self._size -= len(self._answers.popitem(last=False)[1][1])


def answer_by_version(request: Request, version: str, make: Callable[[], Output]) -> Response:
    """Return an answer that is made once for every version of what it tells.

    Args:
        request: Its `If-None-Match` may save sending the answer at all.
        version: Changes whenever the answer could.
        make: Makes the answer.
    """
    etag = f'"{version}"'
    headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
    asked = request.headers.get("if-none-match", "")
    if etag in (tag.strip().removeprefix("W/") for tag in asked.split(",")):
        return Response(status_code=304, headers=headers)
    cache: AnswerCache = request.app.state.answers
    question = (request.url.path, request.url.query)
    body = cache.get(question, version)
    if body is None:
        body = make().model_dump_json().encode()
        cache.put(question, version, body)
    return Response(body, media_type="application/json", headers=headers)
