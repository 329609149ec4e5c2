"""`etascope import`, `export` and `check`: runs in, studies out, and a gate for a pipeline."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from backend.cli.server import read_settings
from ib_core.errors import InvalidSpec

if TYPE_CHECKING:  # what `--help` need not wait for
    from backend.client import Client
    from backend.schemas import ImportPreview, ImportRead, ScorecardRow, StudyRead
    from backend.trackers import Found

TRACKERS = ("optuna", "mlflow", "wandb", "tensorboard", "aim", "table")
MOST_SHOWN = 10

Server = Annotated[
    str | None,
    typer.Option(envvar="ETASCOPE_SERVER", help="Default: this machine's own database."),
]
Running = Annotated[
    str | None, typer.Option(envvar="ETASCOPE_SERVER", help="Default: the one here.")
]
Token = Annotated[
    str | None, typer.Option(envvar="ETASCOPE_TOKEN", help="Needed where accounts are on.")
]


def import_(
    source: Annotated[
        str,
        typer.Argument(help=f"A CSV of runs, our own export, or one of {', '.join(TRACKERS)}."),
    ],
    store: Annotated[
        str | None, typer.Argument(help="Of a tracker: its address, folder or file.")
    ] = None,
    lr: Annotated[str, typer.Option(help="What the source calls the rate.")] = "lr",
    method: Annotated[
        str, typer.Option(help="What it calls the method; =adam means adam for all.")
    ] = "=default",
    seed: Annotated[str | None, typer.Option(help="Default: runs alike are numbered.")] = None,
    loss: Annotated[str | None, typer.Option(help="Default: the source's own result.")] = None,
    test_loss: Annotated[str | None, typer.Option(help="Of unseen data.")] = None,
    task: Annotated[str | None, typer.Option(help="Default: the source's own name.")] = None,
    epochs: Annotated[str | None, typer.Option(help="How long a run trained.")] = None,
    batch_size: Annotated[str | None, typer.Option(help="Rows a step.")] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="A setting that tells series apart; repeat it.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="The study's name; of a tracker one that is there is used.")
    ] = None,
    study: Annotated[int | None, typer.Option(help="Put them into this study.")] = None,
    preview: Annotated[bool, typer.Option("--preview", help="Only show what would be made.")] = (
        False
    ),
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Store without asking.")] = False,
    server: Server = None,
    token: Token = None,
) -> None:
    """Bring runs made elsewhere into a study: a file's, or those of another tracker.

    A tracker's runs are shown before anything is stored; importing again adds what is new.
    """
    if source in TRACKERS and store is not None:
        from backend.trackers import Names, read_tracker

        names = Names(
            lr, method, seed, loss, test_loss, task, epochs, batch_size, tuple(keep or ())
        )
        found = read_tracker(source, store, names)
        content, reuse = json.dumps({"trials": found.rows}).encode(), True
        place = _Place(server, token, f"{source} {store}"[-200:], name, study, reuse)
        _show(place.preview(content), found)
        if preview or not (yes or typer.confirm("Store them?")):
            return
    else:
        if store is not None:
            raise InvalidSpec(f"{source!r} is no tracker; known are {', '.join(TRACKERS)}.")
        file = Path(source)
        if not file.is_file():
            raise InvalidSpec(f"There is no file {file}.")
        content = file.read_bytes()
        place = _Place(server, token, file.name, name, study, False)
        if preview:
            return _show(place.preview(content), None)
    stored = place.store(content)
    skipped = f", {stored.skipped} without any loss left out" if stored.skipped else ""
    typer.echo(
        f"Study {stored.study_id}: {stored.imported} runs imported, {stored.reused} were known"
        f"{skipped}."
    )


class _Place:
    """Where runs go: a server, or this machine's own database."""

    def __init__(
        self,
        server: str | None,
        token: str | None,
        source: str,
        name: str | None,
        study: int | None,
        reuse: bool,
    ) -> None:
        self._server, self._token = server, token
        self._source = source
        self._name, self._study, self._reuse = name, study, reuse

    def preview(self, content: bytes) -> "ImportPreview":
        if self._server:
            from backend.cli.submit import connect, sentences

            with sentences(), connect(self._server, self._token) as client:
                return client.preview_import(content)
        from backend.db import reading
        from backend.services import importing

        found = self._read(content)
        with reading() as session:
            return importing.preview(session, found=found)

    def store(self, content: bytes) -> "ImportRead":
        into: dict[str, Any] = {"name": self._name, "study_id": self._study}
        if self._server:
            from backend.cli.submit import connect, sentences
            from backend.client import calls

            call = calls.import_runs(content, filename=self._source, reuse=self._reuse, **into)
            with sentences(), connect(self._server, self._token) as client:
                return client.send(call)
        from backend.db import get_engine, transaction
        from backend.services import importing, submission
        from backend.services.accounts import LOCAL_OWNER

        found = self._read(content)
        new = importing.store_trials(get_engine(), found)  # a server may be writing too
        name = self._name or f"Imported: {self._source}"[:200]
        with transaction() as session:
            there = (
                submission.named_study(session, name=name, by=LOCAL_OWNER) if self._reuse else None
            )
            return importing.store(
                session,
                found=found,
                new=new,
                source=self._source,
                study_id=self._study or there,
                name=name,
                owner_id=None,
            )

    def _read(self, content: bytes) -> Any:
        from backend.operations import database
        from backend.services import importing

        settings = read_settings()
        trials = importing.read_runs(content, most_bytes=settings.max_body_bytes)
        database.upgrade(settings)
        return trials


def _show(found: "ImportPreview", read: "Found | None") -> None:
    """Print what an import would make, and what it leaves out."""
    typer.echo(f"{found.trials} runs, {found.new} of them new here.")
    for one in found.series:
        rates, seeds = one.learning_rates, len(one.seeds)
        span = f"{rates[0]:g}" if len(rates) == 1 else f"{rates[0]:g} to {rates[-1]:g}"
        ends = [
            f"{count} {word}"
            for word, count in (
                ("completed", one.completed),
                ("diverged", one.diverged),
                ("failed", one.failed),
                ("repeating a rate and seed", one.repeated),
            )
            if count
        ]
        typer.echo(
            f"  {one.task}, {one.method}: {len(rates)} rates ({span}), {seeds} seeds; "
            f"{', '.join(ends)}"
        )
    left = [f"{one.run}: {one.why}" for one in read.dropped] if read else []
    left += [f"line {one.line}: {one.message}" for one in found.problems]
    if left:
        typer.echo(f"{len(left)} left out:")
    for line in left[:MOST_SHOWN]:
        typer.echo(f"  {line}")
    if len(left) > MOST_SHOWN:
        typer.echo(f"  and {len(left) - MOST_SHOWN} more")


def export(
    what: Annotated[Literal["study", "comparison"], typer.Argument(help="study or comparison.")],
    ids: Annotated[list[int], typer.Argument(help="A study's id; of a comparison several.")],
    html: Annotated[
        Path | None, typer.Option(help="One file that opens without a network.")
    ] = None,
    zip: Annotated[
        Path | None, typer.Option(help="Data, figures and the command that repeats it.")
    ] = None,
    server: Running = None,
    token: Token = None,
) -> None:
    """Publish a study, or several on one axis, as files that need no server."""
    from backend.cli.submit import connect, sentences

    if html is None and zip is None:
        raise InvalidSpec("Name a file to write: --html FILE, --zip FILE, or both.")
    if what == "study" and len(ids) > 1:
        raise InvalidSpec("A study has one id; several are a comparison.")
    with sentences(), connect(server, token) as client:
        for path, format in ((html, "html"), (zip, "zip")):
            if path is not None:
                client.publish(ids, path, format=format)
                typer.echo(f"{path}: {path.stat().st_size / 1e6:.2f} MB")


def check(
    study: Annotated[int, typer.Option(help="Its id.", min=1)],
    method: Annotated[str, typer.Option(help="Whose numbers are looked at.")],
    edge_at_least: Annotated[
        float | None, typer.Option(help="Half the seeds still train at this rate.")
    ] = None,
    sensitivity_at_most: Annotated[
        float | None, typer.Option(help="Mean loss above the best over the common range.")
    ] = None,
    task: Annotated[str | None, typer.Option(help="Of a study with several tasks.")] = None,
    metric: Annotated[
        Literal[
            "train_loss",
            "test_loss",
            "validation_loss",
            "train_accuracy",
            "test_accuracy",
            "validation_accuracy",
        ],
        typer.Option(help="Which losses are measured."),
    ] = "train_loss",
    unfinished: Annotated[
        bool, typer.Option("--unfinished", help="Judge by what is there while trials wait or run.")
    ] = False,
    server: Running = None,
    token: Token = None,
) -> None:
    """Look whether a method's robustness is as good as asked; exit code 1 if it is not.

    The numbers are those of the study's scorecard. A study that still trains is not judged; trials
    that failed are in no number, and are named.
    """
    from backend.cli.submit import connect, sentences

    bounds = {"edge": edge_at_least, "lr_sensitivity": sensitivity_at_most}
    asked = {name: bound for name, bound in bounds.items() if bound is not None}
    if not asked:
        raise InvalidSpec("Say what to ask for: --edge-at-least, --sensitivity-at-most, or both.")
    with sentences(), connect(server, token) as client:
        found = client.study(study)
        if not unfinished and (waiting := _still_trains(found)):
            typer.echo(f"FAIL: {waiting}; judge it as it is with --unfinished.")
            raise typer.Exit(1)
        rows = client.scorecard(study, metric=metric).rows
        failed = _failed(client, found, method, task)
    mine = [row for row in rows if row.method == method and task in (None, row.task)]
    if not mine:
        there = ", ".join(sorted({row.method for row in rows})) or "none"
        raise InvalidSpec(f"Study {study} has no results of {method!r}; its methods: {there}.")
    verdicts = [_verdict(row, name, bound) for row in mine for name, bound in asked.items()]
    for sentence in [*_shortened(failed), *(sentence for _, sentence in verdicts)]:
        typer.echo(sentence)
    if not all(good for good, _ in verdicts):
        raise typer.Exit(1)


def _still_trains(study: "StudyRead") -> str | None:
    """Return what a study waits for; None if it has ended."""
    left = sum(study.progress.get(state, 0) for state in ("queued", "running"))
    if not left and study.state not in ("queued", "running"):  # a search between two rounds is
        return None
    trials = f"{left} of its {study.total} trials wait or run" if left else "its search goes on"
    return f"study {study.id} has not ended: {trials}"


def _failed(client: "Client", study: "StudyRead", method: str, task: str | None) -> list[str]:
    """Return a line for every failed trial of a method; trials of two sweeps have one."""
    if not study.progress.get("failed"):
        return []
    found = {
        trial.id: trial
        for sweep in study.sweep_ids
        for trial in client.trials(sweep, method=method, state="failed")
        if task in (None, trial.task)
    }
    return [
        f"  trial {trial.id} on {trial.task}, rate {trial.lr:g}, seed {trial.seed}: "
        f"{(trial.error or 'no reason given').strip().splitlines()[0][:200]}"
        for trial in found.values()
    ]


def _shortened(failed: list[str]) -> list[str]:
    if not failed:
        return []
    more = len(failed) - MOST_SHOWN
    head = f"{len(failed)} failed trials are in no number:"
    return [head, *failed[:MOST_SHOWN], *([f"  and {more} more"] if more > 0 else [])]


def _verdict(row: "ScorecardRow", name: str, bound: float) -> tuple[bool, str]:
    """Return whether a number keeps to its bound, and a sentence that says so.

    A number that the grid cuts off is a bound itself: it convinces on its own side only.
    """
    found = row.metrics.get(name)
    least = name == "edge"
    words = f"{'edge' if least else 'sensitivity'} of {row.label} on {row.task}"
    wish = f"{'at least' if least else 'at most'} {bound:g}"
    if found is None or found.value is None:
        why = f": {found.note}" if found is not None and found.note else ""
        return False, f"FAIL: the {words} is not known{why}; asked was {wish}."
    good = found.value >= bound if least else found.value <= bound
    if (least and found.censored == "below") or (not least and found.censored == "above"):
        good = False
    value = found.text or f"{found.value:g}"
    return good, f"{'ok' if good else 'FAIL'}: the {words} is {value}; asked was {wish}."
