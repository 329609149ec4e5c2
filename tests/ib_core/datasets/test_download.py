import os
from pathlib import Path

import httpx
import pytest

from ib_core.datasets import raw_files as module
from ib_core.datasets.raw_files import Progress, Unreachable, download
from ib_core.errors import CorruptData

CONTENT = os.urandom(300_000)


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.001)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "file.bin"


def left_over(target: Path) -> set[str]:
    return {path.name for path in target.parent.iterdir()} - {target.name}


def test_a_file_arrives_whole_with_progress(server, target: Path):
    server.files["/f"] = CONTENT
    seen: list[Progress] = []
    download([f"{server.address}/f"], target, seen.append)
    assert target.read_bytes() == CONTENT
    assert seen[-1] == Progress("file.bin", len(CONTENT), len(CONTENT))
    assert [step.received for step in seen] == sorted(step.received for step in seen)
    assert not left_over(target)


def test_a_cut_connection_is_resumed_where_it_broke(server, target: Path):
    server.files["/f"] = CONTENT
    server.cuts = [100_000, 50_000]
    download([f"{server.address}/f"], target)
    assert target.read_bytes() == CONTENT
    assert server.asked("Range") == [None, "bytes=100000-", "bytes=150000-"]
    assert server.asked("If-Range") == [None, '"v1"', '"v1"']


def test_a_later_call_goes_on_from_what_an_earlier_one_left(server, target: Path):
    server.files["/f"] = CONTENT
    server.cuts = [100_000]

    def interrupt(step: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download([f"{server.address}/f"], target, interrupt)
    kept = (target.parent / "file.bin.part").stat().st_size
    assert 0 < kept < len(CONTENT)
    server.cuts = []
    download([f"{server.address}/f"], target)
    assert target.read_bytes() == CONTENT
    assert server.asked("Range")[-1] == f"bytes={kept}-"


def test_a_file_that_changed_meanwhile_is_started_again(server, target: Path):
    server.files["/f"] = b"old" * 1000
    server.cuts = [900]

    def renew(_: Progress) -> None:
        server.files["/f"], server.etag = CONTENT, '"v2"'

    download([f"{server.address}/f"], target, renew)
    assert target.read_bytes() == CONTENT


@pytest.mark.parametrize(
    "weakness", [{"ranges": False}, {"etag": None}, {"etag": 'W/"weak"'}], ids=str
)
def test_a_server_that_cannot_resume_is_asked_for_everything(server, target: Path, weakness):
    for name, value in weakness.items():
        setattr(server, name, value)
    server.files["/f"] = CONTENT
    server.cuts = [100_000]
    download([f"{server.address}/f"], target)
    assert target.read_bytes() == CONTENT


def test_a_part_longer_than_the_file_is_thrown_away(server, target: Path):
    server.files["/f"] = CONTENT
    server.cuts = [100_000]

    def shrink(_: Progress) -> None:
        server.files["/f"] = CONTENT[:10]  # with the same tag: a server at fault

    download([f"{server.address}/f"], target, shrink)
    assert target.read_bytes() == CONTENT[:10]


def test_a_busy_server_is_asked_again(server, target: Path):
    server.files["/f"] = CONTENT
    server.statuses = [503, 429, 500]
    download([f"{server.address}/f"], target)
    assert target.read_bytes() == CONTENT


def test_patience_ends(server, target: Path):
    server.files["/f"] = CONTENT
    server.statuses = [503] * 50
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1 answered HTTP 503"):
        download([f"{server.address}/f"], target)
    assert len(server.requests) == module.FRUITLESS_TRIES
    assert not target.exists()


def test_a_line_that_breaks_often_but_brings_something_is_used(server, target: Path):
    server.files["/f"] = CONTENT
    server.cuts = [20_000] * 14
    download([f"{server.address}/f"], target)
    assert target.read_bytes() == CONTENT
    assert len(server.requests) == 15


def test_the_next_address_is_tried(server, target: Path):
    server.files["/second"] = CONTENT
    download([f"{server.address}/first", f"{server.address}/second"], target)
    assert target.read_bytes() == CONTENT
    assert [path for path, _ in server.requests] == ["/first", "/second"]


def test_a_part_from_one_address_is_not_continued_from_another(server, target: Path):
    server.files |= {"/first": b"x" * 200_000, "/second": CONTENT}
    server.cuts = [100_000]

    def vanish(_: Progress) -> None:
        server.files.pop("/first", None)

    download([f"{server.address}/first", f"{server.address}/second"], target, vanish)
    assert target.read_bytes() == CONTENT


def test_nobody_listening_names_the_host_and_not_the_password(target: Path):
    with pytest.raises(Unreachable, match=r"Could not reach 127\.0\.0\.1") as caught:
        download(["http://user:secret@127.0.0.1:9/f"], target)
    assert "secret" not in str(caught.value)


def test_an_endless_file_is_given_up_and_removed(server, target: Path, monkeypatch):
    monkeypatch.setattr(module, "MAX_BYTES", 200_000)
    server.files["/f"] = CONTENT
    with pytest.raises(CorruptData, match=r"file\.bin"):
        download([f"{server.address}/f"], target)
    assert list(target.parent.iterdir()) == []


def test_a_compressed_answer_is_never_asked_for(server, target: Path):
    server.files["/f"] = CONTENT
    download([f"{server.address}/f"], target)
    assert server.asked("Accept-Encoding") == ["identity"]
    assert httpx.Client().headers["Accept-Encoding"] != "identity"  # what would be sent otherwise
