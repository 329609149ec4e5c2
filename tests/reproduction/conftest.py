import os

import pytest

from ib_core.datasets import DATASETS


@pytest.fixture
def needs_data():
    """Skip, and say so, unless the named data sets are in the data folder."""

    def check(*names: str) -> None:
        missing = [name for name in names if not DATASETS[name].present()]
        if missing:
            pytest.skip(
                f"no data for {', '.join(missing)}: set ETASCOPE_DATA_DIR to a folder with it"
            )

    return check


@pytest.fixture
def needs_recorded_runs():
    """Skip, and say so, unless the authors' recorded runs are in the data folder."""
    folder = os.environ.get("ETASCOPE_DATA_DIR", "")
    if not os.path.exists(os.path.join(folder, "paper", "authors_runs.csv.gz")):
        pytest.skip("no recorded runs: set ETASCOPE_DATA_DIR to a folder with paper/")
