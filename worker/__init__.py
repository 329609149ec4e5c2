"""Trains what the service hands out.

| module | for |
| --- | --- |
| `main`, `app` | `etascope worker`: settings, devices, and Celery's side of it |
| `training`, `reporter` | one shard from its lease to its results, and what is told meanwhile |
| `own_files` | users' files: read, announced, trained in guarded processes |
| `device` | which processors, and how many processes |

`is_healthy` answers the container's engine.
"""

import socket


def is_healthy() -> bool:
    """Return whether a training process on this machine has beaten lately.

    A database that does not answer is no fault of the worker, which waits for it: restarting
    would lose what is trained.
    """
    from backend.db import PASSING_FAULTS, reading
    from backend.services import workers

    try:
        with reading() as session:
            known = workers.list_all(session)
    except PASSING_FAULTS:
        return True
    return any(worker.alive and worker.host == socket.gethostname() for worker in known)
