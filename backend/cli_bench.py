"""`etascope bench`: ratios measured side by side on this machine."""

import json as json_module
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ib_core.errors import lookup

if TYPE_CHECKING:
    from rich.table import Table


def bench(
    what: Annotated[str, typer.Argument(help="sweep, service")] = "sweep",
    full: Annotated[bool, typer.Option(help="More rounds and longer sweeps.")] = False,
    json: Annotated[Path | None, typer.Option(help="Write the numbers.")] = None,
) -> None:
    """Measure, interleaved in one run, and print medians with their spread."""
    from rich.console import Console

    measure = lookup("benchmark", what, BENCHMARKS)
    console = Console()
    with console.status("measuring") as status:
        found = measure(full, lambda name: status.update(f"measuring {name}"))
    console.print(_table(found["rows"]))
    console.print(f"Measured with {found['surroundings']}.", highlight=False)
    if json is not None:
        json.write_text(json_module.dumps(found, indent=1) + "\n")


def _sweep(full: bool, tell: Callable[[str], None]) -> dict[str, Any]:
    from ib_core.bench.measure import surroundings
    from ib_core.bench.sweeps import race_sweeps

    rows = [
        {
            "sweep": result.name,
            "trials": result.trials,
            "times faster than one by one": str(result.speedup),
            "seconds": round(result.seconds, 3),
            "forecast": round(result.forecast, 3),
        }
        for result in race_sweeps(quick=not full, tell=tell)
    ]
    return {"benchmark": "sweep", "surroundings": surroundings(), "rows": rows}


def _service(full: bool, tell: Callable[[str], None]) -> dict[str, Any]:
    from backend.bench.service import measure_service
    from ib_core.bench.measure import surroundings

    rows = [row.cells() for row in measure_service(rounds=30 if full else 10, tell=tell)]
    return {"benchmark": "service", "surroundings": surroundings(), "rows": rows}


BENCHMARKS: dict[str, Callable[[bool, Callable[[str], None]], dict[str, Any]]] = {
    "sweep": _sweep,
    "service": _service,
}


def _table(rows: list[dict[str, Any]]) -> "Table":
    from rich.table import Table

    table = Table(*rows[0], box=None) if rows else Table("nothing could be measured")
    for row in rows:
        table.add_row(*(str(cell) for cell in row.values()))
    return table
