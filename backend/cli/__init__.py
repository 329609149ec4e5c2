"""The `etascope` command, and the place where the parts are put together.

It may import everything and is imported by nobody. Every command imports what it needs when it
is run, not before, so that `etascope --help` answers at once.

| module | commands |
| --- | --- |
| `server` | up, api, worker, dashboard |
| `sweep`, `sweep_report` | sweep, replay, new-task: trained here, shown on the terminal |
| `submit` | submit, time: trained and measured by a server |
| `agent` | agent, sync: trained elsewhere, reported here |
| `paper` | report, verify |
| `transfer` | import, export, check |
| `data` | data |
| `administration` | user, token, db, import-bundle |
| `bench` | bench |
"""

import os
import sys
from typing import Annotated

import typer

from backend.cli import (
    administration,
    agent,
    bench,
    data,
    paper,
    server,
    submit,
    sweep,
    transfer,
)
from backend.errors import Unavailable
from backend.operations.programs import LaunchError
from ib_core.errors import IBError

# Read when torch is first imported: threads that spin while they wait slow each other and every
# other process on the machine, up to tenfold.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

#: Errors about this machine rather than about what was typed.
FAULTS = (LaunchError, Unavailable)
#: A module of these that is missing is a fault of ours, any other one a part not installed.
OURS = ("ib_core", "backend", "worker", "dashboard", "migrations")

app = typer.Typer(
    name="etascope",
    help="How far can the learning rate be turned before training breaks?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command()(server.up)
app.command()(sweep.sweep)
app.command()(sweep.replay)
app.command()(sweep.new_task)
app.command()(submit.submit)
app.command("time")(submit.time_steps)
app.command()(agent.agent)
app.command()(agent.sync)
app.command()(bench.bench)
app.command()(paper.report)
app.command("import")(transfer.import_)
app.command()(transfer.export)
app.command()(transfer.check)
app.command()(administration.import_bundle)
app.command()(paper.verify)
app.command()(server.api)
app.command()(server.worker)
app.command()(server.dashboard)
app.add_typer(data.app, name="data")
app.add_typer(administration.app, name="db")
app.add_typer(administration.user_app, name="user")
app.add_typer(administration.token_app, name="token")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            typer.echo(f"etascope {version('etascope')}")
        except PackageNotFoundError:
            typer.echo("etascope, run from a folder it is not installed from")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print it."),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command; an error is one sentence on stderr, exit code 2 if the input was bad."""
    try:
        app()
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] in OURS:
            raise
        typer.echo(f"This needs {error.name}: pip install 'etascope[server]'.", err=True)
        sys.exit(1)
    except IBError as error:
        hint = f" {error.hint}" if error.hint and error.hint not in error.message else ""
        typer.echo(f"{error.message}{hint}", err=True)
        sys.exit(1 if isinstance(error, FAULTS) else 2)
