"""What a web process does without, and what a container's engine is told about it."""

import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from backend.operations.web_process import is_healthy

ROOT = Path(__file__).parents[3]
CODE = """
from backend.operations.web_process import stay_small
stay_small()
import pyarrow, plotly.graph_objects as go
assert pyarrow.array([1.5, None]).null_count == 1
assert go.Figure(data=[{"type": "scatter", "x": [1], "y": [2]}]).to_json()
try:
    import pandas
except ImportError:
    print("none")
"""


def test_exports_and_figures_do_without_pandas():
    command = [sys.executable, "-c", CODE]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "none"


OPTIMIZERS = """
from backend.operations.web_process import stay_small
stay_small()
from ib_core.methods import find_method
print(find_method("torch.optim.SGD(momentum=0.9)").name)
find_method("torch.optim.SGD(momentum=-1)")
"""


def test_an_optimizers_options_are_tried_in_a_web_process():
    # torch looks for pandas when its first optimizer is made, and no optimizer came of it.
    command = [sys.executable, "-c", OPTIMIZERS]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.stdout.strip() == "torch.optim.SGD(momentum=0.9)"
    assert "InvalidSpec: torch.optim.SGD(momentum=-1) could not be made" in done.stderr


class Answer(BaseHTTPRequestHandler):
    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield str(server.server_port)
        server.shutdown()


def test_a_web_process_is_healthy_while_it_answers(
    port: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_healthy(port)
    monkeypatch.setattr(Answer, "status", 503)
    assert not is_healthy(port)
    assert not is_healthy("1")
