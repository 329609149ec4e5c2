"""One file over HTTP: resumed after a cut, bounded in size, complete or absent."""

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ib_core.datasets.reading import MAX_BYTES, refuse

if TYPE_CHECKING:  # httpx is loaded only by those who download
    import httpx

FRUITLESS_TRIES = 4
FIRST_PAUSE = 0.5

_WORTH_ANOTHER_TRY = frozenset({408, 425, 429, 500, 502, 503, 504})
_RANGE_NOT_SATISFIABLE = 416
_PARTIAL_CONTENT = 206


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a download has come; ``total`` is None where the server does not say."""

    file: str
    received: int
    total: int | None


OnProgress = Callable[[Progress], None]


def ignore(_progress: Progress) -> None:
    """Report to nobody."""


class Unreachable(Exception):
    """No address gave the file; the message names the last host asked, never its whole address."""


def download(urls: Sequence[str], target: Path, on_progress: OnProgress = ignore) -> None:
    """Put the file at ``target``, from the first address that has it.

    What arrives is kept beside it as ``.part`` until it is whole; a later call goes on from there
    if the server still has the same version, and starts again otherwise. The caller must see to
    it that no two calls share a target (a lock).

    Raises:
        Unreachable: If no address could be reached or had the file.
        CorruptData: If more comes than any data set here holds.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    failures = []
    for url in urls:
        try:
            return _download_from(url, _Part(target, url), on_progress)
        except Unreachable as failure:
            failures.append(failure)
    raise failures[-1]


class _Part:
    """The unfinished file, and a note of the version on the server that it is a part of."""

    def __init__(self, target: Path, url: str) -> None:
        self.target, self.url = target, url
        self.path = target.with_name(f"{target.name}.part")
        self._note = target.with_name(f"{target.name}.part.json")

    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def resume_headers(self) -> dict[str, str]:
        """Return what to ask for: the rest of the same version, else everything."""
        try:
            note = json.loads(self._note.read_text("utf-8"))
            version = note["version"] if note["url"] == self.url else None
        except (OSError, ValueError, KeyError, TypeError):
            version = None
        if not version or not self.size():
            return {}
        return {"Range": f"bytes={self.size()}-", "If-Range": str(version)}

    def describe(self, response: "httpx.Response") -> None:
        etag = response.headers.get("ETag", "")
        # HTTP lets only strong tags vouch for bytes; the date is the next best thing.
        version = etag if etag.startswith('"') else response.headers.get("Last-Modified")
        self._note.write_text(json.dumps({"url": self.url, "version": version}), "utf-8")

    def finish(self) -> None:
        os.replace(self.path, self.target)
        self._note.unlink(missing_ok=True)

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)


def _download_from(url: str, part: _Part, on_progress: OnProgress) -> None:
    import httpx

    host = urlsplit(url).hostname or url
    fruitless, furthest = 0, part.size()
    timeout = httpx.Timeout(30.0, connect=10.0)
    with httpx.Client(follow_redirects=True, timeout=timeout) as client:
        while True:
            try:
                return _attempt(client, part, on_progress)
            except httpx.HTTPStatusError as error:
                status = error.response.status_code
                reason = f"{host} answered HTTP {status}"
                if status not in _WORTH_ANOTHER_TRY:
                    raise Unreachable(reason) from error
            except (httpx.TransportError, httpx.TooManyRedirects) as error:
                reason = f"Could not reach {host}: {str(error) or type(error).__name__}"
            # A line that keeps breaking but brings something each time is worth the patience.
            fruitless = 0 if part.size() > furthest else fruitless + 1
            furthest = max(furthest, part.size())
            if fruitless >= FRUITLESS_TRIES:
                raise Unreachable(reason)
            time.sleep(FIRST_PAUSE * 2 ** max(fruitless - 1, 0))


def _attempt(client: "httpx.Client", part: _Part, on_progress: OnProgress) -> None:
    held = part.size()
    # "identity", because a range of a compressed answer is no range of the file.
    headers = {"Accept-Encoding": "identity", **part.resume_headers()}
    with client.stream("GET", part.url, headers=headers) as response:
        start = _first_byte(response, part, held)
        response.raise_for_status()
        _receive(response, part, start, on_progress)
    part.finish()


def _first_byte(response: "httpx.Response", part: _Part, held: int) -> int:
    """Return where in the file the answer begins: where the part on disk ends, or 0."""
    import httpx

    if response.status_code not in (_PARTIAL_CONTENT, _RANGE_NOT_SATISFIABLE):
        return 0
    resumes = response.headers.get("Content-Range", "").startswith(f"bytes {held}-")
    if response.status_code == _PARTIAL_CONTENT and resumes:
        return held
    part.discard()  # so that the next try asks for the whole file
    raise httpx.RemoteProtocolError("the server sent another range than was asked for")


def _receive(response: "httpx.Response", part: _Part, start: int, on_progress: OnProgress) -> None:
    announced = response.headers.get("Content-Length", "")
    total = start + int(announced) if announced.isdecimal() else None
    received = start
    if start == 0:
        part.discard()  # before the note, lest a crash leave old bytes under a new version
        part.describe(response)
    with part.path.open("ab" if start else "wb") as file:
        # No chunk size: httpx would collect whole chunks, and a cut would lose what it had so far.
        for chunk in response.iter_raw():
            received += len(chunk)
            if max(received, total or 0) > MAX_BYTES:
                break
            file.write(chunk)
            on_progress(Progress(part.target.name, received, total))
        file.flush()
        os.fsync(file.fileno())
    if max(received, total or 0) > MAX_BYTES:
        part.discard()
        refuse(part.target, f"the server sends more than {MAX_BYTES >> 20} MiB")
