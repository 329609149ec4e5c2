"""`etascope db`, `import`, `import-bundle`: care of the database, and results from elsewhere."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backend.cli.server import read_settings
from backend.errors import Unavailable

if TYPE_CHECKING:
    pass

app = typer.Typer(help="Upgrade, back up, restore and check the database.", no_args_is_help=True)


@app.command()
def upgrade() -> None:
    """Bring the database to this version's schema; SQLite is backed up before."""
    from backend.operations import database

    done = database.upgrade(read_settings())
    copy = f" A copy of what it was is in {done.backup}." if done.backup else ""
    typer.echo(f"The database is up to date ({done.after}).{copy}")


@app.command()
def backup(file: Annotated[Path, typer.Argument(help="A new file.")]) -> None:
    """Copy the whole database to a file, also while Etascope runs."""
    from backend.operations.database import back_up

    back_up(read_settings(), file)
    typer.echo(f"Wrote {file} ({file.stat().st_size / 1e6:.1f} MB).")


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(help="A file made by `etascope db backup`.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Replace the whole database by a copy."""
    from backend.operations import database
    from backend.operations.launcher import only_one

    settings = read_settings()
    question = f"Replace everything in Etascope's database by {file}?"
    if not (yes or typer.confirm(question)):
        raise typer.Exit(1)
    with only_one(settings.home):  # a running `up` would go on writing to the old one
        kept = database.restore(settings, file)
        database.upgrade(settings)
    typer.echo(f"Restored {file}." + (f" What was there before is in {kept}." if kept else ""))


@app.command()
def check(
    repair: Annotated[bool, typer.Option(help="Mend what can be mended, losing nothing.")] = False,
) -> None:
    """Look for rows that contradict each other; exit code 1 if some are left."""
    from sqlalchemy.exc import SQLAlchemyError

    from backend import db
    from backend.services import maintenance

    read_settings()
    try:
        with db.transaction() if repair else db.reading() as session:
            problems = maintenance.repair(session) if repair else maintenance.check(session)
    except SQLAlchemyError as error:
        cause = getattr(error, "orig", None) or error
        raise Unavailable(
            f"The database cannot be checked: {cause}.", hint="Run `etascope db upgrade` first."
        ) from None
    for problem in problems:
        mended = " Mended." if repair and problem.repairable else ""
        typer.echo(f"{problem.sentence}{mended}")
    if any(not (repair and problem.repairable) for problem in problems):
        raise typer.Exit(1)
    typer.echo("No contradiction is left." if problems else "No contradiction was found.")


def import_bundle(
    bundles: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[BUNDLE]...",
            help="Folders of bundles, or of those that come with Etascope: paper, methods, "
            "studies; without any: all of these.",
        ),
    ] = None,
) -> None:
    """Put bundles of studies into this installation's history; twice changes nothing."""
    from backend.db import transaction
    from backend.operations import database
    from backend.services.reproduction import store_bundle
    from ib_core.reproduction import SHIPPED_NAMES, find_bundle

    named = bundles or SHIPPED_NAMES
    found = {name: find_bundle(name) for name in named}
    database.upgrade(read_settings())
    for name, bundle in found.items():
        ours = name in SHIPPED_NAMES
        source = "the bundle that comes with Etascope" if ours else f"the bundle {name}"
        with transaction() as session:
            stored = store_bundle(session, bundle=bundle, source=source)
        typer.echo(
            f"{stored.studies} studies with {stored.trials} trials; {stored.new} of them were new "
            "here."
        )
        if stored.left_out:
            typer.echo(f"{stored.left_out} trials of another engine version were left out.")
