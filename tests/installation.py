"""A whole installation in processes of its own: web processes behind one address, and workers."""

import asyncio
import contextlib
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx

from backend.operations.programs import die_with_parent
from tests.servers import wait_for

START_SECONDS = 300.0
#: Everything that takes seconds in earnest takes fractions here.
QUICK = {
    "ETASCOPE_LEASE_SECONDS": "6",
    "ETASCOPE_HEARTBEAT_SECONDS": "0.5",
    "ETASCOPE_REAP_SECONDS": "0.5",
    "ETASCOPE_FLUSH_SECONDS": "0.3",
    "ETASCOPE_RETRY_SECONDS": "0.2",
    "ETASCOPE_THREADS": "1",
    "ETASCOPE_DEVICE": "cpu",
}


def free_port() -> int:
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        return int(line.getsockname()[1])


class Part:
    """One process that can be killed and started again; its log is kept."""

    #: What stands before its command.
    prefix: tuple[str, ...] = ()
    #: Whether it ends with the thread that started it, so that a stopped run leaves nothing.
    bound = True

    def __init__(self, name: str, log: Path, environment: Mapping[str, str]) -> None:
        """Describe it; `name` is a command of `etascope`."""
        self.name, self.log = name, log
        self.environment = {**os.environ, "PYTHONPATH": os.getcwd(), **environment}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.prefix, sys.executable, "-m", "backend.cli", self.name],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGKILL) if self.bound else None,
                env=self.environment,
            )

    def kill(self) -> None:
        """End it, and what it has started, without warning."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


class Web(Part):
    """`etascope api` on a port of its own."""

    def __init__(self, log: Path, environment: Mapping[str, str]) -> None:
        self.port = free_port()
        super().__init__("api", log, {**environment, "ETASCOPE_PORT": str(self.port)})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answers(self) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(f"{self.url}/api/health", trust_env=False).status_code == 200
        return False

    def wait(self) -> None:
        wait_for(self.answers, seconds=START_SECONDS, what="a web process", every=0.1)


class FrontDoor:
    """One address for several servers: a load balancer that only forwards bytes.

    Connections go around in turn; a server that does not answer is passed over.
    """

    def __init__(
        self,
        ports: Sequence[int | Path],
        *,
        address: str = "127.0.0.1",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Open it for servers on these ports or unix sockets; with `tls` it speaks that."""
        self._ports, self._turn = ports, 0
        self._address, self._tls = address, tls
        self.served = dict.fromkeys(ports, 0)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        opening = asyncio.run_coroutine_threadsafe(self._open(), self._loop)
        self._server = opening.result(10)
        self.port = int(self._server.sockets[0].getsockname()[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _open(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, self._address, 0, ssl=self._tls)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in self._ports:
            port = self._ports[self._turn % len(self._ports)]
            self._turn += 1
            with contextlib.suppress(OSError):
                inner_reader, inner_writer = await _connect(port)
                self.served[port] += 1
                there = _forward(reader, inner_writer)
                try:
                    await asyncio.gather(there, _forward(inner_reader, writer))
                except asyncio.CancelledError:  # by `drop`
                    pass
                finally:
                    inner_writer.close()
                    writer.close()
                return
        writer.close()

    def drop(self) -> None:
        """Cut every connection; new ones are taken."""
        asyncio.run_coroutine_threadsafe(self._drop(), self._loop).result(10)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        self._server.close()
        await self._drop()

    async def _drop(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


async def _connect(place: int | Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if isinstance(place, Path):
        return await asyncio.open_unix_connection(place)
    return await asyncio.open_connection("127.0.0.1", place)


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until the sender has ended; then end the other direction's sender too."""
    with contextlib.suppress(OSError):
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    with contextlib.suppress(OSError, RuntimeError):
        writer.close()


class Installation:
    """Web processes behind one door, and workers; databases and brokers are the caller's."""

    def __init__(
        self, folder: Path, *, webs: int = 2, workers: int = 2, **environment: str
    ) -> None:
        given = {**QUICK, "ETASCOPE_HOME": str(folder), **environment}
        self.webs = [Web(folder / f"web-{n}.log", given) for n in range(webs)]
        self.workers = [Part("worker", folder / f"worker-{n}.log", given) for n in range(workers)]
        self.door = FrontDoor([web.port for web in self.webs])

    def __enter__(self) -> "Installation":
        for part in (*self.webs, *self.workers):
            part.start()
        for web in self.webs:
            web.wait()
        wait_for(self.ready, seconds=START_SECONDS, what="the installation", every=0.2)
        return self

    def ready(self) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            answer = httpx.get(f"{self.door.url}/api/ready", trust_env=False, timeout=10)
            return answer.status_code == 200
        return False

    def __exit__(self, *_: object) -> None:
        for part in (*self.webs, *self.workers):
            part.kill()
        self.door.close()

    def logs(self) -> str:
        parts = (*self.webs, *self.workers)
        return "".join(part.log.read_text("utf-8", errors="replace") for part in parts)
