"""Faults of every kind, in an order that a seed decides, several at a time."""

import random
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

from tests.chaos.stage import LEASE_SECONDS, Stage, processes, send

#: Seconds that a fault lasts: a short one, and one that outlives every lease.
SHORT, LONG = (0.3, 2.0), (LEASE_SECONDS + 1.0, LEASE_SECONDS + 2.5)
PAUSES = (0.2, 1.2)
#: How far clocks are moved.
JUMPS = (-86_400, -3600, -60, 60, 3600, 86_400)
#: A fault waits so long for a worker that trains: killing what has not begun tells little.
PATIENCE = 6.0
#: Faults at a time, of different parts.
LANES = 2


@dataclass(frozen=True)
class Kind:
    """A way to spoil something.

    Attributes:
        title: What is done, to what.
        victims: The names of what it may be done to.
        long: Whether it outlives a lease.
        strike: Spoils the victim and returns how to make it whole again.
    """

    title: str
    victims: tuple[str, ...]
    long: bool
    strike: Callable[[Stage, str, random.Random], Callable[[], object]]


def _kill(stage: Stage, name: str, _: random.Random) -> Callable[[], object]:
    part = stage.parts()[name]
    part.kill()
    return part.start


def _kill_child(stage: Stage, name: str, _: random.Random) -> Callable[[], object]:
    """End the training process alone, as a kernel out of memory does."""
    send(signal.SIGKILL, processes(stage.parts()[name])[-1:])
    return lambda: None


def _stop(stage: Stage, name: str, _: random.Random) -> Callable[[], object]:
    stopped = processes(stage.parts()[name])
    send(signal.SIGSTOP, stopped)
    return lambda: send(signal.SIGCONT, stopped)


def _kill_broker(stage: Stage, _: str, __: random.Random) -> Callable[[], object]:
    stage.broker.kill()
    return stage.broker.start


def _stop_broker(stage: Stage, _: str, __: random.Random) -> Callable[[], object]:
    process = stage.broker.process
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    return lambda: process.send_signal(signal.SIGCONT)


def _empty_broker(stage: Stage, _: str, __: random.Random) -> Callable[[], object]:
    stage.broker.forget()
    return lambda: None


def _drop_broker(stage: Stage, _: str, __: random.Random) -> Callable[[], object]:
    stage.broker.door.drop()
    return lambda: None


def _kill_database(stage: Stage, _: str, __: random.Random) -> Callable[[], object]:
    stage.database.kill()
    return stage.database.start


def _close_database(stage: Stage, _: str, __: random.Random) -> Callable[[], object]:
    stage.database.stop()
    return stage.database.start


def _stop_database(stage: Stage, _: str, __: random.Random) -> Callable[[], object]:
    family = stage.database.family()
    send(signal.SIGSTOP, family)

    def go_on() -> None:
        send(signal.SIGCONT, family)
        stage.database.recover()

    return go_on


def _fill_database(stage: Stage, _: str, __: random.Random) -> Callable[[], object]:
    stage.database.disk.fill()

    def clear() -> None:
        stage.database.disk.clear()
        stage.database.recover()  # it may have given up, or be reading its log again

    return clear


def _fill_home(stage: Stage, _: str, __: random.Random) -> Callable[[], object]:
    stage.home_disk.fill()
    return stage.home_disk.clear


def _move_clock(stage: Stage, name: str, chance: random.Random) -> Callable[[], object]:
    clock = stage.clocks[name.replace(" ", "-")]
    clock.set(chance.choice(JUMPS))
    return lambda: clock.set(0)


def _cut(stage: Stage, _: str, chance: random.Random) -> Callable[[], object]:
    stage.far.cut(silently=chance.random() < 0.5)
    return stage.far.reconnect


NEAR, WEBS = ("worker 0", "worker 1"), ("web 0", "web 1")
KINDS = (
    Kind("worker killed", NEAR, False, _kill),
    Kind("training process killed", NEAR, False, _kill_child),
    Kind("worker stopped past its lease", (*NEAR, "far"), True, _stop),
    Kind("worker's clock moved", (*NEAR, "far"), False, _move_clock),
    Kind("far worker killed, only its lease tells", ("far",), False, _kill),
    Kind("far worker cut off past its lease", ("far",), True, _cut),
    Kind("web process killed", WEBS, False, _kill),
    Kind("web process stopped", WEBS, True, _stop),
    Kind("web process's clock moved", WEBS, False, _move_clock),
    Kind("homes' disk full", ("home",), False, _fill_home),
    Kind("broker killed, empty afterwards", ("broker",), False, _kill_broker),
    Kind("broker stopped", ("broker",), True, _stop_broker),
    Kind("broker's messages lost", ("broker",), False, _empty_broker),
    Kind("broker's connections cut", ("broker",), False, _drop_broker),
    Kind("database killed", ("database",), False, _kill_database),
    Kind("database restarted", ("database",), False, _close_database),
    Kind("database away past every lease", ("database",), True, _close_database),
    Kind("database stopped past every lease", ("database",), True, _stop_database),
    Kind("database's disk full", ("database",), False, _fill_database),
    Kind("database's clock moved", ("database",), False, _move_clock),
)


@dataclass(frozen=True)
class Fault:
    """One fault to make: its number from 1, kind, victim, seconds, and its own dice."""

    number: int
    kind: Kind
    victim: str
    seconds: float
    seed: int


def schedule(seed: int) -> Iterator[Fault]:
    """Yield faults without end; every kind once before any comes again."""
    chance, number = random.Random(seed), 0
    while True:
        for kind in chance.sample(KINDS, len(KINDS)):
            number += 1
            seconds = chance.uniform(*(LONG if kind.long else SHORT))
            yield Fault(number, kind, chance.choice(kind.victims), seconds, chance.getrandbits(32))


class Injector:
    """Makes faults in lanes, each of a part that is whole at that time."""

    def __init__(self, stage: Stage, seed: int, count: int, tell: Callable[[str], None]) -> None:
        self.made: Counter[str] = Counter()
        self.revived: Counter[str] = Counter()
        self.broken: list[str] = []
        self._stage, self._tell = stage, tell
        self._waiting = deque(islice(schedule(seed), count))
        self._pauses = random.Random(seed)
        self._busy: set[str] = set()
        self._changed = threading.Condition()

    def run(self) -> None:
        """Make all of them, and see that whatever ended by itself is started again."""
        lanes = [threading.Thread(target=self._lane, daemon=True) for _ in range(LANES)]
        for lane in lanes:
            lane.start()
        while any(lane.is_alive() for lane in lanes):
            time.sleep(1.0)
            self._revive()
        self._revive()

    def _revive(self) -> None:
        with self._changed:  # so that no lane ends one meanwhile, to start it itself
            revived = self._stage.revive(self._busy)
        for name in revived:
            self.revived[name] += 1
            self._tell(f"{name} had ended by itself, and is started again")

    def _lane(self) -> None:
        while True:
            with self._changed:
                pause = self._pauses.uniform(*PAUSES)
            time.sleep(pause)
            self._await_work()
            with self._taken() as fault:
                if fault is None:
                    return
                self._make(fault)

    def _await_work(self) -> None:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and not self._stage.at_work():
            time.sleep(0.1)

    @contextmanager
    def _taken(self) -> Iterator[Fault | None]:
        """Lend the next fault whose victim is whole."""
        with self._changed:
            while self._waiting and (fault := self._next()) is None:
                self._changed.wait()
            found = fault if self._waiting else None
            if found is not None:
                self._waiting.remove(found)
                self._busy.add(found.victim)
        try:
            yield found
        finally:
            with self._changed:
                self._busy -= {found.victim} if found else set()
                self._changed.notify_all()

    def _next(self) -> Fault | None:
        return next((one for one in self._waiting if one.victim not in self._busy), None)

    def _make(self, fault: Fault) -> None:
        what = f"{fault.number:4}  {fault.kind.title} ({fault.victim}), {fault.seconds:.1f} s"
        self._tell(what)
        try:
            mend = fault.kind.strike(self._stage, fault.victim, random.Random(fault.seed))
            time.sleep(fault.seconds)
            mend()
        except Exception as error:
            self.broken.append(f"{what}: {type(error).__name__}: {error}")
            self._tell(f"{fault.number:4}  COULD NOT BE MADE OR MENDED: {error}")
        else:
            self.made[fault.kind.title] += 1
