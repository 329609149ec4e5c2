"""Do the tests notice faults? Makes one after another, in a copy, and runs the related tests.

    python -m tests.mutation                     all of them
    python -m tests.mutation --only lease        those with this text in title, folder or tests
    python -m tests.mutation --list              only say which there are
    python -m tests.mutation --lanes 2           two copies side by side

Exits with 0 only if every edit could be made and was noticed.
"""

import argparse
import sys
import time
from collections import Counter

from rich.console import Console
from rich.table import Table

from tests.mutation.edit import Edit
from tests.mutation.edits import EDITS
from tests.mutation.running import Outcome, Verdict, copies, judge_all, why_unready

console = Console(soft_wrap=True, highlight=False, markup=False)


def main(arguments: list[str]) -> int:
    """Return 0 if every edit was noticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", default="", metavar="PATTERN", help="part of a title or name")
    parser.add_argument("--list", action="store_true", help="run nothing")
    parser.add_argument("--lanes", type=int, default=1, help="copies side by side")
    asked = parser.parse_args(arguments)
    edits = [edit for edit in EDITS if asked.only.lower() in _words(edit)]
    if not edits:
        console.print(f"No edit has {asked.only!r} in its title, folder or tests.")
        return 2
    if asked.list:
        for edit in edits:
            console.print(f"{edit.folder}: {edit.fault}")
        return 0
    return _run(edits, max(1, asked.lanes))


def _words(edit: Edit) -> str:
    return " ".join([edit.fault, edit.folder, *edit.tests]).lower()


def _run(edits: list[Edit], lanes: int) -> int:
    began = time.monotonic()
    outcomes: list[Outcome] = []
    with copies(lanes) as made:
        reason = why_unready(made[0], edits)
        if reason is not None:
            console.print(reason)
            return 1
        console.print(f"Without an edit all tests pass ({time.monotonic() - began:.0f} s).")
        for outcome in judge_all(made, edits):
            _tell(outcome)
            outcomes.append(outcome)
    _summarise(outcomes)
    return 0 if all(outcome.verdict is Verdict.CAUGHT for outcome in outcomes) else 1


def _tell(outcome: Outcome) -> None:
    edit = outcome.edit
    console.print(f"{outcome.verdict:9} {outcome.seconds:5.1f} s  {edit.folder}: {edit.fault}")


def _summarise(outcomes: list[Outcome]) -> None:
    table = Table("package", *(str(verdict) for verdict in Verdict), "seconds")
    for package in sorted({outcome.edit.package for outcome in outcomes}):
        own = [outcome for outcome in outcomes if outcome.edit.package == package]
        table.add_row(package, *_numbers(own))
    table.add_row("all", *_numbers(outcomes))
    console.print(table)
    for outcome in outcomes:
        if outcome.reason:
            console.print(f"{outcome.edit.fault}: {outcome.reason}")


def _numbers(outcomes: list[Outcome]) -> list[str]:
    counts = Counter(outcome.verdict for outcome in outcomes)
    seconds = sum(outcome.seconds for outcome in outcomes)
    return [*(str(counts[verdict]) for verdict in Verdict), f"{seconds:.0f}"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
