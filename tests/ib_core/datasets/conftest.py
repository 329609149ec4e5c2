import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ib_core.datasets import DATASETS, Content, bundled, load_dataset
from ib_core.datasets.base import Pieces

Rolls = list[np.ndarray[Any, Any]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder that `data_dir()` points to."""
    path = tmp_path / "data"
    path.mkdir()
    monkeypatch.setenv("ETASCOPE_DATA_DIR", str(path))
    return path


@pytest.fixture(autouse=True)
def _talk_to_loopback_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(variable, "127.0.0.1")


@pytest.fixture
def supplied() -> Path:
    """The folder of real data sets, where there is one."""
    setting = os.environ.get("ETASCOPE_DATA_DIR")
    if not setting:
        pytest.skip("set ETASCOPE_DATA_DIR to a folder with the paper's data sets")
    return Path(setting)


@pytest.fixture
def need(supplied: Path):
    """Load one real data set, or skip if this machine does not have it."""

    def load(name: str):
        if not DATASETS[name].present():
            pytest.skip(f"{supplied} does not hold {name}")
        return load_dataset(name)

    return load


@dataclass(frozen=True)
class Music:
    """A few pieces, as every layout must give them back."""

    content: Content
    train: Rolls
    valid: Rolls
    test: Rolls

    def parts(self) -> tuple[Rolls, Rolls, Rolls]:
        return self.train, self.valid, self.test

    def as_npz(self) -> dict[str, np.ndarray[Any, Any]]:
        rolls = [roll for part in self.parts() for roll in part]
        codes = [code for code, part in enumerate(self.parts()) for _ in part]
        return {
            "roll": np.concatenate(rolls),
            "lengths": np.array([len(roll) for roll in rolls], np.int32),
            "split": np.array(codes, np.int8),
        }

    def as_chords(self) -> dict[str, list[list[tuple[int, ...]]]]:
        return {
            name: [[tuple((np.flatnonzero(f) + 21).tolist()) for f in roll] for roll in part]
            for name, part in zip(("train", "valid", "test"), self.parts(), strict=True)
        }


@pytest.fixture(scope="session")
def music() -> Music:
    composed = bundled.compose().train
    assert isinstance(composed, Pieces)
    rolls = [piece.numpy() for piece in composed]
    train, valid, test = rolls[:5], rolls[5:7], rolls[7:10]

    def pieces(part: Rolls) -> Pieces:
        lengths = torch.tensor([len(roll) for roll in part])
        return Pieces(torch.from_numpy(np.concatenate(part)), lengths)

    return Music(Content(pieces(train), pieces(test), None), train, valid, test)


@dataclass
class FileServer:
    """A real HTTP server on loopback whose faults a test can choose."""

    address: str
    files: dict[str, bytes] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    cuts: list[int] = field(default_factory=list)  # bytes to send before hanging up, per answer
    statuses: list[int] = field(default_factory=list)  # answers to give before any file
    etag: str | None = '"v1"'
    ranges: bool = True

    def asked(self, header: str) -> list[str | None]:
        return [headers.get(header) for _, headers in self.requests]


class Handler(BaseHTTPRequestHandler):
    server_state: FileServer

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        state = self.server_state
        state.requests.append((self.path, dict(self.headers)))
        content = state.files.get(self.path)
        if state.statuses or content is None:
            self.send_error(state.statuses.pop(0) if state.statuses else 404)
            return
        start = self._start()
        if start >= len(content):
            self.send_error(416)
            return
        self._send(content, start)

    def _start(self) -> int:
        state, wanted = self.server_state, self.headers.get("Range")
        if not (wanted and state.ranges and self.headers.get("If-Range") == state.etag):
            return 0
        return int(wanted.removeprefix("bytes=").removesuffix("-"))

    def _send(self, content: bytes, start: int) -> None:
        state, size = self.server_state, len(content)
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
        if state.etag:
            self.send_header("ETag", state.etag)
        self.send_header("Content-Length", str(size - start))
        self.end_headers()
        stop = start + state.cuts.pop(0) if state.cuts else size
        self.wfile.write(content[start:stop])


@pytest.fixture
def server() -> Iterator[FileServer]:
    state = FileServer(address="")
    handler = type("StatefulHandler", (Handler,), {"server_state": state})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        state.address = f"http://127.0.0.1:{httpd.server_port}"
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield state
        httpd.shutdown()
        thread.join()
