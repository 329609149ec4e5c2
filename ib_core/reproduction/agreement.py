"""One number of ours beside one of theirs, and whether they agree."""

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Comparison:
    """One number.

    Attributes:
        what: Which number, in words.
        ours: Computed here.
        theirs: Recorded or printed.
        agrees: By the check's own stated rule.
        reason: Why not, where it does not.
    """

    what: str
    ours: float
    theirs: float
    agrees: bool
    reason: str = ""


def within(ours: float, theirs: float, *, absolute: float = 0.0, relative: float = 0.0) -> bool:
    """Return whether two numbers agree to an absolute or a relative tolerance; NaN equals NaN."""
    if not math.isfinite(ours) or not math.isfinite(theirs):
        return math.isnan(ours) == math.isnan(theirs) and math.isinf(ours) == math.isinf(theirs)
    return abs(ours - theirs) <= max(absolute, relative * abs(theirs))


def summary(title: str, rule: str, found: Iterable[Comparison]) -> str:
    """Return a check's text: the count that agrees, and every number that does not."""
    comparisons = list(found)
    agreeing = sum(comparison.agrees for comparison in comparisons)
    share = 100 * agreeing / max(1, len(comparisons))
    lines = [f"{title}: {agreeing} of {len(comparisons)} agree ({share:.1f}%), {rule}."]
    lines += [
        f"  {c.what}: ours {c.ours:.7g}, theirs {c.theirs:.7g}  {c.reason}".rstrip()
        for c in comparisons
        if not c.agrees
    ]
    return "\n".join(lines)
