"""What `etascope verify` found, as a table on the terminal."""

import sys
from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from ib_core.reproduction import Check, Drawn
from ib_core.sweep import TrialResult

COLOURS = {"agrees": "green", "chaotic": "yellow", "differs": "red"}
#: Verdicts before a count.
COUNTED = {"agrees": "agreeing", "chaotic": "chaotic", "differs": "differing"}


def print_checks(checks: Sequence[Check], drawn: Drawn) -> None:
    """Print every trial then and now, and the counts."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 130)
    console.print(_table(checks))
    counts = Counter(one.verdict for one in checks)
    words = ", ".join(f"{word} {counts[verdict]}" for verdict, word in COUNTED.items())
    lines = [f"{len(checks)} trials trained again: {words}.", *_what_it_means(checks, counts)]
    changed = sum(not one.same_data for one in checks)
    if changed:
        lines.append(f"{changed} were made with other data or another engine version.")
    if drawn.too_long:
        lines.append(f"{drawn.too_long} were passed over as too long; see --max-minutes.")
    for line in lines:
        console.print(line, soft_wrap=True)


def _table(checks: Sequence[Check]) -> Table:
    """Return a row a trial: of the number that decides, the training loss if all agree."""
    table = Table("trial", box=None)
    for title in ("rate", "seed", "number", "bundle", "again", "rounding", ""):
        table.add_column(title, justify="right")
    for one in checks:
        spec, worst = one.kept.spec, one.worst
        rule = f" {spec.batch_rule}" if spec.batch_rule else ""
        clip = "" if spec.clip is None else f" clip {spec.clip:g}"
        table.add_row(
            f"{spec.task} {spec.profile} {spec.method}{rule}{clip}",
            f"{spec.lr:g}",
            str(spec.seed),
            worst.name.replace("_", " "),
            _shown(one.kept, worst.name),
            _shown(one.again, worst.name),
            f"{worst.spread:.2g}" if one.nudged else "",
            f"[{COLOURS[worst.verdict]}]{worst.verdict}[/]",
        )
    return table


def _shown(result: TrialResult, name: str) -> str:
    value = getattr(result, name)
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _what_it_means(checks: Sequence[Check], counts: Counter[str]) -> list[str]:
    """Return what the counts do and do not show."""
    if not counts["chaotic"]:
        return []
    tested = len(checks) - counts["chaotic"]
    said = [
        "Chaotic: a rounding error in the rate alone moves the number by so much (column "
        "rounding), a tenth of the difference or more."
    ]
    if tested:
        said.append(f"So {tested} of the {len(checks)} were tested: rounding does not decide them.")
    else:
        said.append(
            "So nothing was confirmed: no trial that was drawn could be tested. Another --seed or "
            "a larger --sample draws others."
        )
    return said
