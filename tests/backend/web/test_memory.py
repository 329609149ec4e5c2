"""What a web process does without."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
CODE = """
from backend.web.memory import stay_small
stay_small()
import pyarrow, plotly.graph_objects as go
assert pyarrow.array([1.5, None]).null_count == 1
assert go.Figure(data=[{"type": "scatter", "x": [1], "y": [2]}]).to_json()
try:
    import pandas
except ImportError:
    print("none")
"""


def test_exports_and_figures_do_without_pandas():
    command = [sys.executable, "-c", CODE]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "none"
