"""The parts of README and docs/ that the code itself knows, written between marks: `make docs`."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import typer.main
from pydantic.fields import FieldInfo

from backend.cli import app
from backend.cli.bench import put_between_marks
from backend.paper.report import judge
from backend.schemas import JudgementRead
from backend.services.analysis import ACROSS
from backend.settings import Settings
from ib_core.methods import METHODS
from ib_core.metrics import BAND_DEFINITIONS, DIFFERENCE, NUMBERS, WILCOXON
from ib_core.reproduction import SHIPPED, find_bundle
from ib_core.sweep.presets import PRESETS
from ib_core.tasks import TASKS
from ib_core.updates import SOLVABLE

ROOT = Path(__file__).parents[1]
#: The methods whose recorded means ours are held against.
PAIR = ("eb", "ib")
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


def scorecard() -> str:
    """Return every number of the scorecard with its unit and definition."""
    rows = [(f"**{one.title}**, `{one.name}`", one.unit, _plain(one.definition)) for one in NUMBERS]
    return _table(("number", "unit", "definition"), rows)


def across() -> str:
    """Return what is said over many tasks."""
    rows = [(f"`{name}`", _plain(text)) for name, text in ACROSS.items()]
    return _table(("in `across`", "definition"), rows)


def pairs() -> str:
    """Return what is said of two series seed by seed."""
    rows = [("**Paired difference**", DIFFERENCE), ("**Wilcoxon p**", WILCOXON)]
    return _table(("number", "definition"), [(title, _plain(text)) for title, text in rows])


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


def states() -> str:
    """Return how many readings of every state of a trial are tried on both databases."""
    from tests.backend.matrix.test_states import counted

    rows = [(*cells, "100 %") for cells in counted()]
    return _table(("what", "how many", "states", "databases", "cells", "tried"), rows)


def paper() -> str:
    """Return what the bundle that comes along says of the paper, in short."""
    found = judge(find_bundle(SHIPPED))
    rows = [
        (one.title, one.claim, one.authors.word, one.text.word)
        for one in (*found.experiments, found.uci)
    ]
    sentences = "\n".join(f"* {sentence}" for sentence in found.headline)
    head = (
        "experiment",
        "the paper says",
        "as the authors ran it: do our losses match theirs?",
        "as the text describes it: does that hold?",
    )
    claims = [
        (one.text, *map(_verdict, (one.recorded, one.ours, one.authors))) for one in found.claims
    ]
    judged = ("claim", "recorded runs", "ours, text", "ours, as the authors")
    return "\n\n".join((sentences, _table(head, rows), _table(judged, claims)))


def paper_line() -> str:
    """Return what the bundle that comes along says of the paper, in one sentence."""
    found = judge(find_bundle(SHIPPED))
    of = len(found.experiments)
    text = (found.counts.get(name, 0) for name in ("reproduced", "differs", "cannot tell"))
    held, against, left = text
    run = sum(len(one.cells) for one in found.experiments)
    recorded = sum(
        len(line.points)
        for one in found.experiments
        for line in one.recorded
        if line.method in PAIR
    )
    some = f", as far as they were run ({run} of {recorded} means)" if run < recorded else ""
    return (
        f"Run as its authors ran it, the losses of {found.authors_counts.get('reproduced', 0)} of "
        f"its {of} experiments match the recorded\nones{some}; run as its text describes it,\n"
        f"{held} hold as published, {against} differ and {left} cannot be told\n"
        "([the paper, reproduced](docs/reproduction.md))."
    )


def _verdict(found: JudgementRead) -> str:
    return f"{found.verdict} ({found.beside})" if found.beside else found.verdict


def _table(head: tuple[str, ...], rows: list[Any]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    cells = ([str(cell).replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


#: By page: the marks and what belongs between them.
PARTS: dict[str, dict[str, Callable[[], str]]] = {
    "settings.md": {"settings": settings},
    "commands.md": {"commands": commands},
    "benchmarks.md": {"states": states},
    "statistics.md": {
        "scorecard": scorecard,
        "across": across,
        "pairs": pairs,
        "bands": bands,
    },
    "reproduction.md": {"paper": paper},
    "README.md": {"paper": paper_line},
    "catalogue.md": {
        "methods": methods,
        "activations": activations,
        "tasks": tasks,
        "presets": presets,
    },
}


def place(name: str) -> Path:
    """Return where a page lies."""
    return ROOT / name if name == "README.md" else ROOT / "docs" / name


def written(page: Path) -> str:
    """Return a page's text as it should be now."""
    text = page.read_text("utf-8")
    for name, part in PARTS[page.name].items():
        text = put_between_marks(text, name, part(), where=page.name)
    return text


def main() -> None:
    for name in PARTS:
        place(name).write_text(written(place(name)), "utf-8")


if __name__ == "__main__":
    main()
