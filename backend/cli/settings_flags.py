"""Flags for everything a sweep can say, drawn from the one list of settings."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from ib_core.errors import InvalidSpec
from ib_core.sweep.request import SETTINGS, Setting

Command = Callable[..., None]


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
        taken = typer.Option(setting.flag, help=setting.help, metavar=_metavar(setting))
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
