"""Logs: ids to search for, JSON on request, and never a secret."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from backend import settings
from backend.settings import Settings

log = logging.getLogger("etascope.test")


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """What a process configured for JSON writes to stderr."""
    stream = io.StringIO()
    root = logging.getLogger()
    before = (root.level, root.handlers[:])
    monkeypatch.setattr("sys.stderr", stream)
    settings.configure_logs(Settings(log_format="json"))
    yield stream
    root.setLevel(before[0])
    root.handlers[:] = before[1]


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_an_object_with_the_ids_it_is_about(written: io.StringIO) -> None:
    with settings.process_about(shard_id=3, trial_ids=[5, 6]), settings.about(request_id="abc"):
        log.info("stored %d", 2)
    log.info("done")
    first, second = lines(written)
    assert (first["message"], first["level"]) == ("stored 2", "info")
    assert (first["request_id"], first["shard_id"], first["trial_ids"]) == ("abc", 3, [5, 6])
    assert set(second) == {"time", "level", "logger", "message"}


def test_a_traceback_is_one_line(written: io.StringIO) -> None:
    try:
        raise ValueError("first\nsecond")
    except ValueError:
        log.exception("it broke")
    (found,) = lines(written)
    assert "ValueError: first" in str(found["traceback"])


def test_ids_of_one_request_do_not_reach_another_thread_but_a_shards_do() -> None:
    formatter = settings.Lines()
    record = logging.LogRecord("x", logging.INFO, "", 1, "hello", (), None)
    with settings.about(request_id="abc"), settings.process_about(shard_id=7):
        import threading

        seen: list[str] = []
        thread = threading.Thread(target=lambda: seen.append(formatter.format(record)))
        thread.start()
        thread.join()
    assert seen[0].endswith("hello [shard_id=7]")


@pytest.mark.parametrize(
    "secret",
    [
        "postgresql://etascope:hunter2@database/etascope",
        "redis://:hunter2@broker:6379/0",
        "Authorization: Bearer hunter2",
        "authorization=Basic hunter2",
        'body {"password": "hunter2"}',
        "password=hunter2&x=1",
        "Cookie: hunter2",
        "the token eta_hunter2hunter2",
    ],
)
def test_secrets_are_never_written(written: io.StringIO, secret: str) -> None:
    log.warning("it came with %s", secret)
    try:
        raise RuntimeError(secret)
    except RuntimeError:
        log.exception("and broke")
    assert "it came with" in written.getvalue()
    assert "hunter2" not in written.getvalue()
