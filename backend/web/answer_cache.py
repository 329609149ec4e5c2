"""Answers that cost time to make, kept until what they tell has changed."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock

from fastapi import Request, Response

from backend.schemas import Output

MOST_BYTES = 64 * 1024 * 1024


class AnswerCache:
    """The most recently used answers, as bytes; safe for threads."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._size = 0
        self._answers: OrderedDict[Hashable, bytes] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> bytes | None:
        """Return an answer, if it is there."""
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
            return self._answers.get(key)

    def put(self, key: Hashable, answer: bytes) -> None:
        """Keep an answer, and forget the oldest ones beyond the size."""
        with self._lock:
            self._size += len(answer) - len(self._answers.pop(key, b""))
            self._answers[key] = answer
            while self._size > self._most and len(self._answers) > 1:
                self._size -= len(self._answers.popitem(last=False)[1])


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
    key = (request.url.path, request.url.query, version)
    body = cache.get(key)
    if body is None:
        body = make().model_dump_json().encode()
        cache.put(key, body)
    return Response(body, media_type="application/json", headers=headers)
