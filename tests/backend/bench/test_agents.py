"""The agents' bench: real requests to a real process, in miniature."""

import pytest

from backend.bench import crowd


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_few_cells_are_measured_on_every_database() -> None:
    told: list[str] = []
    few = {**crowd.AGENTS_SWEEP, "learning_rates": "0.01:10:12", "seeds": 2}
    rows = crowd.measure_agents(tell=told.append, sweep=few)
    assert len(rows) == 5 * len(told)
    waits = [row for row in rows if not row["what"].startswith("memory")]
    assert all(0 < row["p50 ms"] <= row["p99 ms"] <= row["worst ms"] for row in waits)
    # Four cells are left when the others have warmed the service up.
    lines = [row["what"] for row in waits if row["what"].startswith("line")]
    assert all(what.endswith(f"({4 * crowd.LINES})") for what in lines)
