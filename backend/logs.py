"""Logs of every process: for people or as JSON, with ids to search for, and without secrets."""

import json
import logging
import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

from backend.settings import Settings

#: What this request, or this thread of control, is about: `request_id`.
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_here: ContextVar[Mapping[str, Any]] = ContextVar("log_fields", default=_NOTHING)
#: What the whole process is about, whichever thread speaks: a worker trains one shard at a time.
_everywhere: dict[str, Any] = {}

#: Passwords in addresses, tokens and keys in headers, our own tokens wherever they are.
_SECRETS = (
    (re.compile(r"(?<=://)([^\s:/@]*):[^\s@]+(?=@)"), r"\1:***"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]+"), r"\1 ***"),
    (re.compile(r"\beta_[\w-]{8,}"), "eta_***"),
    (
        re.compile(
            r"(?i)(password|passwd|secret|token|cookie)([\"']?\s*[:=]\s*[\"']?)[^\s\"',;&]+"
        ),
        r"\1\2***",
    ),
)


def configure(settings: Settings) -> None:
    """Send everything this process logs to stderr, in the format the settings ask for."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if settings.log_format == "json" else Lines())
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler], force=True)
    # One line for each of our own requests would drown everything else.
    logging.getLogger("httpx").setLevel(logging.WARNING)


@contextmanager
def about(**fields: Any) -> Iterator[None]:
    """Add fields to whatever is logged in the block, by this request or thread."""
    token = _here.set({**_here.get(), **fields})
    try:
        yield
    finally:
        _here.reset(token)


@contextmanager
def process_about(**fields: Any) -> Iterator[None]:
    """Add fields to whatever any thread of this process logs while the block runs."""
    _everywhere.update(fields)
    try:
        yield
    finally:
        for name in fields:
            _everywhere.pop(name, None)


def redact(text: str) -> str:
    """Return the text without what looks like a password, a token or a key."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def _fields() -> dict[str, Any]:
    return {**_everywhere, **_here.get()}


class Lines(logging.Formatter):
    """One line for a person; ids stand in brackets at its end."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        ids = " ".join(f"{name}={_short(value)}" for name, value in _fields().items())
        return redact(super().format(record)) + (f" [{ids}]" if ids else "")


def _short(value: Any) -> str:
    if isinstance(value, list) and len(value) > 4:
        return f"{value[0]}..{value[-1]}({len(value)})"
    return str(value).replace(" ", "")


class JsonLines(logging.Formatter):
    """One JSON object a line, for machines."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the object."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact(record.getMessage()),
            **_fields(),
        }
        if record.exc_info:
            line["traceback"] = redact(self.formatException(record.exc_info))
        return json.dumps(line, default=str, ensure_ascii=False)
