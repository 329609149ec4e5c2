"""`etascope bench`: ratios measured side by side on this machine."""

import json as json_module
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ib_core.errors import InvalidSpec, lookup

if TYPE_CHECKING:
    from rich.table import Table

    from ib_core.bench import PeerResult


def bench(
    what: Annotated[
        str,
        typer.Argument(
            help="core, methods, sweep, edge, own, launches, gpu, service, agents, ui, crowd or "
            "history"
        ),
    ] = "sweep",
    full: Annotated[bool, typer.Option(help="More rounds and longer sweeps.")] = False,
    json: Annotated[Path | None, typer.Option(help="Write the numbers.")] = None,
    markdown: Annotated[bool, typer.Option(help="Print the table as Markdown.")] = False,
    into: Annotated[
        Path | None,
        typer.Option(help="Put the table between its marks in a file, as docs/benchmarks.md."),
    ] = None,
) -> None:
    """Measure, interleaved in one run, and print medians with their spread."""
    from rich.console import Console

    measure = lookup("benchmark", what, BENCHMARKS)
    if into is not None:
        _text_with(into, what, "")  # minutes of measuring are not lost for want of a mark
    console = Console(emoji=False)
    with console.status("measuring") as status:

        def tell(name: str) -> None:
            status.update(f"measuring {name}")
            if not console.is_terminal:  # into a file: what takes so long
                typer.echo(f"measuring {name}", err=True)

        found = measure(full, tell)
    if markdown:
        console.out(_as_markdown(found["rows"]), highlight=False)
    else:
        console.print(_table(found["rows"]))
    console.print(f"Measured with {found['surroundings']}.", highlight=False)
    if found.get("missing"):
        console.print(found["missing"], highlight=False)
    if json is not None:
        json.write_text(json_module.dumps(found, indent=1) + "\n")
    if into is not None:
        into.write_text(_text_with(into, what, _told(found)), "utf-8")


def _core(full: bool, tell: Callable[[str], None]) -> dict[str, Any]:
    from ib_core.bench import race_steps, surroundings

    rows = [
        {
            "step of": result.name,
            "method": result.method,
            "over EB": str(result.over_eb),
            "before compiling": "" if result.uncompiled is None else str(result.uncompiled),
            "over stock torch": "" if result.over_stock is None else str(result.over_stock),
            "paper's bound": "" if result.printed is None else f"{result.printed:.4f}",
        }
        for result in race_steps(quick=not full, tell=tell)
    ]
    return {"benchmark": "core", "surroundings": surroundings(), "rows": rows}


def _methods(full: bool, tell: Callable[[str], None]) -> dict[str, Any]:
    from backend.services.timings import race_networks
    from ib_core.bench import surroundings
    from ib_core.reproduction import find_bundle

    seconds = 120.0 if full else 20.0
    races = race_networks(find_bundle("methods").results, seconds=seconds, tell=tell)
    rows = step_cost_rows(races)
    return {"benchmark": "methods", "surroundings": surroundings(), "rows": rows, "races": races}


def step_cost_rows(races: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a line a method: its step over EB's, the median of the networks and both ends."""
    found: dict[str, list[tuple[float, str]]] = {}
    for race in races:
        for name, one in race["results"].items():
            place = (one["value"], _network(race["network"]))
            found.setdefault(name.partition(" ")[0], []).append(place)
    return [
        {
            "method": method,
            "networks": len(costs),
            "over EB, median": f"{median(cost for cost, _ in costs):.3g}",
            "least": "{:.3g} ({})".format(*min(costs)),
            "most": "{:.3g} ({})".format(*max(costs)),
        }
        for method, costs in found.items()
    ]


def _network(network: Mapping[str, Any]) -> str:
    """Return a network's task, and what of its settings is not usual."""
    told = {"clip": network["clip"], "mu": network["mu"], **network["options"]}
    return ", ".join(
        [network["task"], *(f"{name} {value}" for name, value in told.items() if value)]
    )


def _sweep(full: bool, tell: Callable[[str], None]) -> dict[str, Any]:
    from backend.bench.service import submitted_seconds
    from ib_core.bench import (
        PEER_CASES,
        measure_growth,
        measure_memory,
        race_peers,
        race_sweeps,
        surroundings,
    )

    rows = [
        {
            "sweep": result.name,
            "trials": result.trials,
            "we are times faster": str(result.speedup),
            "than": "a plain loop",
            "seconds": f"{result.seconds:.3g}",
            "forecast": f"{result.forecast:.3g}",
        }
        for result in race_sweeps(quick=not full, tell=tell)
    ]
    peers = list(race_peers(quick=not full, tell=tell))
    tell("a server that is up")
    submitted = submitted_seconds(PEER_CASES[0].sweep()) if peers else None
    for result in peers:
        rows.append(_peer_row(f"{result.name}, with start-up", result, str(result.times)))
        if submitted and result.seconds and result.name == PEER_CASES[0].name:
            times = f"{result.seconds / submitted:.3g}"
            rows.append(_peer_row(f"{result.name}, submitted to a server", result, times))
    rows += [
        {
            "sweep": f"growth with {growth.of}",
            "trials": "",
            "we are times faster": f"power {growth.exponent:.2f}",
            "than": "",
            "seconds": growth.seconds,
            "forecast": "",
        }
        for growth in measure_growth(quick=not full, tell=tell)
    ]
    rows += [
        {
            "sweep": f"peak memory, {name}",
            "trials": "",
            "we are times faster": f"{ratio:.2f} of the forecast",
            "than": "",
            "seconds": "",
            "forecast": "",
        }
        for name, ratio in measure_memory(tell)
    ]
    return {"benchmark": "sweep", "surroundings": surroundings(), "rows": rows}


def _edge(full: bool, tell: Callable[[str], None]) -> dict[str, Any]:
    from ib_core.bench import compare_edges, surroundings

    rows = [
        {
            "task": result.task,
            "method": result.method,
            "edge found": result.found.text,
            "on the grid": "above the range" if result.dense > 1e12 else f"{result.dense:.4g}",
            "factor between": f"{result.apart:.3f}",
            "trials": result.trials,
            "of the grid": result.grid,
            "times fewer": f"{result.fewer:.3g}",
            "seeds not monotone": f"{result.ragged} of {result.seeds}",
        }
        for result in compare_edges(quick=not full, tell=tell)
    ]
    return {"benchmark": "edge", "surroundings": surroundings(), "rows": rows}


def _own(full: bool, tell: Callable[[str], None]) -> dict[str, Any]:
    from ib_core.bench import race_own, surroundings

    rows = [
        {
            "model": result.name,
            "trials": result.members,
            "we are times faster than a plain loop": str(result.times),
            "than one with fused=True": ""
            if result.times_fused is None
            else str(result.times_fused),
            "floor": f"{result.floor:g}",
            "way": result.way,
        }
        for result in race_own(quick=not full, tell=tell)
    ]
    return {"benchmark": "own", "surroundings": surroundings(), "rows": rows}


def _launches(full: bool, tell: Callable[[str], None]) -> dict[str, Any]:
    from ib_core.bench import LAUNCH_BUDGET, count_steps, surroundings
    from ib_core.methods import METHODS

    counted = [name for name, method in METHODS.items() if full or not method.exact]
    rows = [
        {
            "step of": result.task,
            "method": result.method,
            "of 4": result.few,
            "of 40": result.many,
            "with torch calls alone": result.in_torch,
            "over EB": f"{result.over_eb:.2f}",
            "budget": LAUNCH_BUDGET.get(result.method, ""),
        }
        for result in count_steps(counted, tell)
    ]
    return {"benchmark": "launches", "surroundings": surroundings(), "rows": rows}


def _gpu(full: bool, tell: Callable[[str], None]) -> dict[str, Any]:
    from ib_core.bench import gpu_here, measure_gpu, missing_here, surroundings

    here = gpu_here()
    rows = list(measure_gpu("cuda" if here["gpu"] else None, full=full, tell=tell))
    where = {**surroundings(), **here}
    return {
        "benchmark": "gpu",
        "surroundings": where,
        "rows": rows,
        "missing": missing_here(here),
    }


def _peer_row(name: str, result: "PeerResult", times: str) -> dict[str, Any]:
    here = result.seconds is not None
    return {
        "sweep": name,
        "trials": result.trials,
        "we are times faster": times if here else "not installed: extra `bench`",
        "than": f"{result.tool}, with start-up" if here else result.tool,
        "seconds": f"{result.seconds:.3g}" if here else "",
        "forecast": "",
    }


def _service(full: bool, tell: Callable[[str], None]) -> dict[str, Any]:
    from backend.bench.service import measure_service
    from ib_core.bench import surroundings

    rows = [row.cells() for row in measure_service(rounds=30 if full else 10, tell=tell)]
    return {"benchmark": "service", "surroundings": surroundings(), "rows": rows}


def _ui(full: bool, tell: Callable[[str], None]) -> dict[str, Any]:
    from backend.bench.service import measure_watchers
    from backend.bench.ui import measure_ui
    from ib_core.bench import surroundings

    rows = [row.cells() for row in measure_ui(rounds=15 if full else 3, tell=tell)]
    rows += [row.cells() for row in measure_watchers(rounds=8 if full else 3, tell=tell)]
    return {"benchmark": "ui", "surroundings": surroundings(), "rows": rows}


def _crowd(full: bool, tell: Callable[[str], None]) -> dict[str, Any]:
    from backend.bench.crowd import measure_crowd
    from ib_core.bench import surroundings

    rows = measure_crowd(rounds=30 if full else 10, tell=tell)
    return {"benchmark": "crowd", "surroundings": surroundings(), "rows": rows}


def _agents(_full: bool, tell: Callable[[str], None]) -> dict[str, Any]:
    from backend.bench.crowd import measure_agents
    from ib_core.bench import surroundings

    rows = measure_agents(tell=tell)
    return {"benchmark": "agents", "surroundings": surroundings(), "rows": rows}


def _history(full: bool, tell: Callable[[str], None]) -> dict[str, Any]:
    from backend.bench.history import measure_history
    from ib_core.bench import surroundings

    rows = measure_history(full=full, tell=tell)
    return {"benchmark": "history", "surroundings": surroundings(), "rows": rows}


BENCHMARKS: dict[str, Callable[[bool, Callable[[str], None]], dict[str, Any]]] = {
    "core": _core,
    "methods": _methods,
    "sweep": _sweep,
    "edge": _edge,
    "own": _own,
    "launches": _launches,
    "gpu": _gpu,
    "service": _service,
    "ui": _ui,
    "crowd": _crowd,
    "agents": _agents,
    "history": _history,
}


def _table(rows: list[dict[str, Any]]) -> "Table":
    from rich.table import Table

    table = Table(*rows[0], box=None) if rows else Table("nothing could be measured")
    for column in table.columns:
        column.overflow = "fold"  # a name that is cut says nothing
    for row in rows:
        table.add_row(*(str(cell) for cell in row.values()))
    return table


def put_between_marks(text: str, name: str, part: str, *, where: object) -> str:
    """Return a Markdown text with a new part between its marks of that name.

    Args:
        text: What has the marks.
        name: Of the marks, `<!-- name -->` and `<!-- end of name -->`.
        part: What comes between them.
        where: The file, to say so.

    Raises:
        InvalidSpec: There are no such marks.
    """
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, found, rest = text.partition(begin)
    if not found or end not in rest:
        raise InvalidSpec(
            f"{where} has no marks {begin} and {end} to put the table between.", field="into"
        )
    return f"{before}{begin}\n{part}\n{end}{rest.partition(end)[2]}"


def _text_with(file: Path, name: str, table: str) -> str:
    """Return a file's text with a benchmark's table in its place."""
    if not file.is_file():
        raise InvalidSpec(f"There is no file {file} to put the table into.", field="into")
    return put_between_marks(file.read_text("utf-8"), f"bench {name}", table, where=file)


def _told(found: dict[str, Any]) -> str:
    """Return a table with the command and the machine it comes from."""
    where = found["surroundings"]
    machine = f"{where['cores']} cores, torch {where['torch'].partition('+')[0]}"
    return f"`etascope bench {found['benchmark']}`, {machine}:\n\n{_as_markdown(found['rows'])}"


def _as_markdown(rows: list[dict[str, Any]]) -> str:
    lines = [list(rows[0]), ["---"] * len(rows[0]), *([str(c) for c in r.values()] for r in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
