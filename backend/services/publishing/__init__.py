"""Studies as files that need no server: one HTML page, or a zip of data, figures and commands.

What is in them, curves, numbers, trials and how they were made, is gathered and drawn in
`contents`; here it becomes words, tables and files.

The page draws itself with a script of its own, some 10 kB in `templates/`: a general plotting
library would be larger than all data, and this page has one kind of picture.
"""

import csv
import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any, Literal

from jinja2 import Environment, PackageLoader, StrictUndefined
from sqlalchemy import Engine

from backend.db import reading
from backend.schemas import NumberRead
from backend.services import analysis, trials
from backend.services.publishing.contents import (
    CITATION,
    METRICS,
    Contents,
    drawing,
    gather,
    svg,
)
from ib_core.written import inert

__all__ = ["MEDIA_TYPES", "Contents", "Format", "gather", "html_page", "zip_file"]


Format = Literal["html", "zip"]
MEDIA_TYPES: dict[Format, str] = {
    "html": "text/html; charset=utf-8",
    "zip": "application/zip",
}
#: So that the same study makes the same zip, whenever it is asked for.
_MOMENT = (2020, 1, 1, 0, 0, 0)


def html_page(contents: Contents) -> str:
    """Return one HTML file with the data inside it."""
    environment = Environment(
        loader=PackageLoader("backend.services.publishing"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found: str = environment.get_template("published.html").render(
        contents=contents,
        table=_table(contents),
        words=_words(contents),
        data=_inert(drawing(contents)),
        still=_pictures(contents)[0][1],
        citation=CITATION,
    )
    return found


def _inert(data: Any) -> str:
    """Return JSON that no page can take for the end of its script."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _pictures(contents: Contents) -> list[tuple[str, str]]:
    """Return every picture: a metric and a task each."""
    found = []
    for metric, answer in contents.answers.items():
        for task in dict.fromkeys(series.task for series in answer.series) or [""]:
            series = [one for one in answer.series if one.task == task]
            title = f"{contents.title}: {task}" if task else contents.title
            name = "".join(c if c.isalnum() or c in "-_" else "_" for c in f"{metric}-{task}")
            found.append((f"{name[:100]}.svg", svg(series, title=title, value=METRICS[metric])))
    return found


def zip_file(engine: Engine, contents: Contents) -> bytes:
    """Return a zip of the page, every trial, the numbers, pictures, and commands that repeat it."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in _members(engine, contents):
            entry = zipfile.ZipInfo(name, _MOMENT)
            entry.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(entry, content)
    return made.getvalue()


def _members(engine: Engine, contents: Contents) -> Iterator[tuple[str, str | bytes]]:
    yield "index.html", html_page(contents)
    for study in contents.studies:
        with reading(engine) as session:
            varied = analysis.settings_of(session, study_id=study.id)
        pieces = trials.export(engine, study_id=study.id, format="csv", settings_of=varied)
        yield f"data/study-{study.id}-trials.csv", b"".join(pieces)
    for metric, answer in contents.answers.items():
        yield f"data/{metric}.json", answer.model_dump_json(indent=1)
    yield "data/numbers.csv", _numbers(contents)
    for name, picture in _pictures(contents):
        yield f"figures/{name}", picture
    for made in contents.made:
        if made.body is not None:
            yield f"sweeps/{made.id}.json", json.dumps(made.body, indent=1)
    yield "repeat.sh", _commands(contents)
    yield "README.txt", _readme(contents)


def _words(contents: Contents) -> list[tuple[str, list[str]]]:
    """Return what the studies say, by task: the answer, and whether best rates move."""
    answers = next(iter(contents.answers.values())).answers
    return [(one.title, [one.answer, *(move.text for move in one.moves)]) for one in answers]


def _table(contents: Contents) -> dict[str, Any]:
    """Return the robustness numbers in words: a row a series, a column a number."""
    rows = next(iter(contents.answers.values())).rows
    names = list(dict.fromkeys(name for row in rows for name in row.metrics))
    titles = {name: row.metrics[name] for row in rows for name in row.metrics}
    return {
        "columns": [
            {"title": titles[name].title or name, "definition": titles[name].definition}
            for name in names
        ],
        "rows": [
            {
                "label": row.label,
                "task": row.task,
                "trials": row.trials,
                "cells": [_cell(row.metrics.get(name)) for name in names],
            }
            for row in rows
        ],
    }


def _cell(number: NumberRead | None) -> str:
    """Return a number with how sure it is."""
    if number is None:
        return ""
    return f"{number.text} ({number.interval})" if number.interval else number.text


def _numbers(contents: Contents) -> str:
    found, text = _table(contents), io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["task", "series", "trials", *(one["title"] for one in found["columns"])])
    for row in found["rows"]:
        cells = [row["task"], row["label"], row["trials"], *row["cells"]]
        writer.writerow(inert(cell) for cell in cells)
    return text.getvalue()


def _commands(contents: Contents) -> str:
    lines = "\n".join(made.words.replace("\n", " ") for made in contents.made)
    return (
        "#!/bin/sh\n"
        f"# Made with etascope {contents.version}. Needs a server: etascope up\n"
        "# What a line cannot say is in sweeps/: POST it to /api/studies/ID/sweeps.\n"
        f"set -e\n{lines}\n"
    )


def _readme(contents: Contents) -> str:
    names = "\n".join(f"  {study.id}: {study.name}" for study in contents.studies)
    return (
        f"{contents.title}\n\nStudies:\n{names}\n\n"
        f"Made with etascope {contents.version} on {contents.at:%Y-%m-%d}.\n"
        "index.html  opens in any browser, without a network\n"
        "data/       every trial, the curves, the numbers\n"
        "figures/    the curves as SVG\n"
        "repeat.sh   trains it again; sweeps/ holds the same as JSON\n\n"
        f"{CITATION}\n"
    )
