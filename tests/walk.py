"""How far one walks through the house: `python -m tests.walk` counts it and prints two tables.

The first says how it is divided: modules, lines, and modules that only one other imports. The
second follows one small sweep, once as `etascope sweep` and once from the browser's form to the
curve, all in one process: which files of the project are entered (a function of theirs runs), and
how often a function calls one of another file. What runs while a module is imported, by a face that
hands on a name too, or while the site is put together, does not count.

Modules are found by what they define, pages and callbacks by their addresses and ids: the counts
can be taken of any division of the house.
"""

import ast
import asyncio
import contextlib
import dis
import importlib
import io
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

import httpx

from tests.import_graph import PACKAGES, ROOT, importers, is_package, modules, tree_of

#: The sweep that is followed: 2 methods x 3 rates x 2 seeds, so small that one shard holds it.
TASK, METHODS, RATES, SEEDS, EPOCHS = "bundled/iris", "eb,ib", "0.01,0.1,1", "2", "2"
ADDRESS = "http://127.0.0.1:8050"
#: Controls of the form that are not part of the sweep.
BESIDE_THE_FORM = ("new-study", "new-name", "new-key")
#: What is called by name, wherever it is defined.
WANTED = (
    ("create_site", "backend"),
    ("get_settings", "backend"),
    ("Worker", "backend"),
    ("Heartbeat", "worker"),
    ("StopFlag", "worker"),
    ("train", "worker"),
)
RESUME = dis.opmap["RESUME"]


# --- how the house is divided


def division() -> list[tuple[str, int, int, int]]:
    """Return (package, modules, lines, modules with exactly one importer) for all packages."""
    rows = []
    for package in PACKAGES:
        inside = {name: path for name, path in modules().items() if name.split(".")[0] == package}
        lines = sum(len(path.read_text("utf-8").splitlines()) for path in inside.values())
        alone = [name for name in inside if not is_package(name) and len(importers()[name]) == 1]
        rows.append((package, len(inside), lines, len(alone)))
    return [*rows, ("all", *(sum(row[i] for row in rows) for i in (1, 2, 3)))]


# --- which files are entered


@dataclass
class Steps:
    """What was entered while one part of the walk went on."""

    files: set[str] = field(default_factory=set)
    crossings: int = 0

    def as_json(self) -> dict[str, Any]:
        return {"files": sorted(self.files), "crossings": self.crossings}


class Walk:
    """Listens to every call in every thread from now on, and writes down those of a part."""

    def __init__(self) -> None:
        self.parts: dict[str, Steps] = {}
        self._current: Steps | None = None
        self._names: dict[CodeType, str | None] = {}
        threading.setprofile(self._called)
        sys.setprofile(self._called)

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Count what is entered meanwhile."""
        self._current = self.parts[name] = Steps()
        try:
            yield
        finally:
            self._current = None

    def _called(self, frame: FrameType, event: str, _argument: object) -> None:
        steps = self._current
        if steps is None or event != "call":
            return
        own = self._file(frame.f_code)
        if own is None or not _starts(frame):
            return
        caller: str | None = None
        back = frame.f_back
        while back is not None:
            file = self._file(back.f_code)
            if file is not None:
                if back.f_code.co_name == "<module>":
                    return  # some module is being imported
                caller = caller or file
            back = back.f_back
        steps.files.add(own)
        steps.crossings += caller != own

    def _file(self, code: CodeType) -> str | None:
        """Return the project's file that code was written in."""
        if code not in self._names:
            name = os.path.relpath(code.co_filename, ROOT)
            ours = name.split(os.sep)[0] in PACKAGES
            self._names[code] = name if ours else None
        return self._names[code]


def _starts(frame: FrameType) -> bool:
    """Tell a function that starts from one that goes on after `yield` or `await`, or an import."""
    code, at = frame.f_code, frame.f_lasti
    if code.co_qualname in ("<module>", "__getattr__") or at < 0:
        return False
    return code.co_code[at] != RESUME or code.co_code[at + 1] & 3 == 0


def defined(name: str, package: str) -> Any:
    """Return what the one module of a package defines under a name, wherever it stands."""
    (home,) = definitions(name, package)
    return getattr(importlib.import_module(home), name)


def definitions(name: str, package: str) -> list[str]:
    """Return the modules of a package that define a function or a class of this name."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [
        module
        for module, path in modules().items()
        if module.split(".")[0] == package
        for node in tree_of(path).body
        if isinstance(node, kinds) and node.name == name
    ]


# --- the two ways of a sweep


def command_walk(walk: Walk) -> None:
    """Follow `etascope sweep`."""
    with walk.part("etascope sweep"):
        _command(
            "sweep",
            TASK,
            "--methods",
            METHODS,
            "--lrs",
            RATES,
            "--seeds",
            SEEDS,
            "--epochs",
            EPOCHS,
        )


def _command(*words: str) -> None:
    """Run the command that is installed as `etascope`, in this process."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    module, _, name = scripts["etascope"].partition(":")
    main = getattr(importlib.import_module(module), name)
    sys.argv = ["etascope", *words]
    code: Any = 0
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            main()
        except SystemExit as end:
            code = end.code
    assert not code, printed.getvalue()


def service_walk(walk: Walk) -> None:
    """Follow a sweep from the browser's form over API, database and worker to the curve."""
    _command("db", "upgrade")
    browser = Browser(defined("create_site", "backend")())
    browser.open("/new", task=TASK, methods=METHODS, lrs=RATES, seeds=SEEDS, epochs=EPOCHS)
    with walk.part("form: forecast"):
        browser.change("new-forecast.children", "new-asked", "data", browser.form())
    with walk.part("form: submit"):
        browser.change("new-study.data", "new-submit", "n_clicks", 1)
    study = browser.values["new-study", "data"]
    assert study, browser.values["new-error", "children"]
    train = _trainer()
    with walk.part("worker: train"):
        train()
    browser.open(f"/studies/{study}")
    with walk.part("study: curve"):
        browser.change(
            "study-drawn.data", "study-version", "data", browser.values["study-version", "data"]
        )
    drawn = json.dumps(browser.values["study-drawn", "data"])
    assert "Explicit (EB)" in drawn, drawn[:1000]
    assert "Implicit (IB)" in drawn, drawn[:1000]


def _trainer() -> Callable[[], None]:
    """Return what trains all queued shards as a worker does."""
    worker = defined("Worker", "backend")("walker", "here", os.getpid(), "cpu")
    settings, stopping = defined("get_settings", "backend")(), defined("StopFlag", "worker")()
    heartbeat = defined("Heartbeat", "worker")(worker, settings, stopping=stopping)
    train = defined("train", "worker")

    def train_all() -> None:
        heartbeat.start()
        for shard in _queued_shards():
            train(shard, heartbeat=heartbeat, stopping=stopping)
        heartbeat.stop()

    return train_all


def _queued_shards() -> list[int]:
    with contextlib.closing(sqlite3.connect(os.environ["ETASCOPE_WALK_DATABASE"])) as database:
        return [shard for (shard,) in database.execute("SELECT id FROM shards")]


class Browser:
    """Opens pages and runs callbacks over HTTP, as Dash's own script does, and keeps the values."""

    def __init__(self, site: Any) -> None:
        self.values: dict[tuple[str, str], Any] = {}
        self._site = site
        self._callbacks = self._send("GET", "/_dash-dependencies")
        self._keep(self._send("GET", "/_dash-layout"))

    def open(self, path: str, **query: str) -> None:
        """Show a page; its components' values are then known."""
        location = next(c for c in self._callbacks if c["output"].startswith("..page.children"))
        place = location["inputs"][0]["id"]
        self.values[place, "search"] = f"?{httpx.QueryParams(query)}" if query else ""
        self.change(location["output"], place, "pathname", path)

    def form(self) -> list[Any]:
        """Return what the form's controls hold, in the order in which it is asked about."""
        submit = self._callback("new-study.data")
        return [self._value(one) for one in submit["state"] if one["id"] not in BESIDE_THE_FORM]

    def change(self, output: str, id: str, prop: str, value: Any) -> None:
        """Run the callback of an output, as if a component's property had just changed."""
        self.values[id, prop] = value
        callback = self._callback(output)
        body = {
            "output": callback["output"],
            "outputs": _outputs(callback["output"]),
            "inputs": [{**one, "value": self._value(one)} for one in callback["inputs"]],
            "state": [{**one, "value": self._value(one)} for one in callback["state"]],
            "changedPropIds": [f"{id}.{prop}"],
        }
        answer = self._send("POST", "/_dash-update-component", body)
        for component, props in answer["response"].items():
            for name, held in props.items():
                self.values[component, name] = held
                self._keep(held)

    def _callback(self, output: str) -> dict[str, Any]:
        return next(one for one in self._callbacks if output in one["output"])

    def _value(self, one: dict[str, Any]) -> Any:
        return self.values.get((one["id"], one["property"]))

    def _keep(self, shown: Any) -> None:
        """Take note of what a tree of components holds."""
        if isinstance(shown, list):
            for one in shown:
                self._keep(one)
        elif isinstance(shown, dict) and isinstance(shown.get("props"), dict):
            props = shown["props"]
            if isinstance(props.get("id"), str):
                self.values |= {(props["id"], name): held for name, held in props.items()}
            for held in props.values():
                self._keep(held)

    def _send(self, verb: str, path: str, body: Any = None) -> Any:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app=self._site)
            async with httpx.AsyncClient(transport=transport, base_url=ADDRESS) as client:
                return await client.request(verb, path, json=body)

        answer = asyncio.run(send())
        assert answer.status_code == 200, answer.text
        return answer.json()


def _outputs(output: str) -> Any:
    parts = output.removeprefix("..").removesuffix("..").split("...")
    named = [
        {"id": part.rpartition(".")[0], "property": part.rpartition(".")[2].partition("@")[0]}
        for part in parts
    ]
    return named if output.startswith("..") else named[0]


# --- the tables

WALKS: dict[str, Callable[[Walk], None]] = {"command": command_walk, "service": service_walk}


def followed(way: str) -> dict[str, dict[str, Any]]:
    """Follow one way in a process of its own, with a home of its own; return its parts."""
    with tempfile.TemporaryDirectory() as home:
        own = {
            "ETASCOPE_HOME": home,
            "ETASCOPE_WALK_DATABASE": f"{home}/etascope.db",
            "ETASCOPE_DATABASE_URL": f"sqlite:///{home}/etascope.db",
            "ETASCOPE_BROKER_URL": "memory://",
            "ETASCOPE_DEVICE": "cpu",
            "XDG_CACHE_HOME": f"{home}/cache",
            "PYTHONPATH": str(ROOT),
        }
        done = subprocess.run(
            [sys.executable, "-m", "tests.walk", way],
            env=os.environ | own,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    parts: dict[str, dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return parts


def division_table() -> Iterator[str]:
    yield f"{'package':12} {'modules':>8} {'lines':>8} {'one importer':>13}"
    for package, count, lines, alone in division():
        yield f"{package:12} {count:8} {lines:8} {alone:13}"


def walk_table(*, names: bool) -> Iterator[str]:
    yield f"{'walk':24} {'files':>6} {'crossings':>10}"
    for way in WALKS:
        parts = followed(way)
        everything = sorted({file for part in parts.values() for file in part["files"]})
        for name, part in parts.items():
            yield f"{name:24} {len(part['files']):6} {part['crossings']:10}"
        if len(parts) > 1:
            crossings = sum(part["crossings"] for part in parts.values())
            yield f"{'browser to curve':24} {len(everything):6} {crossings:10}"
        if names:
            yield from (f"    {file}" for file in everything)


def main(words: list[str]) -> None:
    """Print the tables; with `--names` also every file that is entered."""
    if words and words[0] in WALKS:
        walk = Walk()
        WALKS[words[0]](walk)
        sys.setprofile(None)
        told = {name: part.as_json() for name, part in walk.parts.items()}
        sys.stdout.write(f"{json.dumps(told)}\n")
        return
    for line in (*division_table(), "", *walk_table(names="--names" in words)):
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
