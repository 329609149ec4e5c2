"""`etascope submit`: send a sweep to a server and watch it there."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backend.errors import Unavailable
from ib_core.errors import InvalidSpec

if TYPE_CHECKING:  # httpx and pydantic, which `--help` need not wait for
    from backend.client import Client
    from backend.schemas import SweepRead, SweepSubmitted

#: States a trial does not leave by itself.
ENDED = ("completed", "diverged", "failed", "cancelled")


def submit(
    task: Annotated[str | None, typer.Argument(help="A task; not needed with --preset.")] = None,
    methods: Annotated[str | None, typer.Option(help="As eb,ib.")] = None,
    lrs: Annotated[str | None, typer.Option(help="As 0.1,1,10 or from:to:count.")] = None,
    seeds: Annotated[str | None, typer.Option(help="5 means 1 to 5; or a list, 1,2,7.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Default: the task's.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Default: the task's.")] = None,
    clip: Annotated[str | None, typer.Option(help="Largest gradient norm, as 1 or none,1.")] = None,
    mu: Annotated[float | None, typer.Option(help="Ridge strength.")] = None,
    batch_rule: Annotated[str | None, typer.Option(help="own or share.")] = None,
    profile: Annotated[str | None, typer.Option(help="text or authors.")] = None,
    activation: Annotated[str | None, typer.Option(help="Default: the task's.")] = None,
    width: Annotated[int | None, typer.Option(help="Hidden units a layer.")] = None,
    depth: Annotated[int | None, typer.Option(help="Hidden layers.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda.")] = None,
    preset: Annotated[str | None, typer.Option(help="As paper/05_jsb_chorales.")] = None,
    study: Annotated[str | None, typer.Option(help="Name of a study, new or there.")] = None,
    server: Annotated[
        str | None, typer.Option(envvar="ETASCOPE_SERVER", help="Default: the one here.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(envvar="ETASCOPE_TOKEN", help="Needed where accounts are on."),
    ] = None,
    wait: Annotated[bool, typer.Option(help="Follow the sweep until it ends.")] = True,
) -> None:
    """Submit a sweep to a server, and follow it."""
    if not task and not preset:
        raise InvalidSpec("Name a task, as in `etascope submit digits_mlp`, or a --preset.")
    body = body_of(
        task=task,
        methods=methods,
        lrs=lrs,
        seeds=seeds,
        epochs=epochs,
        batch_size=batch_size,
        clip=clip,
        mu=mu,
        batch_rule=batch_rule,
        profile=profile,
        activation=activation,
        width=width,
        depth=depth,
        device=device,
        preset=preset,
    )
    url = server or _local_server()
    with sentences(), _connect(url, token) as client:
        sweep = _submit(client, study or _name(body), body)
        typer.echo(f"{_receipt(sweep)}: {url.rstrip('/')}/studies/{sweep.study_id}")
        if wait:
            _follow(client, sweep)


def body_of(**flags: Any) -> dict[str, Any]:
    """Return a sweep's body, as the API reads it, from flags as people type them.

    Flags that were not given (None) are left out, so that a preset or the task decides.
    """
    from ib_core.sweep import parse_rates, parse_seeds

    body = {name: value for name, value in flags.items() if value is not None}
    readers = {"methods": _words, "lrs": parse_rates, "seeds": parse_seeds, "clip": parse_clips}
    for name, read in readers.items():
        if name in body:
            body["learning_rates" if name == "lrs" else name] = list(read(body.pop(name)))
    options = {name: body.pop(name) for name in ("width", "depth") if name in body}
    return {**body, "options": options} if options else body


def parse_clips(text: str) -> list[float | None]:
    """Read `none,1`: each clipping norm to try, `none` for no clipping."""
    try:
        return [None if word.lower() == "none" else float(word) for word in _words(text)]
    except ValueError:
        raise InvalidSpec(
            f"Cannot read clips from {text!r}; write 1, or none,1.", field="clip"
        ) from None


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _local_server() -> str:
    from backend.cli_server import read_settings
    from backend.launcher import address

    return address(read_settings())


def _connect(url: str, token: str | None) -> "Client":
    from backend.client import Client

    return Client(url, token=token)


def _name(body: dict[str, Any]) -> str:
    return str(
        body.get("preset") or f"{body['task']}: {', '.join(body.get('methods', ['eb', 'ib']))}"
    )


def _submit(client: "Client", name: str, body: dict[str, Any]) -> "SweepSubmitted":
    """Submit to the study of that name; a new one does not outlive a refused sweep."""
    from uuid import uuid4

    from backend.client import ApiError, calls
    from backend.schemas import SweepCreate

    checked = SweepCreate.model_validate(body)
    known = [study.id for study in client.studies(q=name) if study.name == name]
    study = known[0] if known else client.create_study(name).id
    try:
        return client.submit(study, checked, idempotency_key=f"submit-{uuid4()}")
    except ApiError:
        if not known:
            client.send(calls.delete_study(study))
        raise


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
        typer.echo("\nNo longer watching; the sweep goes on on the server.", err=True)
        raise typer.Exit(130) from None
