"""Asks the web process in this container whether it answers; its exit code is for the engine."""

import os
import sys
import urllib.request

SECONDS = 4.0


def is_healthy(port: str) -> bool:
    """Return whether a web process on this machine answers; asks nothing of the database."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"http://127.0.0.1:{port}/api/health", timeout=SECONDS) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(0 if is_healthy(os.environ.get("ETASCOPE_PORT", "8050")) else 1)
