"""Cells of a sweep for a program to train: claimed one by one, kept alive, reported on.

    for cell in client.cells(sweep_id):
        weights = start(cell.seed)
        for step in range(100):
            loss = train(weights, cell.lr)
            if not cell.log(step, train_loss=loss):
                break  # cancelled, or given to another
        else:
            cell.finish(train_loss=loss)

A thread keeps the cell's lease meanwhile; what is reported twice is stored once.
"""

import math
import os
import socket
import threading
import time
from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from backend.client.requests import ApiError, ServerAway
from backend.schemas import (
    CellAnswer,
    CellClaim,
    CellPoint,
    CellRead,
    CellReport,
    CellResult,
    SweepState,
)

if TYPE_CHECKING:
    from backend.client import Client

T = TypeVar("T")

#: Points are sent, and the service is asked whether to go on, so often.
FLUSH_SECONDS = 5.0
#: How long a result waits for a service that is away before the program is told.
PATIENCE_SECONDS = 600.0
#: How long giving a cell back waits: the end of its lease would do the same.
RELEASE_SECONDS = 10.0
POLL_SECONDS = 2.0
MOST_AT_ONCE = 1000
#: After so many points every second is kept; after so many more every fourth, and so on.
FIRST_POINTS, NEXT_POINTS = 2000, 500
ENDED = (SweepState.COMPLETED, SweepState.FAILED, SweepState.CANCELLED)
LOSSES = (
    *("train_loss", "test_loss", "train_accuracy", "test_accuracy"),
    *("validation_loss", "validation_accuracy"),
)


def agent_name() -> str:
    """Return what tells this process from others."""
    return f"{socket.gethostname()}-{os.getpid()}"[:150]


class Log:
    """The points of one run, thinned as they come, numbered as they are sent."""

    def __init__(self) -> None:
        self.points: list[CellPoint] = []
        self._seen = 0
        self._last = -1
        self._broken = False

    def add(self, step: int, epoch: float, losses: dict[str, float | None]) -> CellPoint | None:
        """Return the point that was kept; None if others tell enough.

        Raises:
            ValueError: The step is not behind the one before, or a name is not one of ours.
        """
        if step <= self._last:
            raise ValueError(f"Steps rise; after {self._last} came {step}.")
        unknown = [name for name in losses if name not in LOSSES]
        if unknown:
            raise ValueError(f"A log has {', '.join(LOSSES)}, and no {unknown[0]!r:.50}.")
        self._last = step
        first_broken = not self._broken and any(_broken(one) for one in losses.values())
        self._broken |= first_broken
        kept = self._seen % self._stride() == 0 or first_broken
        self._seen += 1
        if not kept:
            return None
        point = CellPoint(
            step=int(step),
            epoch=float(epoch),
            **{name: finite(value) for name, value in losses.items()},
        )
        self.points.append(point)
        return point

    def _stride(self) -> int:
        more = len(self.points) - FIRST_POINTS
        return int(2 ** (more // NEXT_POINTS + 1)) if more >= 0 else 1


def finite(value: float | None) -> float | None:
    """Return a number as JSON takes it: one that is not finite becomes null."""
    return None if value is None or not math.isfinite(float(value)) else float(value)


def _broken(value: float | None) -> bool:
    return value is not None and not math.isfinite(float(value))


def result_of(losses: dict[str, Any], outcome: str | None, **more: Any) -> CellResult:
    """Return how a run ended; without a finite loss it has diverged unless it says otherwise."""
    numbers = {name: finite(losses.get(name)) for name in ("initial_loss", *LOSSES)}
    return CellResult.model_validate({**numbers, "outcome": outcome, **more})


class Cell:
    """One cell in this program's hands; a thread keeps it alive.

    Attributes:
        lr: The learning rate to train with; `seed`, `method`, `clip`, `epochs`, `batch_size`,
            `task` and `settings` likewise.
    """

    def __init__(
        self, client: "Client", cell: CellRead, *, flush_seconds: float = FLUSH_SECONDS
    ) -> None:
        self.lr, self.seed, self.method = cell.lr, cell.seed, cell.method
        self.clip, self.epochs, self.batch_size = cell.clip, cell.epochs, cell.batch_size
        self.task, self.settings = cell.task, cell.settings
        self.trial_id, self.attempt = cell.trial_id, cell.attempt
        self._client = client
        self._claim = cell
        self._log = Log()
        self._sent = cell.points
        self._wanted = True
        self._ended = threading.Event()
        self._turn = threading.Lock()
        self._fault: ApiError | None = None
        self._pause = min(flush_seconds, cell.lease_seconds / 3)
        self._thread = threading.Thread(target=self._beat, name="cell", daemon=True)
        self._thread.start()

    @property
    def wanted(self) -> bool:
        """Whether to go on: False once the sweep is cancelled or the cell is another's."""
        return self._wanted

    @property
    def fault(self) -> ApiError | None:
        """Why the service refused what was logged; None if it did not."""
        return self._fault

    def log(
        self, step: int, *, epoch: float = 0.0, flush: bool = False, **losses: float | None
    ) -> bool:
        """Keep a point for sending; return whether to go on.

        Args:
            step: Steps taken so far; rises from call to call.
            epoch: Epochs so far.
            flush: Send now, instead of within seconds.
            losses: `train_loss`, `test_loss`, `train_accuracy`, `test_accuracy`,
                `validation_loss`, `validation_accuracy`.
        """
        if self._fault is not None:
            raise self._fault
        # Without the lock of sending: training never waits for the network.
        self._log.add(step, epoch, losses)
        if flush:
            self._send()
        return self._wanted

    def finish(
        self,
        *,
        outcome: str | None = None,
        seconds: float | None = None,
        error: str | None = None,
        diverged_at_step: int | None = None,
        **losses: float | None,
    ) -> bool:
        """Report how the cell ended; return whether it counted.

        Without `outcome`, a loss that is not finite has diverged, and so has one that is five times
        `initial_loss`, or without that the first one logged, if this is positive.

        Raises:
            ApiError: The service refuses the result; the cell is held still, for another word.
        """
        more = {"seconds": seconds, "error": error, "diverged_at_step": diverged_at_step}
        return self._end(result=result_of(losses, outcome, **more))

    def fail(self, error: str) -> bool:
        """Report that training broke; it is tried again a few times, then it has failed."""
        return self._end(fault=error[:100_000])

    def give_back(self) -> bool:
        """Give the cell back untrained."""
        return self._end(release=True)

    def _end(self, **last: Any) -> bool:
        """Send what is left and the last word, however often it takes; then it is over."""
        if self._ended.is_set():
            return False
        if not self._wanted and self._fault is None:
            self.let_go()
            return False
        patience = RELEASE_SECONDS if "release" in last else PATIENCE_SECONDS
        try:
            answer = patiently(lambda: self._send(**last), seconds=patience)
        except ApiError as error:
            if "result" in last or error.status >= 500:
                raise
            # If it is the log that is refused, that it broke is told without one.
            answer = patiently(lambda: self._send(logged=False, **last), seconds=patience)
        self.let_go()
        return answer.yours

    def let_go(self) -> None:
        """Keep the lease no longer, whatever was reported."""
        self._ended.set()

    def _beat(self) -> None:
        while not self._ended.wait(self._pause):
            try:
                self._send()
            except ServerAway:
                continue  # the lease may outlive it
            except ApiError as error:
                if error.status < 500:
                    self._fault, self._wanted = error, False
                    return
            if not self._wanted:
                return

    def _send(self, *, logged: bool = True, **last: Any) -> CellAnswer:
        """Send what has not been sent, and return the answer to its last piece."""
        with self._turn:
            while True:
                points = self._log.points if logged else []
                piece = points[self._sent : self._sent + MOST_AT_ONCE]
                more = self._sent + len(piece) < len(points)
                report = CellReport(
                    lease=self._claim.lease,
                    start=self._sent,
                    points=piece,
                    **({} if more else last),
                )
                answer = self._client.report_cell(self._claim.sweep_id, self.trial_id, report)
                self._sent += len(piece)
                self._wanted = self._wanted and answer.held
                if not more or not answer.held:
                    return answer


def patiently(send: Callable[[], T], *, seconds: float = PATIENCE_SECONDS) -> T:
    """Return what a request answers, asked again while the service is away or overloaded."""
    until, pause = time.monotonic() + seconds, 0.2
    while True:
        try:
            return send()
        except ServerAway:
            if time.monotonic() > until:
                raise
        except ApiError as error:
            if error.status < 500 or time.monotonic() > until:
                raise
        time.sleep(pause)
        pause = min(pause * 2, 10.0)


def cells(
    client: "Client",
    sweep_id: int,
    *,
    agent: str | None = None,
    wait: bool = True,
    flush_seconds: float = FLUSH_SECONDS,
    poll_seconds: float = POLL_SECONDS,
    until: Callable[[], bool] = lambda: False,
) -> Generator[Cell, None, None]:
    """Yield a sweep's cells one by one until none is left.

    A cell that the loop leaves without having finished it goes back at once; one whose program
    went on to the next without a word counts as broken.

    Args:
        client: Who asks.
        sweep_id: A sweep submitted with `"where": "agents"`.
        agent: What to call this program; default: host and process id.
        wait: Whether to wait for cells that others hold: they may lose them.
        flush_seconds: How often points are sent, and cancelling is noticed.
        poll_seconds: How often to ask while nothing waits.
        until: Asked before each claim: whether to stop.
    """
    who = CellClaim(agent=agent or agent_name())
    while not until():
        claimed = patiently(lambda: client.claim_cell(sweep_id, who))
        if claimed.cell is None:
            if not wait or not claimed.unfinished or claimed.state in ENDED:
                return
            time.sleep(poll_seconds)
            continue
        cell = Cell(client, claimed.cell, flush_seconds=flush_seconds)
        try:
            yield cell
            _quietly(partial(cell.fail, "Its program went on without finishing it."))
        except GeneratorExit:
            _quietly(cell.give_back)
            raise
        finally:
            cell.let_go()


def _quietly(action: Callable[[], object]) -> None:
    """Do something that the lease's end would do as well."""
    try:
        action()
    except (ApiError, ServerAway):
        return
