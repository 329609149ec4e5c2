"""`etascope agent` trains a sweep's cells with any command; `etascope sync` sends what waited."""

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from ib_core.errors import InvalidSpec

if TYPE_CHECKING:  # httpx and pydantic, which `--help` need not wait for
    from backend.client import Cell, Client

#: A line of a log longer than this is no line of JSON that anybody means.
LONGEST_LINE = 100_000
#: What a command says last is its cell's error.
LAST_LINES = 20
#: Between the polite signal and the one that cannot be refused.
GRACE_SECONDS = 10.0
LOOK_SECONDS = 0.2
LOSSES = (
    *("train_loss", "test_loss", "train_accuracy", "test_accuracy"),
    *("validation_loss", "validation_accuracy"),
)
OUTCOMES = (None, "completed", "diverged", "failed")
#: What a command's words may hold in braces.
NAMES = ("lr", "seed", "method", "clip", "epochs", "batch_size", "task", "trial", "log")

Server = Annotated[
    str | None, typer.Option(envvar="ETASCOPE_SERVER", help="Default: the one here.")
]
Token = Annotated[
    str | None,
    typer.Option(envvar="ETASCOPE_TOKEN", help="Needed where accounts are on; scope agent."),
]


def agent(
    sweep: Annotated[int, typer.Argument(help="A sweep submitted with where agents.", min=1)],
    command: Annotated[
        list[str],
        typer.Argument(help="After --, with {lr}, {seed}, {method} and so on in its words."),
    ],
    parallel: Annotated[int, typer.Option(help="Commands at a time.", min=1, max=256)] = 1,
    time_limit: Annotated[
        float, typer.Option(help="Seconds a cell may take; 0: no limit.", min=0)
    ] = 0,
    log_file: Annotated[
        str | None,
        typer.Option(help="JSON lines are here, not on standard output, as logs/{trial}.jsonl."),
    ] = None,
    cells: Annotated[int, typer.Option(help="Stop after so many; 0: when none is left.")] = 0,
    wait: Annotated[bool, typer.Option(help="Wait for cells that others hold.")] = True,
    server: Server = None,
    token: Token = None,
) -> None:
    """Train the cells of a sweep with a command, and report what it prints.

    Lines of JSON such as {"step": 10, "train_loss": 0.5} are its log; the last one is the result,
    and may say {"outcome": "diverged"}. Exit code 0 is success, anything else is tried again.
    """
    from backend.cli.submit import connect, sentences

    for word in command:
        _check_word(word)
    job = _Job(command, time_limit, log_file, cells or None)
    with sentences(), connect(server, token) as client, _stopping(job):
        threads = [
            threading.Thread(target=job.work, args=(client, sweep, number, wait))
            for number in range(parallel)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        job.raise_fault()
    typer.echo(f"{job.done} cells finished, {job.broken} broke, {job.dropped} were taken back.")
    if job.stopped:
        raise typer.Exit(130)


def sync(
    folder: Annotated[Path | None, typer.Argument(help="Where runs wait; default: yours.")] = None,
    silent_hours: Annotated[
        float, typer.Option(help="A run of another machine has ended after such a silence.", min=0)
    ] = 24,
    server: Server = None,
    token: Token = None,
) -> None:
    """Send runs that were logged while the service was away; nothing is stored twice.

    One that cannot be sent is named and keeps no other waiting; the exit code is then 1.
    """
    from backend.cli.submit import connect, sentences
    from backend.client import send_spooled

    with sentences(), connect(server, token) as client:
        found = send_spooled(client, folder, silent_seconds=3600 * silent_hours)
    running = f"; {found.kept} are still being written" if found.kept else ""
    typer.echo(f"{found.sent} runs sent{running}.")
    for sentence in found.refused:
        typer.echo(f"Not sent: {sentence}", err=True)
    if found.refused:
        raise typer.Exit(1)


def _check_word(word: str) -> None:
    rest = word
    for name in NAMES:
        rest = rest.replace("{" + name + "}", "")
    settings = [part.split("}")[0] for part in rest.split("{settings.")[1:]]
    for name in settings:
        rest = rest.replace("{settings." + name + "}", "")
    if "{" in rest and "}" in rest.split("{", 1)[1] and '"' not in rest:
        known = ", ".join("{" + name + "}" for name in NAMES)
        raise InvalidSpec(f"{word!r} holds braces that mean nothing; known are {known}.")


@contextlib.contextmanager
def _stopping(job: "_Job") -> Iterator[None]:
    """Give cells back when this process is told to end."""

    def stop(_signal: int, _frame: object) -> None:
        job.stop()

    before = {one: signal.signal(one, stop) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


@dataclass
class _Job:
    """What all threads of one agent share."""

    command: list[str]
    time_limit: float
    log_file: str | None
    left: int | None
    done: int = 0
    broken: int = 0
    dropped: int = 0
    stopped: bool = False
    fault: Exception | None = None
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def stop(self) -> None:
        self.stopped = True

    def raise_fault(self) -> None:
        if self.fault is not None:
            raise self.fault

    def work(self, client: "Client", sweep: int, number: int, wait: bool) -> None:
        """Train cell after cell, until none is left or the agent is to stop."""
        from backend.client import agent_name

        name = f"{agent_name()}.{number}"
        found = client.cells(sweep, agent=name, wait=wait, until=lambda: self.stopped)
        try:
            with contextlib.closing(found):
                while not self.stopped and self._may_claim():
                    cell = next(found, None)
                    if cell is None:
                        return self._claimed_none()
                    self._count(_Command(cell, self).run())
        except Exception as error:
            self.fault = error

    def _may_claim(self) -> bool:
        """Return whether one more cell may be trained, and count it if so."""
        with self._turn:
            if self.left is None or self.left < 1:
                return self.left is None
            self.left -= 1
            return True

    def _claimed_none(self) -> None:
        with self._turn:
            if self.left is not None:
                self.left += 1

    def _count(self, ending: str) -> None:
        with self._turn:
            self.done += ending == "finished"
            self.broken += ending == "broken"
            self.dropped += ending in ("dropped", "stopped")


class _Command:
    """One cell's command, from start to report."""

    def __init__(self, cell: "Cell", job: _Job) -> None:
        self._cell = cell
        self._job = job
        self._tail: list[str] = []
        self._line: dict[str, Any] = {}
        self._step = -1
        # In the log file, of which an earlier attempt may have left some.
        before = Path(self._log_path())
        self._offset = before.stat().st_size if job.log_file and before.is_file() else 0
        self._trouble: str | None = None

    def run(self) -> str:
        """Return how it went: finished, broken, dropped (by the service) or stopped (by us)."""
        began = time.monotonic()
        words = [self._filled(word) for word in self._job.command]
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # so that its children end with it
            )
        except OSError as error:
            self._cell.give_back()
            raise InvalidSpec(f"Cannot run {words[0]!r}: {error.strerror or error}.") from None
        assert process.stdout is not None
        reader = threading.Thread(target=self._read, args=(process.stdout,), daemon=True)
        reader.start()
        ending = self._watch(process, began)
        reader.join(timeout=GRACE_SECONDS)  # a child of its own may keep the pipe open
        if self._job.log_file:
            self._read_file()
        return self._report(ending, process.returncode, time.monotonic() - began)

    def _filled(self, word: str) -> str:
        cell = self._cell
        values = {
            **{name: getattr(cell, name, None) for name in NAMES},
            "trial": cell.trial_id,
            "log": self._log_path(),
            **{f"settings.{name}": value for name, value in cell.settings.items()},
        }
        for name, value in values.items():
            shown = "" if value is None else repr(value) if isinstance(value, float) else str(value)
            word = word.replace("{" + name + "}", shown)
        return word

    def _log_path(self) -> str:
        place = self._job.log_file or ""
        return place.replace("{trial}", str(self._cell.trial_id))

    def _watch(self, process: "subprocess.Popen[bytes]", began: float) -> str:
        """Wait for the end, or bring it about: cancelled, told to stop, or out of time."""
        while process.poll() is None:
            if not self._cell.wanted:
                _end(process)
                if self._cell.fault is None:
                    return "dropped"
                self._trouble = f"The service refused its log: {self._cell.fault}"
                return "ended"
            if self._job.stopped:
                _end(process)
                return "stopped"
            limit = self._job.time_limit
            if limit and time.monotonic() - began > limit:
                _end(process)
                self._trouble = f"It took longer than the {limit:g} seconds it was given."
                return "ended"
            if self._job.log_file:
                self._read_file()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(LOOK_SECONDS)
        return "ended"

    def _read(self, stream: IO[bytes]) -> None:
        with stream:
            while raw := stream.readline(LONGEST_LINE):
                line = raw.decode("utf-8", "replace").rstrip()
                if self._job.log_file:
                    self._remember(line)
                else:
                    self._take(line)

    def _read_file(self) -> None:
        """Take the lines that the log file has more than last time."""
        path = Path(self._log_path())
        if not path.is_file():
            return
        with path.open("rb") as file:
            file.seek(self._offset)
            for raw in file:
                if raw.endswith(b"\n"):  # else it is still being written
                    self._offset += len(raw)
                    self._take(raw[:LONGEST_LINE].decode("utf-8", "replace").rstrip())

    def _take(self, line: str) -> None:
        """Log a line of JSON; keep any other for the error, should there be one."""
        found = _json_line(line)
        if found is None:
            return self._remember(line)
        self._line |= found
        step = found.get("step")
        losses = {name: found[name] for name in LOSSES if name in found}
        if isinstance(step, int) and step > self._step and losses:
            self._step = step
            with contextlib.suppress(Exception):  # a lost lease is noticed where it is watched
                self._cell.log(step, epoch=float(found.get("epoch", 0.0)), **losses)

    def _remember(self, line: str) -> None:
        self._tail = [*self._tail, line[:1000]][-LAST_LINES:]

    def _report(self, ending: str, code: int, seconds: float) -> str:
        from backend.client import ApiError

        if ending == "dropped":
            return ending
        if ending == "stopped":
            self._cell.give_back()
            return ending
        trouble = self._trouble or _why(code)
        if trouble is None and not self._line:
            trouble = "It printed no line of JSON with a train_loss."
        if trouble is None and self._line.get("outcome") not in OUTCOMES:
            trouble = f"Its outcome {self._line['outcome']!r:.50} is none of ours."
        if trouble is not None:
            said = "\n".join(self._tail).strip()
            self._cell.fail(f"{trouble}\n{said}" if said else trouble)
            return "broken"
        known = {name: self._line.get(name) for name in ("initial_loss", *LOSSES)}
        try:
            counted = self._cell.finish(
                outcome=self._line.get("outcome"),
                error=str(self._line["error"])[:10_000] if self._line.get("error") else None,
                seconds=seconds,
                **known,
            )
        except ApiError as error:
            if error.status >= 500:
                raise
            self._cell.fail(f"The service refused its result: {error}")
            return "broken"
        return "finished" if counted else "dropped"


def _json_line(line: str) -> dict[str, Any] | None:
    """Return what a line of a log says; None if it is not one, numbers as numbers."""
    if not line.startswith("{"):
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not {*LOSSES, "outcome"} & found.keys():
        return None
    for name in ("initial_loss", *LOSSES):
        if name in found:
            found[name] = _number(found[name])
    return found


def _number(value: Any) -> float:
    """Return a loss; null, and whatever else is no number, is one that is not finite."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def _why(code: int) -> str | None:
    """Return what an exit code says went wrong; None if nothing did."""
    if code == 0:
        return None
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"It was ended by {signal.Signals(-code).name}."
    return f"It ended with exit code {code}."


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a command and its children, politely first."""
    for one in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, one)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=GRACE_SECONDS)
            return
