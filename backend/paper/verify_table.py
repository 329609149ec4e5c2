"""What `etascope verify` found, as a table on the terminal."""

import sys
from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from ib_core.reproduction.verifying import Check, Drawn

COLOURS = {"agrees": "green", "chaotic": "yellow", "differs": "red"}


def print_checks(checks: Sequence[Check], drawn: Drawn) -> None:
    """Print every trial then and now, and the counts."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    table = Table("trial", box=None)
    for title in ("rate", "seed", "bundle", "again", "rounding", ""):
        table.add_column(title, justify="right")
    for one in checks:
        spec = one.kept.spec
        rule = f" {spec.batch_rule}" if spec.batch_rule else ""
        clip = "" if spec.clip is None else f" clip {spec.clip:g}"
        table.add_row(
            f"{spec.task} {spec.profile} {spec.method}{rule}{clip}",
            f"{spec.lr:g}",
            str(spec.seed),
            f"{one.kept.train_loss:.6g}",
            f"{one.again:.6g}",
            f"{one.spread:.2g}" if one.nudged else "",
            f"[{COLOURS[one.verdict]}]{one.verdict}[/]",
        )
    console.print(table)
    counts = Counter(one.verdict for one in checks)
    words = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    console.print(f"{len(checks)} trials trained again: {words}.")
    if counts["chaotic"]:
        console.print(
            "Chaotic: a rounding error in the rate alone moves the loss by so much (column "
            "rounding), a tenth of the difference or more.",
            soft_wrap=True,
        )
    changed = sum(not one.same_data for one in checks)
    if changed:
        console.print(f"{changed} were made with other data or another engine version.")
    if drawn.too_long:
        console.print(f"{drawn.too_long} were passed over as too long; see --max-minutes.")
