"""Table 1 of the paper in words: the lines of IB's relu rule, and which one applies."""

from backend.schemas import RuleCase

#: By the sign of b: for which s, and what the step does. The last line of b < 0 is the paper's
#: one before it, set apart because there EB moves too.
LINES: dict[int, tuple[tuple[str, str], ...]] = {
    1: (
        ("s ≤ 0", "No step: the node is off."),
        ("0 < s ≤ η|z|²b", "The step stops at the hinge."),
        ("s > η|z|²b", "The full step, as EB."),
    ),
    -1: (
        ("s ≤ η|z|²b/2", "No step: the hinge is too far away."),
        ("η|z|²b/2 < s ≤ 0", "It looks past the hinge: the full step."),
        ("s > 0", "The full step, as EB."),
    ),
}


def line_of(s: float, b: float, travel: float) -> int:
    """Return which line of its sign's table applies.

    Args:
        s: Pre-activation before the step.
        b: Gradient at the node's output, not 0.
        travel: lr * |z|^2, how far one unit of alpha moves s.
    """
    bounds = (0.0, travel * b) if b > 0 else (travel * b / 2, 0.0)
    return sum(s > bound for bound in bounds)


def words_of(s: float, b: float, travel: float) -> str:
    """Return what IB's step does, in the table's words."""
    return LINES[1 if b > 0 else -1][line_of(s, b, travel)][1] if b else "No step: b is zero."


def table(s: float, b: float, travel: float) -> list[RuleCase]:
    """Return every line for b from s and for -b from -s, and which of them apply."""
    return [
        RuleCase(
            b=push, condition=condition, words=words, applies=index == line_of(at, push, travel)
        )
        for at, push in ((s, b), (-s, -b))
        if push
        for index, (condition, words) in enumerate(LINES[1 if push > 0 else -1])
    ]
