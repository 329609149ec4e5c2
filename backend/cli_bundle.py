"""`etascope import`, `import-bundle`, `verify`: results from elsewhere, and whether they hold."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ib_core.errors import InvalidSpec

if TYPE_CHECKING:
    from backend.schemas import ImportRead


def import_bundle(
    bundle: Annotated[
        str, typer.Argument(help="A bundle's folder, or paper: the one that comes with Etascope.")
    ] = "paper",
) -> None:
    """Put a bundle of studies into this installation's history; twice changes nothing."""
    from backend import migrate
    from backend.cli_server import read_settings
    from backend.db import transaction
    from backend.services.bundles.storing import store
    from ib_core.reproduction import SHIPPED, find_bundle

    found = find_bundle(bundle)
    migrate.upgrade(read_settings())
    source = "the bundle that comes with Etascope" if bundle == SHIPPED else f"the bundle {bundle}"
    with transaction() as session:
        stored = store(session, bundle=found, source=source)
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
    from backend.cli_submit import sentences
    from backend.client import Client

    with sentences(), Client(server, token=token) as client:
        return client.import_runs(file, name=name, study_id=study)


def _to_database(file: Path, name: str | None, study: int | None) -> "ImportRead":
    from backend import migrate
    from backend.cli_server import read_settings
    from backend.db import get_engine, transaction
    from backend.services import importing

    settings = read_settings()
    rows = importing.read_rows(file.read_bytes(), most_bytes=settings.max_body_bytes)
    trials = importing.read_trials(rows)
    migrate.upgrade(settings)
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


def verify(
    bundle: Annotated[str, typer.Argument(help="A bundle's folder, or paper.")] = "paper",
    sample: Annotated[
        int,
        typer.Option(min=1, help="How many random trials to train; kinds of tasks take turns."),
    ] = 20,
    seed: Annotated[int, typer.Option(help="Of the choice; another one draws others.")] = 1,
    max_minutes: Annotated[
        float, typer.Option(help="Leave out trials whose forecast is longer than this in all.")
    ] = 15.0,
) -> None:
    """Train random trials of a bundle again and compare; exit code 1 if one does not hold.

    The kinds of tasks (uci, music, mnist_classifier, ...) take turns, and in a kind its tasks, so
    that a few trials touch many. Compared are losses, accuracies and how the trial ended; numbers
    agree within a thousandth, accuracies also within one example.
    """
    from backend.paper.verify_table import print_checks
    from ib_core.reproduction import check, draw, find_bundle

    found = find_bundle(bundle)
    drawn = draw(found, sample, seed=seed, most_seconds=60 * max_minutes)
    if drawn.missing:
        names = sorted(drawn.missing)
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        lost = sum(drawn.missing.values())
        typer.echo(f"Left out: {lost} trials of {shown}, whose data is not here.")
    if not drawn.results:
        raise InvalidSpec(
            "No trial of the bundle can be trained on this machine"
            + (f" in {max_minutes:g} minutes." if drawn.too_long else "."),
            hint="--max-minutes gives them more time." if drawn.too_long else None,
        )
    checks = check(drawn.results)
    print_checks(checks, drawn)
    if any(one.verdict == "differs" for one in checks):
        raise typer.Exit(1)
