"""`etascope worker`: listen, train, and stop politely."""

import sys
import warnings
from collections.abc import Sequence

from celery.platforms import SecurityWarning

from backend.services.shards import special_queues
from backend.settings import configure_logs, get_settings
from ib_core.announced import offer_key
from worker.device import choose, shares
from worker.own_files import probe


def serve(*, processes: int | None = None, own: Sequence[str] = ()) -> None:
    """Train what is queued until a signal comes.

    SIGTERM or Ctrl-C: shards that are nearly done are finished, others go back to the queue.

    Args:
        processes: Number of training processes; None: one a GPU, or one for the processor.
        own: Files with tasks and methods to bring along, or classes as `package.Class`.

    Raises:
        NoDevice: The settings ask for a GPU and there is none.
        InvalidSpec: One of the files cannot be used.
    """
    settings = get_settings()
    configure_logs(settings)
    # Celery warns root because of pickle, which we do not accept; in a container we may be root.
    warnings.filterwarnings("ignore", category=SecurityWarning)
    devices = choose(settings, processes=processes)
    from worker import app as application

    # On a GPU nothing is limited: its memory is not the machine's.
    probed = probe(own, shares=shares(devices.threads) if devices.kind == "cpu" else None)
    keys = [offer_key(manifest) for manifest in probed]
    queues = [*devices.queues, *special_queues(keys, devices.queues)]
    application.use(devices, own, probed)
    application.app.worker_main(
        [
            "--quiet",
            "worker",
            "--pool=prefork",
            f"--concurrency={devices.processes}",
            f"--queues={','.join(queues)}",
            f"--loglevel={settings.log_level}",
            "--without-gossip",
            "--without-mingle",
            "--without-heartbeat",
        ]
    )


if __name__ == "__main__":
    serve(own=sys.argv[1:])
