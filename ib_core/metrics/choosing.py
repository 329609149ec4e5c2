"""Which method? Where others beat the first one and where it wins, what each gives up and costs.

Everything is told from scorecards of many tasks, whoever trained them. Sentences count tasks where
names would be many; the names stand behind them.
"""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple, Protocol

from ib_core.metrics.number import number_text


class Told(Protocol):
    """A number as tables have it: here, or as the API tells it."""

    @property
    def value(self) -> float | None:
        """The number; None where there is none."""

    @property
    def low(self) -> float | None:
        """Lower end of its interval."""

    @property
    def high(self) -> float | None:
        """Upper end of its interval."""


class Said(NamedTuple):
    """A sentence.

    Attributes:
        asked: What it is about.
        told: What is said of it.
        behind: The tasks that were counted, by name; empty where there is nothing more to say.
    """

    asked: str
    told: str
    behind: str = ""


#: Numbers by task, method and name.
ByTask = Mapping[str, Mapping[str, Mapping[str, Told]]]
#: Tasks by whether a lead is clear there.
Places = dict[bool, list[str]]
#: What is asked of the methods: the number that decides, lower being better, and its words.
QUESTIONS = (
    (TUNED := "best_mean", "With its rate chosen with care, the lowest loss"),
    (STEADY := "lr_sensitivity", "With any rate of the common range, the least loss given up"),
    ("best_of_3", "With three rates drawn blindly and the best kept, the lowest expected loss"),
)
#: By what the first method is compared with the yardstick, and what it does then.
VERSUS = (
    (TUNED, "at its best rate it", ("ends lower", "ends higher")),
    (STEADY, "with any rate of the common range it", ("gives up less", "gives up more")),
)
#: So many tasks are named in a sentence, more are counted.
FEW = 2
#: So many methods are named of a ranking.
FIRST = 3


def which_method(
    tasks: ByTask,
    families: Mapping[str, Sequence[str]],
    names: Mapping[str, str],
    *,
    yardstick: str = "eb",
) -> list[Said]:
    """Return where others beat the first method and where it wins, by method and by family.

    A family is as good on a task as its best method there, so one of many methods has more tries
    and its size is said. Its lead is clear where the winner's interval ends below that of the best
    method of every other family. Behind that comes what each gives up elsewhere, and what it costs.

    Args:
        tasks: The scorecards' numbers by task and method.
        families: The methods of every family, by its name; the first one's first is whom all is
            about.
        names: What to call the methods.
        yardstick: Whom the first method is compared with besides.
    """
    here = {
        name: [m for m in kin if any(m in row for row in tasks.values())]
        for name, kin in families.items()
    }
    here = {name: kin for name, kin in here.items() if kin}
    if not tasks or len(here) < 2:
        return []
    subject = next(iter(families.values()))[0]
    found = [_beaten(subject, tasks, names), _against(subject, yardstick, tasks, names)]
    found += [_winners(number, words, tasks, here, names) for number, words in QUESTIONS]
    found += [_given_up(tasks, here), _costs(tasks, here, names)]
    return [one for one in found if one is not None]


def _beaten(subject: str, tasks: ByTask, names: Mapping[str, str]) -> Said | None:
    """Return where another method's best mean is below the subject's, and where none is."""
    above: Places = {True: [], False: []}
    lowest = []
    for task, row in tasks.items():
        others = [method for method in row if method != subject]
        best, own = _best(row, others, TUNED), _number(row, subject, TUNED)
        if best is None or own is None or own.value is None:
            continue
        end = row[best][TUNED]
        if (end.value or 0.0) < own.value:
            above[_apart(end, own)].append(f"{task} ({names.get(best, best)})")
        else:
            lowest.append(task)
    if not (lowest or any(above.values())):
        return None
    count = len(lowest) + sum(map(len, above.values()))
    won = f"lowest of all on {_and(lowest)}" if lowest else "lowest nowhere"
    if any(above.values()):
        won = f"at its best rate another method ends lower {_on(above, count)}; it is {won}"
    steady = [task for task, row in tasks.items() if _best(row, [*row], STEADY) == subject]
    rest = f"; with any rate of the range it gives up least on {_and(steady)}" if steady else ""
    called = names.get(subject, subject)
    return Said(f"{called} itself", f"{won}{rest}.", _sentence(_named(above)))


def _against(subject: str, yardstick: str, tasks: ByTask, names: Mapping[str, str]) -> Said | None:
    """Return where the subject does better than the yardstick, tuned and untuned, and where not."""
    told, behind = [], []
    for number, words, (less, more) in VERSUS:
        better: Places = {True: [], False: []}
        worse: Places = {True: [], False: []}
        for task, row in tasks.items():
            own, other = _number(row, subject, number), _number(row, yardstick, number)
            if own is None or other is None or own.value is None or other.value is None:
                continue
            if own.value < other.value:
                better[_apart(own, other)].append(task)
            elif own.value > other.value:
                worse[_apart(other, own)].append(task)
        if count := _size(better) + _size(worse):
            told.append(f"{words} {less} {_on(better, count)}, and {more} {_on(worse)}")
            sides = ((less, better), (more, worse))
            behind += [_sentence(f"{side} {_named(one)}") for side, one in sides if _size(one)]
    if not told:
        return None
    asked = " against ".join(names.get(one, one) for one in (subject, yardstick))
    return Said(asked, f"{'; '.join(told)}.", " ".join(behind))


def _winners(
    number: str,
    words: str,
    tasks: ByTask,
    families: Mapping[str, Sequence[str]],
    names: Mapping[str, str],
) -> Said | None:
    won: dict[str, Places] = {}
    for task, row in tasks.items():
        best = {f: one for f, kin in families.items() if (one := _best(row, kin, number))}
        if len(best) < 2:
            continue
        ends = {family: row[method][number] for family, method in best.items()}
        winner = min(ends, key=lambda family: ends[family].value or 0.0)
        clear = all(_apart(ends[winner], ends[one]) for one in ends if one != winner)
        places = won.setdefault(winner, {True: [], False: []})
        places[clear].append(f"{task} ({names.get(best[winner], best[winner])})")
    if not won:
        return None
    sizes = {f: f" ({len(kin)} methods)" if len(kin) > 1 else "" for f, kin in families.items()}
    order = sorted(won, key=lambda family: -_size(won[family]))
    count = sum(map(_size, won.values()))
    parts = [
        f"{family}{sizes[family]} {_on(won[family], 0 if place else count)}"
        for place, family in enumerate(order)
    ]
    nowhere = [family for family in families if family not in won]
    rest = f"; {_and(nowhere)} nowhere" if nowhere else ""
    behind = " ".join(_sentence(f"{family} {_named(won[family])}") for family in order)
    return Said(words, f"{'; '.join(parts)}{rest}.", behind)


def _given_up(tasks: ByTask, families: Mapping[str, Sequence[str]]) -> Said | None:
    told = []
    for family, kin in families.items():
        prices = [
            price
            for row in tasks.values()
            if (best := _best(row, kin, TUNED)) and (price := row[best]["price"].value) is not None
        ]
        if prices:
            told.append(f"{family} {number_text(100 * median(prices), 2)} %")
    if not told:
        return None
    words = "at its best rate a family's best method ends above the lowest by"
    return Said("Price of robustness", f"{words} {_and(told)}, the median over the tasks.")


def _costs(tasks: ByTask, families: Mapping[str, Sequence[str]], names: Mapping[str, str]) -> Said:
    told = []
    for method in (method for kin in families.values() for method in kin):
        rows = [row[method]["step_cost"].value for row in tasks.values() if method in row]
        known = [cost for cost in rows if cost is not None]
        if known:
            told.append(f"{names.get(method, method)} {number_text(median(known), 2)}")
    if not told:
        return Said("", "What a step costs has not been measured on this machine yet.")
    return Said("A step costs, against EB's", f"{_and(told)}.")


def ranks_told(
    ranks: Mapping[str, float], difference: float, over: str, names: Mapping[str, str]
) -> Said:
    """Return who ranks first, who cannot be told from the first, and behind it all mean ranks.

    Args:
        ranks: Mean ranks by method, 1 the best.
        difference: Ranks that differ by less cannot be told apart.
        over: What they are means of, and by what methods are ranked.
        names: What to call the methods.
    """
    order = sorted(ranks, key=lambda method: ranks[method])
    listed = [f"{names.get(one, one)} {number_text(ranks[one], 2)}" for one in order]
    near = [one for one in order if ranks[one] - ranks[order[0]] < difference]
    rest = "all others can be told from it"
    if near[1:]:
        rest = f"{len(near) - 1} of the others cannot be told from the first"
    return Said(
        f"Mean rank over {over}",
        f"{_and(listed[:FIRST])} come first of {len(order)}; {rest}.",
        f"{_and(listed)}. Ranks closer than {number_text(difference, 2)} (the critical "
        "difference) cannot be told apart.",
    )


def _number(row: Mapping[str, Mapping[str, Told]], method: str, number: str) -> Told | None:
    return row[method][number] if method in row else None


def _best(row: Mapping[str, Mapping[str, Told]], kin: Sequence[str], number: str) -> str | None:
    """Return the method of a family with the lowest number on a task."""
    known = {m: v for m in kin if m in row and (v := row[m][number].value) is not None}
    return min(known, key=lambda method: known[method], default=None)


def _apart(lower: Told, higher: Told) -> bool:
    """Tell whether one interval ends before the other begins."""
    return lower.high is not None and higher.low is not None and lower.high < higher.low


def _size(places: Places) -> int:
    return sum(map(len, places.values()))


def _on(places: Places, of: int = 0) -> str:
    """Return on which tasks or, where they are many, on how many and on which of them clearly."""
    size, clear = _size(places), places[True]
    if not of and size <= FEW:
        return _named(places) or "on none"
    which = _and(clear) if 0 < len(clear) <= FEW else str(len(clear) or "none")
    all_of = f" of {of} task{'s' if of > 1 else ''}" if of else ""
    return f"on {size}{all_of}, clearly on {which}"


def _named(places: Places) -> str:
    """Return the tasks by whether the lead is clear there."""
    words = {True: "clearly on", False: "within the intervals on"}
    parts = [f"{words[clear]} {_and(each)}" for clear, each in places.items() if each]
    return ", and ".join(parts)


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}." if words else ""


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
