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
    here = _trained(tasks, families)
    if len(here) < 2:
        return []
    subject = next(iter(families.values()))[0]
    found = [_beaten(subject, tasks, names), _against(subject, yardstick, tasks, names)]
    found += [_winners(number, words, tasks, here, names) for number, words in QUESTIONS]
    found += [_given_up(tasks, here), _costs(tasks, here, names)]
    return [one for one in found if one is not None]


def counts_told(
    tasks: ByTask,
    families: Mapping[str, Sequence[str]],
    names: Mapping[str, str],
    *,
    noun: str = "task",
    yardstick: str = "eb",
) -> list[Said]:
    """Return on how many of very many tasks who does better; how surely is for ranks to say.

    With one seed or two no task says anything surely by itself, and with a hundred no lead is
    worth a name. A tie at the top counts for nobody.

    Args:
        tasks: See `which_method`.
        families: See `which_method`.
        names: See `which_method`.
        noun: What a task is called.
        yardstick: See `which_method`.
    """
    here = _trained(tasks, families)
    if len(here) < 2:
        return []
    subject, found = next(iter(families.values()))[0], []
    against, behind = [], []
    for number, words, (less, more) in VERSUS:
        ends = {
            name: own.value - other.value
            for name, row in tasks.items()
            if (own := _number(row, subject, number)) and own.value is not None
            if (other := _number(row, yardstick, number)) and other.value is not None
        }
        if ends:
            lower, higher = ([one for one in ends if s * ends[one] > 0] for s in (-1, 1))
            of = f"{len(ends)} {noun}{'s' if len(ends) > 1 else ''}"
            against.append(f"{words} {less} on {len(lower)} of {of}, and {more} on {len(higher)}")
            # Of a hundred names those are told that are fewer; the others follow.
            told, fewer = min((less, lower), (more, higher), key=lambda one: len(one[1]))
            behind += [f"{told[0].upper()}{told[1:]} on {_and(fewer)}."] if fewer else []
    if against:
        asked = " against ".join(names.get(one, one) for one in (subject, yardstick))
        found.append(Said(asked, f"{'; '.join(against)}.", " ".join(behind)))
    for number, words in QUESTIONS:
        won, count = _wins(number, tasks, here)
        if count:
            parts = [
                f"{_called(family, here[family], names)} on {wins}{'' if place else f' of {count}'}"
                for place, (family, wins) in enumerate(won)
            ]
            found.append(Said(words, f"{_and(parts)}."))
    if said := _given_up(tasks, here, noun):
        found.append(said)
    return found


def _wins(
    number: str, tasks: ByTask, families: Mapping[str, Sequence[str]]
) -> tuple[list[tuple[str, int]], int]:
    """Return on how many tasks each family is lowest alone, the most first, and of how many."""
    wins, count = dict.fromkeys(families, 0), 0
    for row in tasks.values():
        ends = {
            family: row[best][number].value or 0.0
            for family, kin in families.items()
            if (best := _best(row, kin, number))
        }
        if len(ends) < 2:
            continue
        count += 1
        winner, second = sorted(ends, key=lambda family: ends[family])[:2]
        wins[winner] += ends[winner] < ends[second]
    return sorted(wins.items(), key=lambda one: -one[1]), count


def _trained(tasks: ByTask, families: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the families of which something was trained, with those of their methods."""
    here = {
        name: [m for m in kin if any(m in row for row in tasks.values())]
        for name, kin in families.items()
    }
    return {name: kin for name, kin in here.items() if kin}


def _called(family: str, kin: Sequence[str], names: Mapping[str, str]) -> str:
    """Return a family's name with its size, or who stands for it alone."""
    return f"{family}{_size_of(kin)}" if len(kin) > 1 else names.get(kin[0], kin[0])


def _size_of(kin: Sequence[str]) -> str:
    return f" ({len(kin)} methods)" if len(kin) > 1 else ""


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
    order = sorted(won, key=lambda family: -_size(won[family]))
    count = sum(map(_size, won.values()))
    parts = [
        f"{family}{_size_of(families[family])} {_on(won[family], 0 if place else count)}"
        for place, family in enumerate(order)
    ]
    nowhere = [family for family in families if family not in won]
    rest = f"; {_and(nowhere)} nowhere" if nowhere else ""
    behind = " ".join(_sentence(f"{family} {_named(won[family])}") for family in order)
    return Said(words, f"{'; '.join(parts)}{rest}.", behind)


def _given_up(
    tasks: ByTask, families: Mapping[str, Sequence[str]], noun: str = "task"
) -> Said | None:
    told, fewest = [], len(tasks)
    for family, kin in families.items():
        prices = [
            price
            for row in tasks.values()
            if (best := _best(row, kin, TUNED)) and (price := row[best]["price"].value) is not None
        ]
        if prices:
            fewest = min(fewest, len(prices))
            told.append(f"{family} {number_text(100 * median(prices), 2)} %")
    if not told:
        return None
    words = "at its best rate a family's best method ends above the lowest by"
    over = f"the {noun}s" if fewest == len(tasks) else f"the {fewest} {noun}s or more that have it"
    return Said("Price of robustness", f"{words} {_and(told)}, the median over {over}.")


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
