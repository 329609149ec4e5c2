"""Runs logged as they happen: everything is on disk first, and sent whenever the service is there.

    with client.run(study="Tuning", task="cifar", method="adamw", lr=1e-3, seed=1) as run:
        for step, batch in enumerate(batches):
            run.log(step, train_loss=train(batch))
        run.finish(train_loss=loss)

A run has a key of its own and its points have numbers, so that nothing is stored twice however
often it is sent.

Requests about training that happens elsewhere: cells, live runs, imports, as values.
"""

import contextlib
import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

from pydantic import ValidationError

from backend.client.cells import (
    FLUSH_SECONDS,
    MOST_AT_ONCE,
    Log,
    agent_name,
    patiently,
    result_of,
)
from backend.client.requests import ApiError, Call, Sender, ServerAway, sends
from backend.schemas import (
    CellAnswer,
    CellClaim,
    CellClaimed,
    CellPoint,
    CellRead,
    CellReport,
    CellResult,
    ImportPreview,
    ImportRead,
    RunCreate,
    TrialState,
)

if TYPE_CHECKING:
    from backend.client import Client

#: What `calls` hands on: the requests themselves.
__all__ = ["claim_cell", "import_runs", "open_run", "preview_import", "report_cell"]

log = logging.getLogger("etascope.runs")

#: How long the end of a run waits for a service that is away; what is left stays on disk.
LAST_SECONDS = 10.0
#: A file of another machine or container, whose processes nobody can ask for, has ended when silent
#: so long.
SILENT_SECONDS = 24 * 3600.0
RUNNING = (TrialState.QUEUED, TrialState.RUNNING)


def default_spool() -> Path:
    """Return where runs are kept until they are sent."""
    from platformdirs import user_state_path

    return user_state_path("etascope") / "runs"


class Run:
    """A run that is logged live; leaving its block ends it."""

    def __init__(
        self,
        client: "Client",
        run: RunCreate,
        *,
        spool: Path | None = None,
        flush_seconds: float = FLUSH_SECONDS,
    ) -> None:
        self._client = client
        self._log = Log()
        self._last: dict[str, float | None] = {}
        self._ended = threading.Event()
        self._sent: _Sent | None = None
        self._turn = threading.Lock()
        self._before_end: list[Callable[[], None]] = []
        folder = spool or default_spool()
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{run.key}.jsonl"
        self._file = self.path.open("x", encoding="utf-8")
        self._run = run
        self._write({"run": run.model_dump(), **_process(os.getpid())})
        self._pause = flush_seconds
        self._thread = threading.Thread(target=self._beat, name="run", daemon=True)
        self._thread.start()

    @property
    def trial_id(self) -> int | None:
        """The run's trial, once the service has heard of it."""
        return self._sent.trial_id if self._sent else None

    def log(self, step: int, *, epoch: float = 0.0, **losses: float | None) -> None:
        """Keep a point: on disk now, at the service within seconds."""
        with self._turn:
            point = self._log.add(step, epoch, losses)
            self._last |= losses
            if point is not None:
                self._write({"point": point.model_dump()})

    def before_end(self, action: Callable[[], None]) -> None:
        """Have something done when the run ends: what holds points back logs them then."""
        self._before_end.append(action)

    def finish(self, *, outcome: str | None = None, **result: Any) -> None:
        """End the run; without losses the last ones logged count."""
        while self._before_end and not self._ended.is_set():
            with contextlib.suppress(ValueError):  # later steps were logged by hand
                self._before_end.pop()()
        more = {name: result.pop(name, None) for name in ("seconds", "error", "diverged_at_step")}
        with self._turn:
            if self._ended.is_set():
                return
            self._ended.set()
            found = result_of(self._last | result, outcome, **more)
            self._write({"result": found.model_dump()})
            self._file.close()
        self._thread.join()
        try:
            patiently(lambda: self._deliver(found), seconds=LAST_SECONDS)
        except (ServerAway, ApiError, OSError) as error:
            log.warning("The run stays in %s until `etascope sync`: %s", self.path, error)

    def _deliver(self, result: CellResult) -> None:
        if self.path.exists():
            send_file(self._client, self.path)
        else:  # another machine's `sync` has taken it for dead
            _Sent(self._client, self._run).send(self._log.points, result)

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line, allow_nan=False) + "\n")
        self._file.flush()

    def _beat(self) -> None:
        while not self._ended.wait(self._pause):
            try:
                with self._turn:
                    points = list(self._log.points)
                self._sent = self._sent or _Sent(self._client, self._run)
                self._sent.send(points)
            except ServerAway:
                continue
            except ApiError as error:
                if self._sent is not None or error.status >= 500:  # else it was said before
                    log.warning("The service refuses the run for now: %s", error)
                self._sent = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.finish()
        else:
            self.finish(outcome="failed", error=f"{kind.__name__}: {error}"[:10_000])


class _Sent:
    """What the service has of a run."""

    def __init__(self, client: "Client", run: RunCreate) -> None:
        self._client = client
        self._cell = client.open_run(run)
        self._count = self._cell.points
        self.trial_id = self._cell.trial_id
        self.ended = self._cell.state not in RUNNING

    def send(self, points: list[CellPoint], result: CellResult | None = None) -> None:
        """Send what the service has not got; a lease that was lost is asked for again next time."""
        if self.ended:
            return
        while True:
            piece = points[self._count : self._count + MOST_AT_ONCE]
            more = self._count + len(piece) < len(points)
            ends = result is not None and not more
            last: dict[str, Any] = {"result": result} if ends else {}
            report = CellReport(lease=self._cell.lease, start=self._count, points=piece, **last)
            answer = self._client.report_cell(self._cell.sweep_id, self.trial_id, report)
            if not answer.held and not (answer.yours and last):
                raise ApiError(409, "conflict", "The run was silent for too long.")
            self._count += len(piece)
            if not more:
                return


def new_run(**settings: Any) -> RunCreate:
    """Return what a run is, with a key of its own.

    Raises:
        ValueError: In one sentence, what is wrong with a setting.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    try:
        return RunCreate.model_validate({"key": str(uuid4()), "agent": agent_name(), **given})
    except ValidationError as error:
        raise ValueError(_first_fault(error)) from None


@dataclass
class Synced:
    """What became of the runs on disk.

    Attributes:
        sent: How many were sent.
        kept: How many are still being written.
        refused: A sentence for each that could not be sent, with its file and the reason.
    """

    sent: int = 0
    kept: int = 0
    refused: list[str] = field(default_factory=list)


def send_spooled(
    client: "Client", folder: Path | None = None, *, silent_seconds: float = SILENT_SECONDS
) -> Synced:
    """Send the runs that are on disk; one that cannot be sent keeps no other waiting.

    Raises:
        ServerAway: Nobody answers.
        ApiError: The service does not know who asks; it would refuse the others as well.
    """
    found = Synced()
    for path in spooled(folder):
        try:
            sent = send_file(client, path, silent_seconds=silent_seconds)
        except FileNotFoundError:
            continue  # somebody else has sent it meanwhile
        except ApiError as error:
            if error.status == 401:
                raise
            found.refused.append(f"{path}: {error}")
        except (OSError, ValueError) as error:
            found.refused.append(f"{path}: {error}")
        else:
            found.sent += sent
            found.kept += not sent
    return found


def send_file(client: "Client", path: Path, *, silent_seconds: float = SILENT_SECONDS) -> bool:
    """Send a run that is on disk, and delete it; False if its program still writes it.

    Raises:
        ValueError: The file holds no run.
    """
    run, points, result = _read(path)
    if result is None:
        if not _is_dead(path, silent_seconds):
            return False
        result = CellResult(outcome="failed", error="Its program ended without saying how.")
    _Sent(client, run).send(points, result)
    path.unlink(missing_ok=True)
    return True


def spooled(folder: Path | None = None) -> Iterator[Path]:
    """Yield the runs that are on disk, the oldest first."""
    ages: dict[Path, float] = {}
    for path in (folder or default_spool()).glob("*.jsonl"):
        with contextlib.suppress(FileNotFoundError):
            ages[path] = path.stat().st_mtime
    yield from sorted(ages, key=lambda path: ages[path])


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield what was written whole; the last line of a killed program may not be."""
    for line in path.read_text("utf-8", "replace").splitlines():
        try:
            found = json.loads(line)
        except ValueError:
            return
        if not isinstance(found, dict):
            return
        yield found


def _read(path: Path) -> tuple[RunCreate, list[CellPoint], CellResult | None]:
    lines = list(_lines(path))
    if not lines or "run" not in lines[0]:
        empty = path.stat().st_size == 0
        raise ValueError("It is empty and can be deleted." if empty else "It holds no run.")
    try:
        run = RunCreate.model_validate(lines[0]["run"])
        points = [CellPoint.model_validate(one["point"]) for one in lines if "point" in one]
        ends = [CellResult.model_validate(one["result"]) for one in lines if "result" in one]
    except ValidationError as error:
        raise ValueError(f"It holds no run of ours: {_first_fault(error)}") from None
    return run, points, ends[-1] if ends else None


def _first_fault(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}."


def _process(pid: int) -> dict[str, Any]:
    """Return what tells a process of this machine from any other, here or elsewhere.

    Containers may share a host's name and each have a process 1; and ids are given out again. What
    the machine does not tell is None.
    """
    try:
        told: dict[str, Any]
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("utf-8").strip()
        began = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        told = {"namespace": f"{boot} {os.readlink('/proc/self/ns/pid')}", "began": int(began[19])}
    except (OSError, ValueError, IndexError):
        told = {"namespace": None, "began": None}
    return {"pid": pid, "host": socket.gethostname(), **told}


def _is_dead(path: Path, silent_seconds: float) -> bool:
    """Return whether the program that wrote a run is gone; where nobody can tell, silence does."""
    first, here = next(_lines(path)), _process(os.getpid())
    pid = first.get("pid")
    near = all(first.get(name) == here[name] for name in ("host", "namespace"))
    if not near or not isinstance(pid, int) or pid < 1:
        return time.time() - path.stat().st_mtime > silent_seconds
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        return False
    return bool(first.get("began") != _process(pid)["began"])


_RAW = {"Content-Type": "application/octet-stream"}


def claim_cell(sweep_id: int, body: CellClaim) -> Call[CellClaimed]:
    """Claim the next waiting cell of a sweep."""
    return Call("POST", f"/api/sweeps/{sweep_id}/cells", CellClaimed, json=body.model_dump())


def report_cell(sweep_id: int, trial_id: int, body: CellReport) -> Call[CellAnswer]:
    """Report on a cell."""
    path = f"/api/sweeps/{sweep_id}/cells/{trial_id}"
    return Call("POST", path, CellAnswer, json=body.model_dump(exclude_unset=True))


def open_run(body: RunCreate) -> Call[CellRead]:
    """Begin to log a run, or go on with it."""
    return Call("POST", "/api/runs", CellRead, json=body.model_dump())


def import_runs(
    content: bytes | Iterable[bytes],
    *,
    filename: str = "",
    study_id: int | None = None,
    name: str | None = None,
    reuse: bool = False,
) -> Call[ImportRead]:
    """Bring runs made elsewhere into a study, a new one unless an id is given or one reused."""
    query = {
        "study_id": study_id,
        "name": name,
        "filename": filename or None,
        "reuse": "true" if reuse else None,
    }
    return Call("POST", "/api/import", ImportRead, query=query, content=content, headers=_RAW)


def preview_import(content: bytes | Iterable[bytes]) -> Call[ImportPreview]:
    """What an import would bring; nothing is stored."""
    query = {"preview": "true"}
    return Call("POST", "/api/import", ImportPreview, query=query, content=content, headers=_RAW)


class ElsewhereCalls(Sender):
    """What needs no more than to be sent."""

    claim_cell = sends(claim_cell)
    report_cell = sends(report_cell)
    open_run = sends(open_run)
    preview_import = sends(preview_import)
