"""The parts of docs/ that the code itself knows, written between their marks: `make docs`."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import typer.main
from pydantic.fields import FieldInfo

from backend.cli import app
from backend.cli.bench import put_between_marks
from backend.services.analysis import time_metrics
from backend.settings import Settings
from ib_core.methods import METHODS
from ib_core.metrics import BAND_DEFINITIONS, METRICS
from ib_core.sweep.presets import PRESETS
from ib_core.tasks import TASKS
from ib_core.updates import SOLVABLE

DOCS = Path(__file__).parents[1] / "docs"
#: What a default is called that depends on the machine.
BY_MACHINE = {"home": "the user's data folder", "data_dir": "unset"}


def settings() -> str:
    """Return every setting with its default and its help text."""
    fields = Settings.model_fields.items()
    rows = [
        (f"`{variable(name)}`", _default(name, field), field.description) for name, field in fields
    ]
    return _table(("variable", "default", "meaning"), rows)


def variable(name: str) -> str:
    return f"ETASCOPE_{name.upper()}"


def _default(name: str, field: FieldInfo) -> str:
    if name in BY_MACHINE:
        return BY_MACHINE[name]
    if isinstance(field.default, bool):
        return "on" if field.default else "off"
    if isinstance(field.default, float):
        return f"{field.default:g}"
    return str(field.default) or "unset"


def commands() -> str:
    """Return every command with its options, as `--help` has them."""
    return "\n\n".join(_command(name, command) for name, command in every_command())


def every_command() -> Iterator[tuple[str, Any]]:
    """Yield the words of every command, `data list` for one, and the command itself."""
    for name, found in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        inner = getattr(found, "commands", None)
        if inner is None:
            yield name, found
        else:
            yield from ((f"{name} {word}", command) for word, command in inner.items())


def _command(name: str, command: Any) -> str:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    needed = (one.name.upper() if one.required else f"[{one.name.upper()}]" for one in arguments)
    rows = [(_spelling(one), one.help) for one in command.params if one.name != "help"]
    title = " ".join((f"## `etascope {name}`", *(f"`{word}`" for word in needed)))
    summary = " ".join(command.help.split())
    return "\n\n".join((title, summary, *([_table(("", ""), rows)] if rows else [])))


def _spelling(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{parameter.name.upper()}`"
    return ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))


def numbers() -> str:
    """Return every robustness number with its definition and source."""
    rows = [
        (f"**{one.title}**, `{name}`", one.unit, _plain(one.definition), one.citation)
        for name, one in METRICS.items()
    ]
    rows += [
        (f"**{one.title}**, `{name}`", one.unit, _plain(one.definition), one.citation)
        for name, one in time_metrics({}, {}, epochs=1).items()
    ]
    return _table(("number", "unit", "definition", "source"), rows)


def _plain(sentence: str) -> str:
    """Return a sentence whose stars are products, not emphasis."""
    return sentence.replace("*", "\\*")


def bands() -> str:
    """Return the bands that can be drawn around a mean."""
    return _table(
        ("band", "definition"), [(f"`{n}`", text) for n, text in BAND_DEFINITIONS.items()]
    )


def methods() -> str:
    rows = [(f"`{name}`", one.title, one.summary) for name, one in METHODS.items()]
    return _table(("method", "on screens", ""), rows)


def activations() -> str:
    """Return every activation an implicit step can be solved for, and how exactly."""
    rows = [
        (
            f"`{name}`",
            *(("itself", "") if error is None else (f"{error.value:.1e}", f"{error.slope:.1e}")),
        )
        for name, error in SOLVABLE.items()
    ]
    return _table(("activation", "solved for, or largest error in value", "in slope"), rows)


def tasks() -> str:
    """Return every task; those of the UCI collection are one."""
    uci = next(one for name, one in TASKS.items() if name.startswith("uci/"))
    listed = [(name, one) for name, one in TASKS.items() if not name.startswith("uci/")]
    rows = [(f"`{name}`", one.summary, one.source) for name, one in (*listed, ("uci/<set>", uci))]
    return _table(("task", "", "from"), rows)


def presets() -> str:
    rows = [(f"`{one.name}`", f"{one.title}. {one.summary}") for one in PRESETS.values()]
    return _table(("preset", ""), rows)


def _table(head: tuple[str, ...], rows: list[Any]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    cells = ([str(cell).replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


#: By page: the marks and what belongs between them.
PARTS: dict[str, dict[str, Callable[[], str]]] = {
    "settings.md": {"settings": settings},
    "commands.md": {"commands": commands},
    "statistics.md": {"numbers": numbers, "bands": bands},
    "catalogue.md": {
        "methods": methods,
        "activations": activations,
        "tasks": tasks,
        "presets": presets,
    },
}


def written(page: Path) -> str:
    """Return a page's text as it should be now."""
    text = page.read_text("utf-8")
    for name, part in PARTS[page.name].items():
        text = put_between_marks(text, name, part(), where=page.name)
    return text


def main() -> None:
    for name in PARTS:
        (DOCS / name).write_text(written(DOCS / name), "utf-8")


if __name__ == "__main__":
    main()
