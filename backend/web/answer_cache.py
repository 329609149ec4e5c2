"""Answers that cost time to make, kept until what they tell has changed."""

import zlib
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock

from fastapi import Request, Response

from backend.schemas import Output

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
