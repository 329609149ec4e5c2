"""`etascope worker`: listen, train, and stop politely."""

import warnings

from celery.platforms import SecurityWarning

from backend import logs
from backend.settings import get_settings
from worker.device import choose


def serve(*, processes: int | None = None) -> None:
    """Train what is queued until a signal comes.

    SIGTERM or Ctrl-C: shards that are nearly done are finished, others go back to the queue.

    Args:
        processes: Number of training processes; None: one a GPU, or one for the processor.

    Raises:
        NoDevice: The settings ask for a GPU and there is none.
    """
    settings = get_settings()
    logs.configure(settings)
    # Celery warns root because of pickle, which we do not accept; in a container we may be root.
    warnings.filterwarnings("ignore", category=SecurityWarning)
    devices = choose(settings, processes=processes)
    from worker import app as application

    application.use(devices)
    application.app.worker_main(
        [
            "--quiet",
            "worker",
            "--pool=prefork",
            f"--concurrency={devices.processes}",
            f"--queues={','.join(devices.queues)}",
            f"--loglevel={settings.log_level}",
            "--without-gossip",
            "--without-mingle",
            "--without-heartbeat",
        ]
    )


if __name__ == "__main__":
    serve()
