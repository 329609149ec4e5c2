"""How long a grid takes on an installation that is up, from the request to the last loss."""

import time
from statistics import median
from typing import Any

from backend.bench.web_process import web_process

ROUNDS = 3


def submitted_seconds(sweep: dict[str, Any]) -> float:
    """Return the median time of a sweep whose worker has trained before.

    Args:
        sweep: Its body; every round takes seeds of its own, so that nothing is known yet.
    """
    seeds, taken = list(sweep["seeds"]), []
    with web_process(worker=True) as web:
        for number in range(ROUNDS + 1):
            fresh = [seed + number * len(seeds) for seed in seeds]
            began = time.perf_counter()
            _, submitted = web.submit({**sweep, "seeds": fresh})
            taken.append(web.wait_for(submitted) - began)
    return median(taken[1:])  # the first waits for torch and the data
