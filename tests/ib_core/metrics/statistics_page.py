"""The part of docs/statistics.md that takes minutes: how often intervals hold the truth.

`python -m tests.ib_core.metrics.statistics_page` measures and writes it; `make docs` the others.
"""

import re
from pathlib import Path

from ib_core.metrics import KINDS
from tests.ib_core.metrics.coverage import ENDS, SEEDS_TRIED, Rates, measure
from tests.ib_core.metrics.populations import TASKS

PAGE = Path(__file__).parents[3] / "docs" / "statistics.md"
COLUMNS = [(task, seeds) for task in TASKS for seeds in SEEDS_TRIED]


def coverage(rates: Rates) -> str:
    """Return how often intervals hold the truth."""
    order = [*KINDS, *(f"best_of_{k}" for k in ENDS)]
    rows = [
        [f"`{name}`", *(f"{100 * rates[name][one]:.1f} %" for one in COLUMNS)]
        for name in sorted(rates, key=order.index)
    ]
    return _table(["number", *(f"{task}, {seeds} seeds" for task, seeds in COLUMNS)], rows)


def printed_coverage() -> Rates:
    """Return the coverage that the page shows."""
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+ %.*) \|$", part("coverage"), re.MULTILINE)
    return {
        name: {
            column: float(cell.removesuffix(" %")) / 100
            for column, cell in zip(COLUMNS, cells.split(" | "), strict=True)
        }
        for name, cells in rows
    }


def part(name: str) -> str:
    """Return what the page has between two marks."""
    found = re.search(_between(name), PAGE.read_text("utf-8"), re.DOTALL)
    assert found is not None, f"{PAGE.name} has no marks for {name}"
    return found.group(1)


def _between(name: str) -> str:
    return rf"(?<=<!-- {name} -->\n)(.*?)\n?(?=<!-- end of {name} -->)"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    text = PAGE.read_text("utf-8")
    new = coverage(measure())
    text = re.sub(_between("coverage"), lambda _: f"{new}\n", text, flags=re.DOTALL)
    PAGE.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
