"""What may come in: how large, how slowly, how many parameters, how many at a time.

The file in a request: its body, or the first file of a form.
"""

import asyncio
import socket
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import h11
from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar
from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from backend.errors import InvalidInput, TooLarge, Unavailable
from backend.web.request_scope import refusal
from ib_core.errors import IBError

#: For the first line and the headers of a request, from the first byte on or from connecting.
HEAD_SECONDS = 20.0
#: A body may take so long, and a second more for each so many bytes that have come: what arrives
#: at all is waited for, what only trickles is not.
PATIENCE_SECONDS = 20.0
SLOWEST_BYTES_PER_SECOND = 20_000
#: An answer is given the same time to be read, in steps: so much at least in each. The kernel's own
#: buffer is kept small: it takes more only when a third of it is free, which of the usual megabytes
#: a slow reader frees once a minute.
SLOWEST_READER = 5_000
SEND_BUFFER = 128 * 1024
#: Bodies on their way, answers in the making, and bytes held for both. Above, others are asked to
#: come back, rather than everybody to wait.
MOST_ARRIVING = 1000
MOST_WORKING = 300
MOST_HELD = 256 * 1024 * 1024
MOST_PARAMETERS = 100
#: Asked by whoever decides whether to start us anew; must not depend on how many others ask.
ALWAYS = frozenset({"/api/health"})
LATER = {"Retry-After": "5", "Connection": "close"}

#: Whether this request is one of another request's making, which has been counted already.
_inside: ContextVar[bool] = ContextVar("inside a request", default=False)


class Intake:
    """Counts what really arrives, and refuses early."""

    def __init__(self, app: ASGIApp, *, most: int, exceptions: Mapping[str, int]) -> None:
        """Wrap an app.

        Args:
            app: What to protect.
            most: Bytes any body may have.
            exceptions: Other limits, by exact path.
        """
        self._app = app
        self._most = most
        self._exceptions = exceptions
        self.working = self.arriving = self.held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what can be answered now; `Content-Length` may be absent or a lie."""
        if scope["type"] != "http" or _inside.get():
            return await self._app(scope, receive, send)
        most = self._exceptions.get(scope["path"], self._most)
        objection = self._objection(scope, most)
        if objection is not None:
            answer = refusal(objection)
            answer.headers["Connection"] = "close"
            return await answer(scope, receive, send)
        token = _inside.set(True)
        body = _Body(self, scope, receive, most)
        # A stream lasts as long as its sweep, and has limits of its own.
        counted = 0 if scope["path"].endswith("/events") else 1
        self.working += counted
        try:
            await self._app(scope, body.receive, body.before(send))
        finally:
            self.working -= counted
            body.drop()
            _inside.reset(token)

    def _objection(self, scope: Scope, most: int) -> IBError | None:
        if scope.get("query_string", b"").count(b"&") >= MOST_PARAMETERS:
            return InvalidInput(f"A request has at most {MOST_PARAMETERS} query parameters.")
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isdecimal() and int(declared[:20]) > most:
            return TooLarge(_too_large(most), field="body")
        if self.working >= MOST_WORKING and scope["path"] not in ALWAYS:
            return Unavailable(
                f"{MOST_WORKING} requests are being answered already.", hint="Try again shortly."
            )
        return None


class _Body:
    """One request's body as it arrives."""

    def __init__(self, intake: Intake, scope: Scope, receive: Receive, most: int) -> None:
        headers = Headers(scope=scope)
        self._intake = intake
        self._receive = receive
        self._most = most
        self._size = 0
        self._began: float | None = None
        # Without either header there is none, but what an app in this process sends is counted too.
        self._whole = False
        self._announced = (
            headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        )

    async def receive(self) -> Message:
        if self._whole:  # from now on this tells only when the other side is gone
            return await self._receive()
        message = await self._in_time()
        arrived = len(message.get("body", b""))
        self._size += arrived
        self._intake.held += arrived
        # HTTP exceptions: FastAPI passes on no others while it reads a body.
        if self._size > self._most:
            raise HTTPException(413, _too_large(self._most), headers={"Connection": "close"})
        if self._intake.held > MOST_HELD:
            raise HTTPException(503, "Too much is being sent at once; try again.", headers=LATER)
        self._whole = not message.get("more_body", False)
        return message

    async def _in_time(self) -> Message:
        intake, now = self._intake, asyncio.get_running_loop().time()
        if intake.arriving >= MOST_ARRIVING:
            raise HTTPException(503, "Too many are sending at once; try again.", headers=LATER)
        started = self._began = self._began or now
        until = started + PATIENCE_SECONDS + self._size / SLOWEST_BYTES_PER_SECOND
        intake.arriving += 1
        intake.working -= 1
        try:
            async with asyncio.timeout_at(until):
                return await self._receive()
        except TimeoutError:
            raise HTTPException(
                408,
                f"The body took more than {until - started:.0f} seconds to arrive.",
                headers={"Connection": "close"},
            ) from None
        finally:
            intake.arriving -= 1
            intake.working += 1

    def before(self, send: Send) -> Send:
        """Return a `send` that ends the connection of who is answered before having sent all.

        The rest would be waited for, for ever if need be.
        """

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start" and self._announced and not self._whole:
                MutableHeaders(scope=message)["Connection"] = "close"
            await send(message)

        return sending

    def drop(self) -> None:
        self._intake.held -= self._size


def _too_large(most: int) -> str:
    return f"The body is larger than the {most:,} bytes this call takes."


class ImpatientProtocol(H11Protocol):
    """HTTP/1.1 by h11, which takes no headers without end; nor, here, without a deadline.

    uvicorn itself would wait for a request's head for ever, and as long for somebody who does not
    read what was asked for.
    """

    _waiting: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        line = transport.get_extra_info("socket")
        if line is not None:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Go on waiting unless the request's head is complete now."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._waiting is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop_waiting()
        self._stop_watching()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Begin to watch whether an answer is read at all: more has been written than was."""
        super().pause_writing()
        if self._unread is None:
            self._watch()

    def resume_writing(self) -> None:
        """Watch no longer."""
        self._stop_watching()
        super().resume_writing()

    def _watch(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._unread = self.loop.call_later(PATIENCE_SECONDS, self._go_on_if_read, left)

    def _go_on_if_read(self, before: int) -> None:
        read = before - self.transport.get_write_buffer_size()
        if read >= PATIENCE_SECONDS * SLOWEST_READER:
            self._watch()
        else:
            self._unread = None
            self.transport.abort()

    def _stop_watching(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self._waiting = None
        self.transport.close()


FILES_AT_ONCE = 2
LONGEST_NAME = 200
#: A form of ours has a file and a field or two; parts in parts are the file's own business.
MOST_PARTS = 20
MOST_HEADERS = 8
LARGEST_HEADER = 2048
PIECE = 64 * 1024


@dataclass(frozen=True, slots=True)
class Upload:
    """A file as it was sent."""

    content: bytes
    filename: str = ""


_reading: RunVar[CapacityLimiter] = RunVar("uploads that are read")


def reading_in_turns() -> CapacityLimiter:
    """Return whose turn it is to have a file read and stored, each in a thread of its own.

    Each takes seconds of a processor and hundreds of megabytes, and others need threads, too.
    """
    try:
        return _reading.get()
    except LookupError:
        _reading.set(limiter := CapacityLimiter(FILES_AT_ONCE))
        return limiter


async def read_upload(request: Request) -> Upload:
    """Return the file a request carries; the body limit has already been applied."""
    body = await request.body()
    kind = request.headers.get("content-type", "")
    if kind.startswith("multipart/form-data"):
        # Not here: a form may be megabytes, and everybody else's requests share this loop.
        found = await to_thread.run_sync(_from_form, kind, body)
    else:
        found = Upload(body)
    if not found.content:
        raise InvalidInput(
            "The body is empty; send a CSV or JSON file, plain or gzip-compressed.", field="body"
        )
    return found


def _from_form(kind: str, body: bytes) -> Upload:
    boundary = parse_options_header(kind)[1].get(b"boundary", b"")
    form = _Form()
    try:
        parser = MultipartParser(
            boundary,
            {
                "on_part_begin": form.begin,
                "on_header_begin": form.begin_header,
                "on_header_field": form.note_name,
                "on_header_value": form.note_value,
                "on_header_end": form.end_header,
                "on_headers_finished": form.open,
                "on_part_data": form.write,
                "on_part_end": form.close,
            },
            max_header_count=MOST_HEADERS,
            max_header_size=LARGEST_HEADER,
        )
        for start in range(0, len(body), PIECE):
            parser.write(body[start : start + PIECE])
            if form.found is not None:
                return form.found
    except FormParserError as error:
        raise InvalidInput(f"The form cannot be read: {error}.", field="body") from None
    raise InvalidInput("The form holds no file.", field="body")


class _Form:
    """Keeps the first file of a form; other fields are passed over without being kept."""

    def __init__(self) -> None:
        self.found: Upload | None = None
        self._parts = 0
        self._name = self._value = self._disposition = b""
        self._filename: str | None = None
        self._content = bytearray()

    def begin(self) -> None:
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise TooLarge(f"A form has at most {MOST_PARTS} parts.", field="body")
        self._disposition, self._filename = b"", None

    def begin_header(self) -> None:
        self._name = self._value = b""

    def note_name(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def note_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def end_header(self) -> None:
        if self._name.lower() == b"content-disposition":
            self._disposition = self._value

    def open(self) -> None:
        given = parse_options_header(self._disposition)[1].get(b"filename")
        if given is not None and self.found is None:
            self._filename = _printable(given.decode("utf-8", "replace"))[:LONGEST_NAME]

    def write(self, data: bytes, start: int, end: int) -> None:
        if self._filename is not None:
            self._content += data[start:end]

    def close(self) -> None:
        if self._filename is not None and self.found is None:
            self.found = Upload(bytes(self._content), self._filename)


def _printable(name: str) -> str:
    """Return a file's name without what no name of ours may hold."""
    return "".join(character for character in name if character.isprintable()).strip()
