"""`etascope submit` and `time`: what a server is asked to do; and flags for all settings."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backend.errors import Unavailable
from ib_core.errors import InvalidSpec
from ib_core.sweep.request import SETTINGS, Setting

if TYPE_CHECKING:
    from backend.client import Client
    from backend.schemas import SweepRead, SweepSubmitted


Command = Callable[..., None]
#: What people type as well.
ALSO = {"learning_rates": ("--learning-rates", "--lr")}


def with_settings(command: Command) -> Command:
    """Give a command the argument TASK and a flag for every setting of a sweep.

    The command gets what was typed as its first argument, a body of texts as the API names them;
    `request.read_body(..., typed=True)` reads it.
    """
    _, *own = inspect.signature(command).parameters.values()
    flags = {setting.name.rpartition(".")[2]: setting for setting in SETTINGS.values()}
    said = [name for name, setting in flags.items() if setting.flag]

    @wraps(command)
    def run(**given: Any) -> None:
        typed = {name: given.pop(name) for name in said}
        body = {name: value for name, value in typed.items() if value is not None}
        if "task" not in body and "preset" not in body:
            line = f"`etascope {command.__name__} digits_mlp`"
            raise InvalidSpec(f"Name a task, as in {line}, or a --preset.", field="task")
        options = {
            name: body.pop(name) for name in list(body) if flags[name].name.startswith("options.")
        }
        try:
            command({**body, "options": options}, **given)
        except InvalidSpec as error:
            raise _by_flag(error) from None

    parameters = [_parameter(name, flags[name]) for name in said]
    own = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own]
    signature = inspect.Signature([*parameters, *own])
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in signature.parameters.values()}
    return run


def _by_flag(error: InvalidSpec) -> InvalidSpec:
    """Return an error that begins with the flag it is about."""
    parts = (error.field or "").split(".")
    paths = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    flag = next((SETTINGS[path].flag for path in paths if path in SETTINGS), "")
    if flag in ("", "--task") or flag in error.message:
        return error
    return InvalidSpec(f"{flag}: {error.message}", field=error.field, hint=error.hint)


def _parameter(name: str, setting: Setting) -> inspect.Parameter:
    typed: Any = {"restart": bool | None, "vary": list[str] | None}.get(name, str | None)
    if name == "task":
        taken: Any = typer.Argument(help="A task; not needed with --preset.")
    elif name == "restart":
        taken = typer.Option(setting.flag, help=setting.help)
    else:
        flags = (setting.flag, *ALSO.get(name, ()))
        taken = typer.Option(*flags, help=setting.help, metavar=_metavar(setting))
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[typed, taken],
    )


def _metavar(setting: Setting) -> str:
    if setting.kind is not None:
        one = "INTEGER" if setting.kind.whole else "NUMBER"
        return f"{one}[,...]" if setting.listed else one
    return "TEXT"


#: States a trial does not leave by itself.
ENDED = ("completed", "diverged", "failed", "cancelled")


Server = Annotated[
    str | None, typer.Option(envvar="ETASCOPE_SERVER", help="Default: the one here.")
]
Token = Annotated[
    str | None, typer.Option(envvar="ETASCOPE_TOKEN", help="Needed where accounts are on.")
]
#: How often a server is asked whether it has measured.
POLL_SECONDS = 1.0


@with_settings
def submit(
    asked: dict[str, Any],
    study: Annotated[str | None, typer.Option(help="Name of a study, new or there.")] = None,
    server: Server = None,
    token: Token = None,
    wait: Annotated[bool, typer.Option(help="Follow the sweep until it ends.")] = True,
) -> None:
    """Submit a sweep to a server, and follow it."""
    from uuid import uuid4

    from backend.client import calls
    from ib_core.sweep.request import read_body

    body = read_body(asked, typed=True)
    url = server or _local_server()
    with sentences(), connect(url, token) as client:
        sweep = client.submit(study or _name(body), body, idempotency_key=f"submit-{uuid4()}")
        picture = client.send(calls.study(sweep.study_id)).picture
        view = f"?view={picture}" if picture else ""
        typer.echo(f"{_receipt(sweep)}: {url.rstrip('/')}/studies/{sweep.study_id}{view}")
        for missing in sweep.waiting_for:
            typer.echo(f"It is {missing.sentence}", err=True)
        if wait:
            _follow(client, sweep)


def time_steps(
    study: Annotated[int, typer.Argument(help="Number of a study, as in its address.")],
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    server: Server = None,
    token: Token = None,
) -> None:
    """Have a worker measure what a step of every method costs on a study's networks.

    EB and the others take steps in turn; scorecards show the ratios from then on.
    """
    with sentences(), connect(server, token) as client:
        asked = client.measure_steps(study, device=device)
        for message in asked.messages:
            typer.echo(message, err=True)
        _await_timing(client, study)
        _print_costs(client, study)


def _await_timing(client: "Client", study: int) -> None:
    import time

    from rich.console import Console

    with Console(stderr=True).status("measuring") as status:
        while True:
            items = client.step_timing(study).items
            if waiting := [one for one in items if one.state in ("queued", "running")]:
                done = len(items) - len(waiting)
                status.update(f"measuring {waiting[0].task}, {done} of {len(items)} networks")
                time.sleep(POLL_SECONDS)
                continue
            break
    if failed := [one for one in items if one.state == "failed"]:
        raise Unavailable(f"{failed[0].task} could not be measured: {failed[0].error}")


def _print_costs(client: "Client", study: int) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("series", "task", "step over EB", "quartiles", "rounds", box=None)
    for row in client.scorecard(study).rows:
        cost = row.metrics["step_cost"]
        rounds = str(cost.n) if cost.value is not None else cost.note
        table.add_row(row.label, row.task, cost.text, cost.interval, rounds)
    Console().print(table)


def _local_server() -> str:
    from backend.cli.server import read_settings
    from backend.operations.launcher import address

    return address(read_settings())


def connect(server: str | None, token: str | None) -> "Client":
    """Return a client of a server, by default of the one on this machine."""
    from backend.client import Client

    return Client(server or _local_server(), token=token)


def _name(body: dict[str, Any]) -> str:
    if "preset" in body:
        return str(body["preset"])
    usual = ["default"] if "where" in body else ["eb", "ib"]
    return f"{body.get('task', 'a sweep')}: {', '.join(body.get('methods', usual))}"


def _receipt(sweep: "SweepSubmitted") -> str:
    if len(sweep.sweep_ids) > 1:
        return f"Submitted {len(sweep.sweep_ids)} sweeps"
    reused = f", {sweep.reused} of them already known" if sweep.reused else ""
    return f"Submitted {sweep.total} trials{reused}"


def _follow(client: "Client", submitted: "SweepSubmitted") -> None:
    """Show a bar for each sweep until all have ended; fail if one did not complete."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("sweep {task.fields[id]}"), BarColumn(), MofNCompleteColumn())
    ended: list[SweepRead] = []
    with Progress(*columns, TextColumn("{task.description}")) as progress:
        for sweep_id in submitted.sweep_ids:
            bar = progress.add_task("", id=sweep_id, total=None)

            def show(sweep: "SweepRead", bar: Any = bar) -> None:
                done = sum(sweep.progress.get(state, 0) for state in ENDED)
                progress.update(bar, total=sweep.total, completed=done, description=_counts(sweep))

            ended.append(client.wait(sweep_id, on_progress=show))
    for search in (sweep.search for sweep in ended if sweep.search is not None):
        for one in search.series:
            typer.echo(f"{one.label}: {search.find} {one.text}")
    if any(sweep.state != "completed" for sweep in ended):
        raise typer.Exit(1)


def _counts(sweep: "SweepRead") -> str:
    counts = [f"{count} {state}" for state, count in sweep.progress.items() if count]
    return ", ".join(counts + sweep.messages)


@contextmanager
def sentences() -> Iterator[None]:
    """Turn what the server or the client refuses into our one-sentence errors."""
    from pydantic import ValidationError

    from backend.client import ApiError, ServerAway

    try:
        yield
    except ServerAway as error:
        raise Unavailable(str(error)) from None
    except ApiError as error:
        kind = InvalidSpec if error.status < 500 else Unavailable
        raise kind(error.message, field=error.field, hint=error.hint) from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise InvalidSpec(f"{where}: {first['msg']}; got {first['input']!r}.") from None
    except KeyboardInterrupt:
        typer.echo("\nNo longer watching; the server goes on.", err=True)
        raise typer.Exit(130) from None
