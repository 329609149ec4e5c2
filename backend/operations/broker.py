"""The embedded broker: a private Redis or Valkey server on a unix socket, with persistence."""

import os
import signal
import socket
import stat
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from backend.operations.programs import Child, LaunchError, find_broker

START_SECONDS = 20.0
STOP_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class EmbeddedBroker:
    """A server that one home folder owns: nobody else can reach its socket, and no port is open.

    Attributes:
        home: The home folder; the server's files are in ``broker`` below it.
        socket: Where it listens. In a folder of its own that only we may enter.
        server: The program to run.
    """

    home: Path
    socket: Path
    server: Path

    @property
    def folder(self) -> Path:
        """Where the server keeps its files."""
        return self.home / "broker"

    @property
    def pid_file(self) -> Path:
        """Where the server writes its process id."""
        return self.folder / "broker.pid"

    def child(self) -> Child:
        """Return the server as a process to supervise."""
        return Child(
            "The broker",
            self.command(),
            log=self.home / "logs" / "broker.log",
            death_signal=signal.SIGTERM,  # it writes down the rest and ends at once
            prepare=self.prepare,
        )

    def command(self) -> list[str]:
        """Return the server's command line; it reads no configuration file."""
        settings = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "600",
            "dir": str(self.folder),
            "pidfile": str(self.pid_file),
            "daemonize": "no",
            "save": "",
            "appendonly": "yes",
            "appendfsync": "everysec",
            "maxmemory-policy": "noeviction",  # a full broker must refuse, not forget, messages
        }
        return [str(self.server), *(f for k, v in settings.items() for f in (f"--{k}", v))]

    def prepare(self) -> None:
        """Make private folders, and end what an earlier start left behind."""
        for folder in (self.folder, self.socket.parent):
            _make_private(folder)
        left_over = self._left_over()
        if left_over is not None:
            self._ask(b"SHUTDOWN\r\n")
            try:
                left_over.wait(STOP_SECONDS)
            except psutil.TimeoutExpired:  # it hangs
                left_over.kill()
                left_over.wait(STOP_SECONDS)
        for stale in (self.socket, self.pid_file):
            stale.unlink(missing_ok=True)

    def wait(self, child: Child) -> None:
        """Wait until the server answers.

        A server cannot read what a newer one wrote, nor a damaged file. The queue only holds
        hints to what the database knows, so such files are set aside, and it starts empty.

        Raises:
            LaunchError: If it does not answer; with the last lines of its log.
        """
        if self._answers_soon(child):
            return
        data = self.folder / "appendonlydir"
        if not child.running and data.exists():
            data.rename(data.with_name(f"appendonlydir.unreadable-{time.time_ns()}"))
            child.start()
            if self._answers_soon(child):
                return
        raise LaunchError(
            f"The broker {self.server} does not answer ({child.ending()}). Set "
            f"ETASCOPE_BROKER_URL to use another. The end of {child.log}:\n{child.tail()}"
        )

    def _answers_soon(self, child: Child) -> bool:
        deadline = time.monotonic() + START_SECONDS
        while child.running and time.monotonic() < deadline:
            if self.answers():
                return True
            time.sleep(0.02)
        return False

    def answers(self) -> bool:
        """Return whether a server answers on the socket, with all its data read."""
        return self._ask(b"PING\r\n").startswith(b"+PONG")

    def _ask(self, question: bytes) -> bytes:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(1.0)
            try:
                line.connect(str(self.socket))
                line.sendall(question)
                return line.recv(1024)
            except OSError:
                return b""

    def _left_over(self) -> psutil.Process | None:
        """Return the server of an earlier start, if it is still there."""
        try:
            process = psutil.Process(int(self.pid_file.read_text()))
            # Its title names the socket; another program may have got its number meanwhile.
            return process if str(self.socket) in " ".join(process.cmdline()) else None
        except (OSError, ValueError, psutil.Error):
            return None


def find_server() -> Path:
    """Return a server program.

    Raises:
        LaunchError: If there is none.
    """
    if (found := find_broker()) is not None:
        return found
    raise LaunchError(
        "There is no Redis or Valkey server here. Install redis-server or valkey-server, "
        "or set ETASCOPE_BROKER_URL to one that runs elsewhere."
    )


def _make_private(folder: Path) -> None:
    """Create a folder only we may enter; refuse one that somebody else put there."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise LaunchError(
            f"{folder} belongs to somebody else, so the broker cannot be private there. "
            "Remove it, or set ETASCOPE_HOME to another folder."
        )
    folder.chmod(0o700)
