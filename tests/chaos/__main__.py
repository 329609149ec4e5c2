"""How many faults does it take to lose a trial? Makes them while work keeps coming, and counts.

    python -m tests.chaos                      500 faults of 20 kinds, about half an hour
    python -m tests.chaos --faults 40          fewer
    python -m tests.chaos --seed 7             another order
    python -m tests.chaos --log faults.log     what happened when, and the parts' own logs beside it
    python -m tests.chaos --into docs/benchmarks.md

Afterwards the same sweeps are trained once more where nothing happens, and every result is
compared. Exits with 0 only if no trial was lost, doubled or changed, and every fault was made.
Needs root on Linux: processes get namespaces of their own.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import Engine

from backend.cli.bench import put_between_marks
from backend.db import build_engine
from backend.operations.programs import missing_for_faults
from tests.chaos.faults import Injector
from tests.chaos.judging import WITNESS, Verdict, drain, judge, results
from tests.chaos.stage import Stage, build
from tests.chaos.submitters import TRIALS, Submitter
from tests.installation import START_SECONDS, Installation
from tests.servers import wait_for

SUBMITTERS, PAUSE = 3, 6.0
INSIDE = "ETASCOPE_CHAOS_INSIDE"
#: With the first process all others end, and all mounts and networks are gone.
NAMESPACES = ["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]


class Log:
    """Tells what happens, on the terminal and in a file."""

    def __init__(self, file: Path | None) -> None:
        self._file = file.open("a", encoding="utf-8") if file else None
        self._began = time.monotonic()

    def __call__(self, line: str) -> None:
        """Tell a line, with the minutes and seconds since the start."""
        minutes, seconds = divmod(time.monotonic() - self._began, 60)
        told = f"{minutes:3.0f}:{seconds:04.1f}  {line}"
        print(told, flush=True)  # noqa: T201
        if self._file:
            self._file.write(told + "\n")
            self._file.flush()


def main(arguments: list[str]) -> int:
    """Return 0 if nothing was lost, doubled or changed."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--faults", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", type=Path, help="append what happens to this file")
    parser.add_argument("--into", type=Path, help="put the table between its marks in this file")
    asked = parser.parse_args(arguments)
    if INSIDE not in os.environ:
        return _enter(arguments)
    # Its disks are still mounted at the end, and go with the namespace.
    with tempfile.TemporaryDirectory(
        prefix="eta-chaos-", dir="/tmp", ignore_cleanup_errors=True
    ) as folder:
        return _run(Path(folder), asked)


def _enter(arguments: list[str]) -> int:
    """Go on in namespaces of our own, or say why not."""
    lacking = [lack.part for lack in missing_for_faults()]
    if sys.platform != "linux" or os.geteuid() != 0 or lacking:
        needs = f"; {', '.join(lacking)} is missing" if lacking else ""
        print(f"This needs root on Linux{needs}.", file=sys.stderr)  # noqa: T201
        return 2
    command = ["unshare", *NAMESPACES, sys.executable, "-m", "tests.chaos", *arguments]
    os.execvpe("unshare", command, {**os.environ, INSIDE: "1"})


def _run(folder: Path, asked: argparse.Namespace) -> int:
    log = Log(asked.log)
    with build(folder) as stage, _kept(stage.logs, asked.log):
        stage.database.execute(WITNESS, "chaos")
        log(f"everything is up; {asked.faults} faults, seed {asked.seed}")
        injector = Injector(stage, asked.seed, asked.faults, log)
        began = time.monotonic()
        bodies, refused = _submit_meanwhile(stage, injector, log)
        seconds = time.monotonic() - began
        engine = build_engine(stage.url("chaos"))
        wait_for(stage.team.ready, seconds=START_SECONDS, what="everybody to be back", every=0.5)
        log("all faults are mended; waiting for what is left")
        stuck: list[str] = []
        drain(engine, stuck.append)
        log("the same where nothing happens")
        undisturbed = _undisturbed(stage, list(bodies.values()), stuck)
        verdict = judge(engine, list(bodies), TRIALS * len(bodies), undisturbed)
    wrong = [*injector.broken, *refused, *stuck, *verdict.problems]
    for sentence in wrong:
        log(f"WRONG: {sentence}")
    rows = table(injector.made, verdict)
    for row in rows:
        log("  ".join(str(cell) for cell in row.values()))
    log(
        f"{len(bodies)} sweeps accepted in {seconds / 60:.1f} min; "
        f"ended by themselves: {dict(injector.revived) or 'none'}"
    )
    good = verdict.good and not wrong
    if asked.into and good:
        _write(asked.into, rows, asked)
    return 0 if good else 1


@contextmanager
def _kept(logs: Path, beside: Path | None) -> Iterator[None]:
    """Keep the parts' own logs beside the log, also of a run that broke."""
    try:
        yield
    finally:
        if beside is not None:
            shutil.copytree(logs, beside.with_suffix(".parts"), dirs_exist_ok=True)


def _submit_meanwhile(
    stage: Stage, injector: Injector, log: Log
) -> tuple[dict[int, dict[str, Any]], list[str]]:
    """Make the faults while people submit; return what was accepted by sweep, and refusals."""
    url = stage.team.door.url
    study = _new_study(stage.team)
    crowd = [Submitter(url, study, n, varied=True, pause=PAUSE) for n in range(SUBMITTERS)]
    for submitter in crowd:
        submitter.start()
    injector.run()
    for submitter in crowd:
        submitter.ended.set()
    for submitter in crowd:
        submitter.join(60)
    log("nobody submits any longer")
    accepted = {id: body for one in crowd for id, body in one.accepted.items()}
    return accepted, [sentence for one in crowd for sentence in one.refused]


def _new_study(team: Installation) -> int:
    answer = httpx.post(
        f"{team.door.url}/api/studies", json={"name": "Chaos"}, trust_env=False, timeout=20
    )
    return int(answer.raise_for_status().json()["id"])


def _undisturbed(stage: Stage, bodies: list[dict[str, Any]], stuck: list[str]) -> dict[str, str]:
    """Return the hashes of the same sweeps' results, from an installation left in peace."""
    for part in (*stage.team.webs, *stage.team.workers):
        part.kill()
    stage.broker.forget()
    engine: Engine = build_engine(stage.url("quiet"))
    with stage.installation("quiet", workers=2) as team:
        study, ids = _new_study(team), []
        for body in bodies:
            answer = httpx.post(
                f"{team.door.url}/api/studies/{study}/sweeps",
                json=body,
                trust_env=False,
                timeout=60,
            )
            ids.append(int(answer.raise_for_status().json()["id"]))
        drain(engine, stuck.append)
        return results(engine, ids)


def table(made: Counter[str], verdict: Verdict) -> list[dict[str, Any]]:
    """Return the rows of the figure: faults by kind, then what they did."""
    rows: list[dict[str, Any]] = [{"what": kind, "count": made[kind]} for kind in sorted(made)]
    return [
        *rows,
        {"what": "**faults**", "count": f"**{made.total()}**"},
        {"what": "trials accepted meanwhile", "count": verdict.accepted},
        {"what": "of these begun again", "count": verdict.again},
        {"what": "**trials lost**", "count": f"**{verdict.lost}**"},
        {"what": "**trials doubled**", "count": f"**{verdict.doubled}**"},
        {"what": "**trials changed**", "count": f"**{verdict.changed}**"},
        {"what": "contradictions in the database", "count": len(verdict.problems)},
    ]


def _write(file: Path, rows: list[dict[str, Any]], asked: argparse.Namespace) -> None:
    lines = ["| what | count |", "| --- | --- |"]
    lines += [f"| {row['what']} | {row['count']} |" for row in rows]
    command = f"`python -m tests.chaos --faults {asked.faults} --seed {asked.seed}`:\n\n"
    text = put_between_marks(
        file.read_text("utf-8"), "chaos", command + "\n".join(lines), where=file
    )
    file.write_text(text, "utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
