"""A web process from its first moment, kept small, and from outside: is it healthy?

`python -m backend.operations.web_process` asks; its exit code is for the container engine.
"""

import ctypes
import os
import sys
import urllib.request
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec

#: Names and values of glibc's malloc.h.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
LARGE = 128 * 1024
#: Read by libraries of linear algebra when they are first imported. Their own threads would fight
#: over the processors with each other's requests, and hold buffers of their own.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
#: How long a probe waits for an answer.
PROBE_SECONDS = 4.0


def stay_small() -> None:
    """Let memory be given back and requests be all the threads there are; call it first.

    By default every thread gets an arena of its own, and the size from which blocks are given
    back grows with use. Ten thousand trials read by a dozen threads then stay resident for ever.
    The C library is told only where it is glibc.
    """
    for name in THREADS:
        os.environ.setdefault(name, "1")
    sys.meta_path.insert(0, WithoutPandas())
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_ARENA_MAX, 1)
        mallopt(M_MMAP_THRESHOLD, LARGE)
        mallopt(M_TRIM_THRESHOLD, LARGE)


class WithoutPandas(MetaPathFinder, Loader):
    """Refuses to import pandas, which nothing in a web process needs.

    Where it happens to be installed, pyarrow imports it in the thread of the first export, and
    plotly, which looks whether it is there, meets it half-way in another thread and fails.
    """

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        """Find it, so that whoever only looks is answered: torch does before its first optimizer.

        All others are left to whoever finds them.
        """
        return ModuleSpec(fullname, self) if fullname == "pandas" else None

    def create_module(self, spec: ModuleSpec) -> None:
        """Refuse: there is no such module."""
        raise ModuleNotFoundError("A web process does without pandas.", name=spec.name)


def is_healthy(port: str) -> bool:
    """Return whether a web process on this machine answers; asks nothing of the database."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"http://127.0.0.1:{port}/api/health", timeout=PROBE_SECONDS) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(0 if is_healthy(os.environ.get("ETASCOPE_PORT", "8050")) else 1)
