"""`etascope sweep`, `replay` and `new-task`: training in this process, with no server."""

import os
import select
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backend.cli.submit import Server, Token, connect, sentences, with_settings
from ib_core.errors import IBError, InvalidSpec, said_where

if TYPE_CHECKING:
    from backend.client import Client
    from backend.schemas import RecordingRead
    from ib_core.sweep import Book, SweepSpec, TrialResult, TrialSpec
    from ib_core.tasks import Task

#: As in `ib_core.sweep.lanes`, which would bring torch along.
STALL_SECONDS = 300.0
Stall = Annotated[
    float, typer.Option(help="Seconds without a step after which a file's code is stopped.")
]


@with_settings
def sweep(
    asked: dict[str, Any],
    csv: Annotated[Path | None, typer.Option(help="Write one line a trial.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write trials, curves and records.")] = None,
    png: Annotated[Path | None, typer.Option(help="Draw loss against learning rate.")] = None,
    scorecard: Annotated[
        Path | None, typer.Option(help="Write one line a method and number, as CSV.")
    ] = None,
    stall: Stall = STALL_SECONDS,
) -> None:
    """Train a grid here and print what it shows. Ctrl-C keeps what is finished."""
    with _watched(asked, stall):
        specs = _checked(asked, (csv, json, png, scorecard))
    results, interrupted, searches = _train(specs, stall)
    _write(results, csv, json, png)
    from backend.cli.sweep_report import print_report, print_searches, write_scorecard

    if scorecard is not None:
        with scorecard.open("w", newline="") as opened:
            write_scorecard(results, opened)
    total = sum(book.trials for book in searches) or sum(spec.size for spec in specs)
    print_searches(searches)
    print_report(results, total=total, means=not searches)
    if interrupted:
        raise typer.Exit(130)
    if results and all(result.outcome.value == "failed" for result in results):
        raise typer.Exit(1)


def _checked(asked: dict[str, Any], files: tuple[Path | None, ...]) -> "tuple[SweepSpec, ...]":
    """Refuse, before any training, whatever could not be finished."""
    from ib_core.sweep import choose_device, specs_of
    from ib_core.tasks import find_task

    specs = specs_of(registered(asked), typed=True)
    for spec in specs:
        choose_device(spec.device)
        _check_data(find_task(spec.task))
    for file in files:
        if file is not None:
            _check_writable(file)
    if files[2] is not None:
        from backend.cli.sweep_report import check_drawing

        check_drawing(files[2])
    return specs


def registered(asked: dict[str, Any]) -> dict[str, Any]:
    """Return what was asked after running the files it names; here that is its user's own wish."""
    from ib_core.own import register_word
    from ib_core.sweep.request import read_body

    found = dict(asked)
    if "task" in found:
        found["task"] = register_word(found["task"].strip(), "task")
    if "methods" in found:
        words = read_body({"methods": found["methods"]}, typed=True)["methods"]
        found["methods"] = [register_word(word, "method") for word in words]
    return found


@contextmanager
def _watched(asked: dict[str, Any], seconds: float) -> Iterator[None]:
    """Read a user's code here, and tell what never ends, hoards memory or ends this process."""
    words = [asked.get("task", ""), *str(asked.get("methods", "")).split(",")]
    own = [word for word in (one.partition("(")[0].strip() for one in words) if ".py:" in word]
    if not own or not sys.platform.startswith("linux"):
        yield
        return
    import resource

    from ib_core.tasks import limit_memory

    def too_long(_signal: int, _frame: object) -> None:
        raise TimeoutError(f"it was not read after {seconds:g} s; --stall gives it longer")

    names = ", ".join(dict.fromkeys(Path(word.rpartition(":")[0]).name for word in own))
    this, watcher = os.getpid(), _watcher(f"{names} ended the process that read it.\n")
    memory = resource.getrlimit(resource.RLIMIT_DATA)
    before = signal.signal(signal.SIGALRM, too_long)
    limit_memory(1, for_good=False)
    signal.setitimer(signal.ITIMER_REAL, seconds, 5.0)
    try:
        yield
    finally:
        if os.getpid() != this:  # a copy that the file has made of this process, and not ended
            os._exit(0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_DATA, memory)
        os.kill(watcher, signal.SIGKILL)
        os.waitpid(watcher, 0)


def _watcher(words: str) -> int:
    """Return a process that says something if this one ends while it lives."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # see `ib_core.sweep.lanes`
        this, child = os.getpid(), os.fork()
    if child:
        return child
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        select.select([os.pidfd_open(this)], [], [])
        os.write(2, words.encode())
    finally:
        os._exit(0)


def _check_data(task: "Task") -> None:
    """Read the data, so that what is wrong with them is said before any training."""
    with _their_faults(task.given_data):
        task.data_hash()


@contextmanager
def _their_faults(made_by: Any = None) -> Iterator[None]:
    """Tell what a user's code raises in one sentence, with the file and the line."""
    try:
        yield
    except IBError as error:
        said = said_where(error, made_by)
        if said == error.message:
            raise
        raise InvalidSpec(said, field=error.field, hint=error.hint) from error
    except (Exception, SystemExit) as error:
        ended = ": it ended the process" if isinstance(error, SystemExit) else ""
        raise InvalidSpec(f"{said_where(error, made_by)}{ended}.", field="task") from error


def _check_writable(file: Path) -> None:
    there = file.exists()
    try:
        with file.open("a"):
            pass
        if not there:
            file.unlink()
    except OSError as error:
        raise InvalidSpec(f"Cannot write {file}: {error.strerror}.") from None


def _train(
    specs: "tuple[SweepSpec, ...]", stall: float
) -> "tuple[list[TrialResult], bool, list[Book]]":
    """Return what was finished, in the order of the grid, whether Ctrl-C ended it, and searches."""
    from backend.cli.sweep_report import Bar
    from ib_core.sweep import Book, calibrate, run_all, run_rounds
    from ib_core.tasks import find_task

    trials = [trial for spec in specs for trial in spec.expand()]
    calibrate(
        specs[0].device,
        activations={trial.activation for trial in trials},
        families={find_task(spec.task).family for spec in specs},
    )
    found: list[TrialResult] = []

    def train(trials: "list[TrialSpec]") -> "list[TrialResult | None]":
        with Bar(len(trials)) as bar:
            try:
                return run_all(trials, device=specs[0].device, observer=bar, stall=stall)
            finally:
                found.extend(bar.results())

    books = [Book(spec) for spec in specs if spec.search is not None]
    try:
        if books:
            run_rounds(books, train)
        else:
            train(trials)
    except KeyboardInterrupt:
        return found, True, books
    return found, False, books


def _write(
    results: "list[TrialResult]", csv: Path | None, json: Path | None, png: Path | None
) -> None:
    from ib_core.sweep import write_csv, write_json

    for file, write in ((csv, write_csv), (json, write_json)):
        if file is not None:
            with file.open("w", newline="") as opened:
                write(results, opened)
    if png is not None and results:
        from backend.cli.sweep_report import draw

        draw(results, png)


# --- a file to begin with


STARTING_FILE = '''"""A task of your own.

etascope sweep {name}:task --methods {name}:adamw,eb --vary width=16,64
"""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

from ib_core import Data, Method, Task, choice, number, whole


# Any function that returns an nn.Module. It is called after torch.manual_seed(seed) with the
# options below by name, so that all methods of a seed start from the same weights.
def model(width=32, depth=2, norm="batch", dropout=0.0):
    layers, side = [], 64
    for _ in range(depth):
        layers.append(nn.Linear(side, width))
        if norm == "batch":
            layers.append(nn.BatchNorm1d(width))
        layers += [nn.ReLU(), nn.Dropout(dropout)]
        side = width
    return nn.Sequential(*layers, nn.Linear(side, 10))


# Pairs of tensors, or map-style data sets of pairs; called once.
def data():
    x, y = (torch.as_tensor(part) for part in load_digits(return_X_y=True))
    x = x.float() / 16
    return Data(train=(x[:1500], y[:1500]), test=(x[1500:], y[1500:]))


task = Task(
    model,
    data,
    loss=F.cross_entropy,  # loss(output, target): the mean over rows
    epochs=1,
    batch_size=50,
    learning_rates=(0.001, 0.01, 0.1, 1.0),  # where a sweep names none
    seeds=3,
    options={{  # what a sweep may change, with --vary
        "width": whole(4, 512),
        "depth": whole(1, 8),
        "norm": choice("batch", "none"),
        "dropout": number(0, 0.9),
    }},
)

# Any optimizer class, or any function (params, lr, **options) that returns an optimizer. Torch's
# own need no entry here: --methods torch.optim.RAdam.
adamw = Method(torch.optim.AdamW, options={{"weight_decay": number(0, 10)}})
'''


def new_task(
    file: Annotated[Path, typer.Argument(help="A file that does not exist yet, as my_file.py.")],
) -> None:
    """Write a commented file with a task and a method of your own, which runs at once."""
    if file.suffix != ".py":
        raise InvalidSpec(f"A task lies in a Python file, as my_file.py; got {file.name}.")
    if file.exists():
        raise InvalidSpec(f"{file} exists already; nothing was written.")
    try:
        file.write_text(STARTING_FILE.format(name=file.name), "utf-8")
    except OSError as error:
        raise InvalidSpec(f"Cannot write {file}: {error.strerror}.") from None
    typer.echo(f"Wrote {file}. Next:")
    typer.echo(f"  etascope sweep {file}:task --methods {file}:adamw,eb --vary width=16,64")


# --- why a trial broke


#: Between two looks at a replay that a worker does.
LOOK_SECONDS = 1.0


@with_settings
def replay(
    asked: dict[str, Any],
    server: Server = None,
    token: Token = None,
    csv: Annotated[Path | None, typer.Option(help="Write one line a recorded step.")] = None,
    stall: Stall = STALL_SECONDS,
) -> None:
    """Train a trial again alone, every step around its break recorded, and say why it broke.

    `etascope replay 12` has a worker do it with trial 12 of a server;
    `etascope replay digits_mlp --methods eb,ib --lrs 3 --seeds 1,` does it here, with every trial
    of that grid. A file's code trains in a process of its own, as in a sweep.
    """
    number = asked.get("task", "")
    if number.isdecimal():
        _on_server(int(number), server, token, csv)
    else:
        _here(asked, csv, stall)


def _here(asked: dict[str, Any], csv: Path | None, stall: float) -> None:
    import csv as tables

    from ib_core.sweep import Guard, can_fork, is_own, replay_trial, run_trials, specs_of
    from ib_core.tasks import find_task

    with _watched(asked, stall):
        specs = specs_of(registered(asked), typed=True)
        for spec in specs:
            _check_data(find_task(spec.task))
    lines: list[list[Any]] = []
    device = specs[0].device
    with Guard(stall=stall) as guard:
        for one in (trial for spec in specs for trial in spec.expand()):
            run = guard.run if can_fork(device) and is_own(one) else run_trials
            with _their_faults(getattr(find_task(one.task), "model", None)):
                found = replay_trial(one, device=device, run=run)
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
