"""`etascope data`: which data sets there are, fetching them, and checking them."""

from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated

import typer

from ib_core.errors import IBError, InvalidSpec

if TYPE_CHECKING:  # torch comes with it, a second that `--help` must not cost
    from ib_core.datasets import DatasetRow

app = typer.Typer(help="List, fetch and check data sets.", no_args_is_help=True)

#: From so many columns on, a terminal has room for the licences.
WIDE = 110
GROUPS = ("all", "music", "uci")
Names = Annotated[
    list[str] | None,
    typer.Argument(help=f"Names as `data list` shows them, or a group: {', '.join(GROUPS)}."),
]


@app.command("list")
def list_(
    every: Annotated[bool, typer.Option("--all", help="Each UCI data set on a line.")] = False,
) -> None:
    """Show every data set, whether it is here, and how to get it."""
    from rich.console import Console
    from rich.table import Table

    from ib_core.datasets import data_dir, list_datasets

    rows = list_datasets()
    uci = [row for row in rows if row.name.startswith("uci/")]
    console = Console(emoji=False)
    table = Table("name", "data set", "here", "size", box=None, header_style="bold")
    if console.width >= WIDE:
        table.add_column("licence")
    for row in rows:
        if every or row not in uci:
            here = "[green]yes[/]" if row.present else "no"
            cells = (row.name, row.title, here, _size(row), row.licence)
            table.add_row(*cells[: len(table.columns)])
    if not every:
        count = f"{sum(row.present for row in uci)} of {len(uci)}"
        table.add_row("uci/...", f"{len(uci)} UCI tables", count)
    console.print(table)
    console.print(f"\nData folder: {data_dir()}", soft_wrap=True)
    if not all(row.present for row in rows):
        console.print("To get one: etascope data fetch NAME")


@app.command()
def fetch(
    names: Names,
    mirror: Annotated[
        str | None,
        typer.Option(envvar="ETASCOPE_DATA_MIRROR", help="Address of a folder with the files."),
    ] = None,
) -> None:
    """Download data sets, verified before they are put in place."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    from ib_core import datasets
    from ib_core.datasets import Progress as Download

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    failed: list[str] = []
    with Progress(*columns, transient=True) as progress:
        for name in _chosen(names or [], datasets.list_datasets()):
            bar = progress.add_task(name, total=None)

            def show(news: Download, bar: object = bar) -> None:
                progress.update(bar, completed=news.received, total=news.total)  # type: ignore[arg-type]

            with _noting(name, failed):
                checked = datasets.fetch_dataset(name, show, mirror=mirror)
                note = "" if checked.verified else " (no published hash to compare with)"
                progress.console.print(f"[green]{name}[/] is here and loads{note}.")
            progress.remove_task(bar)
    if failed:
        raise typer.Exit(1)


@app.command()
def check(names: Names = None) -> None:
    """Read data sets from disk and compare them with what was published; default: all here."""
    from rich.console import Console

    from ib_core import datasets

    rows = datasets.list_datasets()
    chosen = _chosen(names, rows) if names else [row.name for row in rows if row.present]
    console = Console(emoji=False)
    failed: list[str] = []
    for name in chosen:
        with _noting(name, failed):
            checked = datasets.check_dataset(name)
            verdict = "[green]as published[/]" if checked.verified else "loads; no published hash"
            console.print(f"{name}: {verdict}, sha256 {checked.sha256[:16]}", soft_wrap=True)
    if failed:
        raise typer.Exit(1)


@contextmanager
def _noting(name: str, failed: list[str]) -> Iterator[None]:
    """Let the other data sets go on when one fails; its name is added to `failed`."""
    try:
        yield
    except IBError as error:
        from rich.console import Console

        failed.append(name)
        Console(stderr=True).print(f"[red]{name}[/]: {error}", soft_wrap=True)


def _chosen(names: list[str], rows: "list[DatasetRow]") -> list[str]:
    """Return the data sets meant by names and groups, each once, in the order given."""
    known = [row.name for row in rows]
    groups = {
        "all": known,
        "music": [row.name for row in rows if row.kind == "music"],
        "uci": [name for name in known if name.startswith("uci/")],
    }
    found: dict[str, None] = {}
    for name in names:
        full = name if name in known or f"uci/{name}" not in known else f"uci/{name}"
        if full not in groups and full not in known:
            near = get_close_matches(name, known, n=3)
            guess = f" Did you mean {' or '.join(near)}?" if near else ""
            raise InvalidSpec(
                f"There is no data set called {name!r}.{guess} `etascope data list --all` "
                f"shows them; groups are {', '.join(GROUPS)}.",
                field="dataset",
            )
        found.update(dict.fromkeys(groups.get(full, [full])))
    return list(found)


def _size(row: "DatasetRow") -> str:
    if row.size_bytes is None:
        return "?"
    return f"{row.size_bytes / 1e6:.1f} MB" if row.size_bytes else "bundled"
