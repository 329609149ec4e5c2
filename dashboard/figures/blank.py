"""What stands where a picture will be: no axes that mean nothing."""

from typing import Any

NOTHING_YET: dict[str, Any] = {
    "data": [],
    "layout": {
        "xaxis": {"visible": False},
        "yaxis": {"visible": False},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
    },
}
