"""What a step of a series costs, from races that workers have run on its network."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.models import ShardState, TimingRow
from backend.services.analysis.series import BASELINE, OF_A_METHOD, Key
from ib_core.metrics import Number


def network_of(key: Key) -> dict[str, Any]:
    """Return what decides the work of a step besides the method; not data, epochs or study."""
    return {
        "task": key.task,
        "profile": key.profile,
        "activation": key.activation,
        "clip": key.clip,
        "mu": key.mu,
        "batch_size": key.batch_size,
        "options": key.group.settings,
    }


def method_of(key: Key) -> dict[str, Any]:
    """Return a method's own settings."""
    own = {name: value for name, value in key.settings.items() if name in OF_A_METHOD}
    return {"batch_rule": key.batch_rule, **own} if key.batch_rule else own


def name_of(key: Key) -> str:
    """Return a name for a method with its own settings, the same whenever they are."""
    own = method_of(key)
    return f"{key.method} {json.dumps(own, sort_keys=True)}" if own else key.method


def network_hash(key: Key) -> str:
    """Return the address of a network: equal for series whose steps do equal work."""
    network = network_of(key)
    return hashlib.sha256(json.dumps(network, sort_keys=True).encode()).hexdigest()


def step_costs(session: Session, keys: Sequence[Key]) -> dict[Key, Number]:
    """Return what was measured, by series; the newest measurement counts."""
    by_hash: dict[str, list[Key]] = {}
    for key in keys:
        if not key.imported:
            by_hash.setdefault(network_hash(key), []).append(key)
    found: dict[Key, Number] = {}
    if not by_hash:
        return found
    done = (
        select(TimingRow.network_hash, TimingRow.results, TimingRow.measured_on)
        .where(TimingRow.network_hash.in_(by_hash), TimingRow.state == ShardState.DONE)
        .order_by(TimingRow.id)
    )
    for address, results, measured_on in session.execute(done):
        for key in by_hash[address]:
            if one := (results or {}).get(name_of(key)):
                found[key] = _number(one, measured_on, is_baseline=key.method == BASELINE)
    return found


def _number(one: Mapping[str, Any], measured_on: str, *, is_baseline: bool) -> Number:
    rounds = int(one["rounds"])
    if is_baseline:
        return Number(1.0, n=rounds, note="This is what the others are compared with.")
    note = f"Measured in {rounds} rounds on {measured_on}; low and high are quartiles."
    return Number(one["value"], one["low"], one["high"], n=rounds, note=note)
