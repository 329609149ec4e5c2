"""A trial's address is a hash of everything that decides its result."""

import hashlib
import json

from ib_core.sweep.spec import TrialSpec

#: Bumped by every change that moves a number. Only trials of one version may share a plot.
ENGINE_VERSION = "1"


def fingerprint(trial: TrialSpec, data_hash: str) -> str:
    """Return the trial's content address, 64 hexadecimal digits.

    Device and shard are left out: they move a result by rounding only, and are in its record.

    Args:
        trial: A trial in normal form (settings its method ignores are None).
        data_hash: `Dataset.sha256` of the data it is trained on.
    """
    content = {"engine": ENGINE_VERSION, "data": data_hash, "trial": trial.as_dict()}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
