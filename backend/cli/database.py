"""`etascope db`, `import`, `import-bundle`: care of the database, and results from elsewhere."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backend.cli.server import read_settings
from backend.errors import Unavailable
from ib_core.errors import InvalidSpec

if TYPE_CHECKING:
    from backend.schemas import ImportRead

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
    bundle: Annotated[
        str, typer.Argument(help="A bundle's folder, or paper: the one that comes with Etascope.")
    ] = "paper",
) -> None:
    """Put a bundle of studies into this installation's history; twice changes nothing."""
    from backend.db import transaction
    from backend.operations import database
    from backend.services.reproduction import store_bundle
    from ib_core.reproduction import SHIPPED, find_bundle

    found = find_bundle(bundle)
    database.upgrade(read_settings())
    source = "the bundle that comes with Etascope" if bundle == SHIPPED else f"the bundle {bundle}"
    with transaction() as session:
        stored = store_bundle(session, bundle=found, source=source)
    typer.echo(
        f"{stored.studies} studies with {stored.trials} trials; {stored.new} of them were new here."
    )
    if stored.left_out:
        typer.echo(f"{stored.left_out} trials of another engine version were left out.")


def import_file(
    file: Annotated[Path, typer.Argument(help="A CSV of runs, plain or .gz; or our own export.")],
    name: Annotated[str | None, typer.Option(help="The new study's name.")] = None,
    study: Annotated[int | None, typer.Option(help="Put them into this study.")] = None,
    server: Annotated[
        str | None,
        typer.Option(envvar="ETASCOPE_SERVER", help="Default: this machine's own database."),
    ] = None,
    token: Annotated[
        str | None, typer.Option(envvar="ETASCOPE_TOKEN", help="Needed where accounts are on.")
    ] = None,
) -> None:
    """Bring runs made elsewhere into a study, to lie over our own curves."""
    if not file.is_file():
        raise InvalidSpec(f"There is no file {file}.")
    found = (
        _to_server(server, token, file, name, study) if server else _to_database(file, name, study)
    )
    skipped = f", {found.skipped} without any loss left out" if found.skipped else ""
    typer.echo(
        f"Study {found.study_id}: {found.imported} runs imported, {found.reused} were known"
        f"{skipped}."
    )


def _to_server(
    server: str, token: str | None, file: Path, name: str | None, study: int | None
) -> "ImportRead":
    from backend.cli.submit import sentences
    from backend.client import Client

    with sentences(), Client(server, token=token) as client:
        return client.import_runs(file, name=name, study_id=study)


def _to_database(file: Path, name: str | None, study: int | None) -> "ImportRead":
    from backend.db import get_engine, transaction
    from backend.operations import database
    from backend.services import importing

    settings = read_settings()
    rows = importing.read_rows(file.read_bytes(), most_bytes=settings.max_body_bytes)
    trials = importing.read_trials(rows)
    database.upgrade(settings)
    new = importing.store_trials(get_engine(), trials)  # a server may be writing too
    with transaction() as session:
        return importing.store(
            session,
            found=trials,
            new=new,
            source=file.name,
            study_id=study,
            name=name or f"Imported: {file.name}"[:200],
            owner_id=None,
        )
