"""`etascope replay`: why a trial broke, here or by a server's worker."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backend.cli.settings_flags import with_settings
from backend.cli.submit import Server, Token, connect, sentences
from backend.cli.sweep import registered

if TYPE_CHECKING:
    from backend.client import Client
    from backend.schemas import RecordingRead

#: Between two looks at a replay that a worker does.
LOOK_SECONDS = 1.0


@with_settings
def replay(
    asked: dict[str, Any],
    server: Server = None,
    token: Token = None,
    csv: Annotated[Path | None, typer.Option(help="Write one line a recorded step.")] = None,
) -> None:
    """Train a trial again alone, every step around its break recorded, and say why it broke.

    `etascope replay 12` has a worker do it with trial 12 of a server;
    `etascope replay digits_mlp --methods eb,ib --lrs 3 --seeds 1,` does it here, with every trial
    of that grid.
    """
    number = asked.get("task", "")
    if number.isdecimal():
        _on_server(int(number), server, token, csv)
    else:
        _here(asked, csv)


def _here(asked: dict[str, Any], csv: Path | None) -> None:
    import csv as tables

    from ib_core.sweep import replay_trial, specs_of

    specs = specs_of(registered(asked), typed=True)
    lines: list[list[Any]] = []
    for one in (trial for spec in specs for trial in spec.expand()):
        found = replay_trial(one, device=specs[0].device)
        assert found is not None  # nobody calls it off
        name = [one.task, one.method, one.lr, one.seed]
        typer.echo(
            f"{one.method} at rate {one.lr:g}, seed {one.seed}: {found.result.outcome.value}"
        )
        typer.echo(f"  {found.story.text}")
        columns, rows = found.recording.table()
        lines.append(["task", "method", "lr", "seed", *columns])
        lines += [[*name, *row] for row in rows]
    if csv is not None:
        with csv.open("w", newline="") as opened:
            tables.writer(opened, lineterminator="\n").writerows(lines)


def _on_server(trial: int, server: str | None, token: str | None, csv: Path | None) -> None:
    with sentences(), connect(server, token) as client:
        found = _awaited(client, trial)
        typer.echo(" ".join(found.story))
        typer.echo(found.agreement or "")
        if csv is not None:
            client.export_recording(trial, csv)


def _awaited(client: "Client", trial: int) -> "RecordingRead":
    """Return the recording once a worker has made it."""
    found = client.replay(trial)
    for message in found.messages:
        typer.echo(message, err=True)
    while found.state in ("queued", "running"):
        time.sleep(LOOK_SECONDS)
        found = client.recording(trial)
    if found.state == "failed":
        typer.echo(f"The replay failed: {found.error}", err=True)
        raise typer.Exit(1)
    return found
