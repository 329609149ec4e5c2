"""The `etascope` command. Every subcommand imports what it needs when it is run, not before."""

import os
import sys
from typing import Annotated

import typer

from backend import (
    cli_accounts,
    cli_bench,
    cli_bundle,
    cli_data,
    cli_db,
    cli_paper,
    cli_server,
    cli_submit,
    cli_sweep,
)
from backend.child import LaunchError
from backend.errors import Unavailable
from ib_core.errors import IBError

# Read when torch is first imported: threads that spin while they wait slow each other and every
# other process on the machine, up to tenfold.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

#: Errors about this machine rather than about what was typed.
FAULTS = (LaunchError, Unavailable)

app = typer.Typer(
    name="etascope",
    help="How far can the learning rate be turned before training breaks?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command()(cli_server.up)
app.command()(cli_sweep.sweep)
app.command()(cli_submit.submit)
app.command()(cli_bench.bench)
app.command()(cli_paper.report)
app.command("import")(cli_bundle.import_file)
app.command()(cli_bundle.import_bundle)
app.command()(cli_bundle.verify)
app.command()(cli_server.api)
app.command()(cli_server.worker)
app.command()(cli_server.dashboard)
app.add_typer(cli_data.app, name="data")
app.add_typer(cli_db.app, name="db")
app.add_typer(cli_accounts.user_app, name="user")
app.add_typer(cli_accounts.token_app, name="token")


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
    except IBError as error:
        hint = f" {error.hint}" if error.hint and error.hint not in error.message else ""
        typer.echo(f"{error.message}{hint}", err=True)
        sys.exit(1 if isinstance(error, FAULTS) else 2)


if __name__ == "__main__":
    main()
