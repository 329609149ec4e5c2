"""`etascope up`: starts broker, worker and web as processes, and ends when they do.

An empty history is welcomed with a first study, and then with the paper's reproduction. The study
begins when the first browser opens the start page, so that somebody sees its curve grow; without
a browser it begins after a minute. The reproduction comes when the study has ended: reading ten
thousand trials would slow it down.
"""

import contextlib
import errno
import fcntl
import json
import os
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

import httpx

from backend.client import ENDED, Client, calls
from backend.operations.broker import EmbeddedBroker, find_server
from backend.operations.programs import Child, LaunchError, environment, stop_all
from backend.settings import Settings

READY_SECONDS = 120.0
GRACE_SECONDS = 8.0
BROKER_GRACE_SECONDS = 3.0
TICK_SECONDS = 0.1
#: So long a browser has the chance to open before the first study begins without one.
PATIENCE_SECONDS = 60.0
LOOK_SECONDS = 2.0

Say = Callable[[str], None]


class Stopped(Exception):
    """A signal asked us to end."""


class StopSignals:
    """Counts SIGINT, SIGTERM and SIGHUP instead of dying of them."""

    def __init__(self) -> None:
        """Count from zero; signals are counted inside a `with` block."""
        self.count = 0
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN:
                continue  # started by nohup, to outlive its terminal
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1

    def check(self) -> None:
        """Raise `Stopped` if a signal came."""
        if self.count:
            raise Stopped


def up(
    settings: Settings,
    *,
    say: Say,
    first_study: bool = True,
    paper: bool = True,
    invite: Callable[[str], str | None] = lambda _url: None,
    own: Sequence[str] = (),
) -> None:
    """Start everything, and keep it running until a signal comes.

    Args:
        settings: Where to listen and where to keep things.
        say: Called with sentences for the person at the terminal.
        first_study: Whether an empty history gets its first study, once a browser opens.
        paper: Whether it then gets the paper's reproduction too, when the first study has ended.
        invite: Returns what to say to whoever may make the first account at an address.
        own: Files whose tasks and methods the worker brings along.

    Raises:
        IBError: If something could not be started or kept running.
    """
    children: list[Child] = []
    with StopSignals() as stop, only_one(settings.home) as announce:
        settings = settings.model_copy(update={"port": free_port(settings.host, settings.port)})
        url = address(settings)
        announce(url)
        try:
            _start(settings, children, stop, first_study=first_study, own=own)
            wait_until_ready(url, children, stop, say)
            say(f"Etascope is ready at {url} - press Ctrl-C to stop it.")
            if settings.auth and (invitation := invite(url)):
                say(invitation)
            if first_study and not settings.auth:
                welcome_beside(url, paper=paper, say=say, stopping=lambda: stop.count)
            while True:
                stop.check()
                keep_running(children, say)
                time.sleep(TICK_SECONDS)
        except Stopped:
            say("Stopping; press Ctrl-C again to stop at once.")
        finally:
            late = shut_down(children, hurry=lambda: stop.count > 1)
        say(f"Stopped ({', '.join(late)} had to be killed)." if late else "Stopped.")


def _start(
    settings: Settings,
    children: list[Child],
    stop: StopSignals,
    *,
    first_study: bool,
    own: Sequence[str] = (),
) -> None:
    from backend.operations.database import upgrade

    upgrade(settings)
    stop.check()
    if not settings.broker_url:
        broker = EmbeddedBroker(settings.home, settings.broker_socket, find_server())
        children.append(broker.child())
        children[0].start()
        broker.wait(children[0])
    brought = [word for one in own for word in ("--with", one)]
    nothing: list[str] = []
    parts = (("The worker", "worker", brought), ("The web server", "api", nothing))
    for name, command, words in parts:
        stop.check()
        children.append(
            Child(
                name,
                [sys.executable, "-P", "-m", "backend.cli", command, *words],
                log=settings.home / "logs" / f"{command}.log",
                environment={
                    **environment(settings),
                    "ETASCOPE_FIRST_STUDY": "on" if first_study else "off",
                },
            )
        )
        children[-1].start()


def keep_running(children: list[Child], say: Say) -> None:
    """Start again what ended; raises `LaunchError` for what keeps ending."""
    for child in children:
        if news := child.revive():
            say(news)


def shut_down(children: list[Child], *, hurry: Callable[[], bool]) -> list[str]:
    """End all children, the broker last; return the names of those that had to be killed."""
    brokers = [child for child in children if child.log.stem == "broker"]
    others = [child for child in children if child not in brokers]
    late = stop_all(others, grace=GRACE_SECONDS, hurry=hurry)
    return late + stop_all(brokers, grace=BROKER_GRACE_SECONDS, hurry=hurry)


def wait_until_ready(url: str, children: list[Child], stop: StopSignals, say: Say) -> None:
    """Wait until the web server says that database, broker and worker are there."""
    deadline = time.monotonic() + READY_SECONDS
    while reason := why_not_ready(url):
        stop.check()
        keep_running(children, say)
        if time.monotonic() > deadline:
            raise LaunchError(
                f"Etascope is not ready after {READY_SECONDS:g} s: {reason}. "
                f"See the logs in {children[-1].log.parent}."
            )
        time.sleep(TICK_SECONDS)


def why_not_ready(url: str) -> str | None:
    """Ask the web server whether sweeps would run; return what is missing, None if nothing is."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"{url}/api/ready", timeout=5):
            return None
    except urllib.error.HTTPError as refusal:
        with refusal:
            return _reasons(refusal.read()) or f"the web server answers {refusal.code}"
    except OSError:
        return "the web server does not answer yet"


def _reasons(body: bytes) -> str:
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
        checks = json.loads(body)["checks"]
        waiting = {name: check["reason"] for name, check in checks.items() if not check["ready"]}
        return "; ".join(f"{name}: {reason}" for name, reason in waiting.items())
    return ""


@contextlib.contextmanager
def only_one(home: Path) -> Iterator[Callable[[str], None]]:
    """Hold a home folder for us alone; yields a function that notes where we listen.

    The kernel lets go of the lock when we end, however we end.

    Raises:
        LaunchError: If another `up` holds it, saying where that one listens.
    """
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = (home / "up.lock").open("a+")
    except OSError as error:
        raise LaunchError(
            f"Cannot write to {home}: {error.strerror}. Set ETASCOPE_HOME to a folder you may "
            "write to."
        ) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.seek(0)
            where = lock.read().strip() or "an address it has not told yet"
            raise LaunchError(
                f"Etascope is already running with the home {home}, at {where}. Use that one, or "
                "set ETASCOPE_HOME and ETASCOPE_PORT for a second one."
            ) from None

        def announce(url: str) -> None:
            lock.truncate(0)
            lock.write(f"{url} (process {os.getpid()})\n")
            lock.flush()

        yield announce


def free_port(host: str, port: int) -> int:
    """Return the port, or any free one for 0.

    Raises:
        LaunchError: If the web server could not listen there, with a port that would work.
    """
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as line:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            line.bind(where)
            found: int = line.getsockname()[1]
            return found
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise LaunchError(
                f"Cannot listen on {host} port {port}: {error.strerror}. "
                "Set ETASCOPE_HOST and ETASCOPE_PORT."
            ) from error
    other = free_port(host, 0)
    raise LaunchError(
        f"Port {port} is used by another program. Stop that one, or take another port: "
        f"ETASCOPE_PORT={other} etascope up"
    )


def address(settings: Settings) -> str:
    """Return where a browser on this machine finds the dashboard."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104
    return f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}"


def welcome_beside(url: str, *, paper: bool, say: Say, stopping: Callable[[], object]) -> None:
    """Welcome whoever comes, in a thread that ends with us.

    Args:
        url: Where the server listens.
        paper: Whether the reproduction is wanted.
        say: Called with sentences for the person at the terminal.
        stopping: True as soon as a server that does not answer is no news.
    """

    def run() -> None:
        # A proxy from the environment would not find our loopback address.
        http = httpx.Client(base_url=url, timeout=30.0, trust_env=False)
        try:
            with Client(http=http) as client:
                welcome(client, paper=paper, say=lambda study: say(_running(url, study)))
        except Exception as error:  # a picture to start with is not worth refusing to start
            if not stopping():
                say(f"The first study could not be prepared: {error}")

    threading.Thread(target=run, name="welcome", daemon=True).start()


def _running(url: str, study_id: int) -> str:
    return f"A first study is running: {url}/studies/{study_id}"


def welcome(
    client: Client,
    *,
    paper: bool,
    say: Callable[[int], None],
    patience: float = PATIENCE_SECONDS,
    look: float = LOOK_SECONDS,
) -> None:
    """Begin the first study unless a browser does, wait for its end, then load the paper's bundle.

    An installation that was stopped in between goes on where it was; one with studies of its own
    is left alone.

    Args:
        client: Of the server.
        paper: Whether the reproduction is wanted.
        say: Told the first study's id as soon as it runs.
        patience: Seconds to wait for a browser.
        look: Seconds between two looks.
    """
    deadline = time.monotonic() + patience
    while (study := _only_study(client)) == 0 and time.monotonic() < deadline:
        time.sleep(look)
    if study is None:
        return
    found = client.send(calls.begin_first_study()).study_id
    if found is None or found != (study or found):
        return
    if client.study(found).state not in ENDED:
        say(found)
    while client.study(found).state not in ENDED:
        time.sleep(look)
    if paper:
        client.send(calls.load_bundle())


def _only_study(client: Client) -> int | None:
    """Return the only study's id, 0 if there is none, None if there are several."""
    ids = [study.id for study in client.send(calls.studies(archived="any", limit=2)).items]
    return None if len(ids) > 1 else ids[0] if ids else 0
