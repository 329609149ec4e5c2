"""Many series in one picture: what tells them apart, which are wanted, colours and panels."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar
from urllib.parse import quote

from plotly.colors import get_colorscale, sample_colorscale

from backend.schemas import ScorecardRow, SeriesRead
from dashboard.theme import (
    CATEGORY_COLOURS,
    LIGHT_TWINS,
    Scheme,
    SeriesStyle,
    method_style,
    number,
    series_style,
    told_method,
)

Line = TypeVar("Line", SeriesRead, ScorecardRow)
AnyLine = SeriesRead | ScorecardRow

METHOD, TASK = "method", "task"
#: What a control says where the picture chooses for itself, and where nothing is wanted.
AUTO, NONE = "auto", "none"
#: More curves than this in one panel are a thicket: they are laid out in several.
MOST_IN_A_PANEL = 8
#: More panels than this would be stamps.
MOST_PANELS = 24
#: So many panels may tell several settings at once, where those of one setting are thickets.
MOST_JOINED = 8
#: More lines than this of one method and colour are hard to follow.
MOST_OF_A_COLOUR = 2
#: Ordered settings with fewer values need no ramp to be told apart.
LEAST_RAMP = 3
#: Settings whose values speak for themselves.
PLAIN = ("activation", "batch_rule", "schedule", "task", "study", "experiment", "norm")
#: Settings that every network has, said or not.
NEVER_OFF = ("width", "depth", "epochs", "batch_size")
#: The ramps: of settings, and of rates over training.
RAMPS = ("Viridis", "Plasma")
#: Where ramps begin and end: their darkest is lost on black, their yellow on white.
RAMP_ENDS: dict[Scheme, tuple[float, float]] = {"light": (0.0, 0.78), "dark": (0.38, 1.0)}


@dataclass(frozen=True, slots=True)
class Family:
    """How a person wants to see many series.

    Attributes:
        colour: The setting that colours tell; `AUTO` chooses one.
        panel: The setting that gets a panel for each value; `AUTO` chooses, `NONE`: one panel.
        only: What is shown: "name:value" each; values of one setting add up, settings narrow down.
        rail: Whether the rail is opened when there are many lanes.
        over: The setting, or "epoch", that a map or a summary is drawn against.
        cell: What a map's colours mean.
        rate: The learning rate that a picture of one rate is about.
        smooth: Over how many evaluations learning curves are averaged.
    """

    colour: str = AUTO
    panel: str = AUTO
    only: tuple[str, ...] = ()
    rail: Literal["auto", "open"] = "auto"
    over: str = AUTO
    cell: Literal["loss", "broken"] = "loss"
    rate: float | None = None
    smooth: int = 1


@dataclass(frozen=True, slots=True)
class Setting:
    """What series differ in.

    Attributes:
        name: Of the setting.
        values: All it has, in order: numbers as numbers, 8 before 32.
        parts: The settings that are told as one; its values have a value of each.
    """

    name: str
    values: tuple[Any, ...]
    parts: tuple["Setting", ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all settings that it tells."""
        return tuple(part.name for part in self.parts) or (self.name,)

    @property
    def ordered(self) -> bool:
        """Whether its values are numbers; off counts as one."""
        return all(_is_number(value) or value is None for value in self.values)

    def of(self, line: AnyLine) -> Any:
        """Return a series' value."""
        own = settings_of(line)
        return tuple(map(own.get, self.names)) if self.parts else own.get(self.name)

    def place(self, line: AnyLine) -> int:
        """Return which of the values a series has."""
        return self.values.index(self.of(line))

    def say(self, value: Any) -> str:
        """Return a value in words that name it."""
        return ", ".join(_told(self.names, value if self.parts else (value,)))


def joined(settings: Sequence[Setting], lines: Sequence[AnyLine]) -> Setting:
    """Return settings told as one: every combination that some series has, in order."""
    if len(settings) == 1:
        return settings[0]
    rows = sorted({tuple(one.place(line) for one in settings) for line in lines})
    values = [tuple(s.values[at] for s, at in zip(settings, row, strict=True)) for row in rows]
    return Setting(" and ".join(one.name for one in settings), tuple(values), tuple(settings))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def settings_of(line: AnyLine) -> dict[str, Any]:
    """Return what a series is told apart by: its method, and what varies besides."""
    method = told_method(line.method, line.settings)
    return {METHOD: method} | {name: _hashable(v) for name, v in line.settings.items()}


def _hashable(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def varied(lines: Iterable[AnyLine]) -> list[Setting]:
    """Return the settings in which series differ, the method first."""
    found: dict[str, dict[Any, None]] = {}
    rows = [settings_of(line) for line in lines]
    names = dict.fromkeys(name for row in rows for name in row)
    for row in rows:
        for name in names:
            found.setdefault(name, {})[row.get(name)] = None
    settings = [Setting(name, _in_order(name, values)) for name, values in found.items()]
    return [one for one in settings if len(one.values) > 1 and not _follows(one.name, rows)]


def _follows(name: str, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the task alone decides a setting, so that naming the task tells it too."""
    by_task: dict[Any, set[Any]] = {}
    for row in rows:
        by_task.setdefault(row.get(TASK), set()).add(row.get(name))
    return (
        name not in (METHOD, TASK)
        and len(by_task) > 1
        and all(len(values) == 1 for values in by_task.values())
    )


def _in_order(name: str, values: Iterable[Any]) -> tuple[Any, ...]:
    """Return numbers in their order, behind "off"; words as they were asked for, tasks by name."""
    if name == METHOD:
        return tuple(values)
    return tuple(sorted(sorted(values, key=str) if name == TASK else values, key=_order))


def _order(value: Any) -> tuple[int, float]:
    if value is None:
        return 0, 0.0
    return (1, float(value)) if _is_number(value) else (2, 0.0)


def _told(names: Sequence[str], values: Sequence[Any]) -> list[str]:
    """Return settings in words; beside others none for the rule that a method has no use for."""
    every = list(zip(names, values, strict=True))
    return [say(*one) for one in every if one != ("batch_rule", None) or len(every) == 1]


def say(name: str, value: Any) -> str:
    """Return a setting's value in words that name it."""
    if name == METHOD:
        return method_style(value).title
    words = name.replace("_", " ")
    if value is None:
        return "plain" if name in PLAIN else f"{'usual' if name in NEVER_OFF else 'no'} {words}"
    if isinstance(value, bool):
        return words if value else f"no {words}"
    text = number(value) if isinstance(value, float) else str(value)
    return text if name in PLAIN else f"{words} {text}"


def token(name: str, value: Any) -> str:
    """Return a value of a setting as an address has it; never with a comma."""
    return f"{quote(name, safe='')}:{quote('none' if value is None else str(value), safe='')}"


def shown_only(lines: Sequence[Line], only: Sequence[str]) -> list[Line]:
    """Return the series that are wanted; what names nothing here asks for nothing."""
    known = {token(s.name, value): s.name for s in varied(lines) for value in s.values}
    wanted: dict[str, set[str]] = {}
    for one in only:
        if one in known:
            wanted.setdefault(known[one], set()).add(one)

    def kept(own: Mapping[str, Any]) -> bool:
        return all(token(name, own.get(name)) in tokens for name, tokens in wanted.items())

    return [line for line in lines if kept(settings_of(line))]


@dataclass(frozen=True, slots=True)
class Arrangement:
    """What colours and panels tell in one picture.

    Attributes:
        colour: None: the method, with other dashes for its further series.
        panel: None: all in one.
    """

    colour: Setting | None
    panel: Setting | None

    @property
    def ramp(self) -> bool:
        """Whether colours have an order."""
        return self.colour is not None and self.colour.ordered


def arrange(lines: Sequence[AnyLine], family: Family) -> Arrangement:
    """Return what colours and panels tell: what was asked for, or what can be read.

    A few series are coloured by method as everywhere. With an ordered setting of three values or
    more colours tell it, and panels the method; else the largest setting gets the panels. Where
    one of these is a thicket still, panels tell everything that colours do not, as in a map.
    """
    found = {one.name: one for one in varied(lines)}
    colour = found.get(family.colour)
    if family.colour == METHOD:
        colour = None
    elif colour is None:
        ramps = [s for s in found.values() if s.ordered and len(s.values) >= LEAST_RAMP]
        colour = max(ramps, key=lambda one: len(one.values), default=None)
    if family.panel in found:
        return Arrangement(colour, found[family.panel])
    if family.panel == NONE:
        return Arrangement(colour, None)
    told = {METHOD if colour is None else colour.name}
    rest = [s for s in found.values() if s.name not in told and len(s.values) <= MOST_PANELS]
    crowded = len(lines) > MOST_IN_A_PANEL or (colour is not None and METHOD in found)
    if not crowded or not rest:
        return Arrangement(colour, None)
    # The method is what is compared: where colours do not tell it, panels do.
    first = next((s for s in rest if s.name == METHOD), None)
    panel = first or max(rest, key=lambda one: len(one.values))
    most = 1 if colour is not None else MOST_IN_A_PANEL
    alike = Counter((panel.place(line), colour and colour.place(line)) for line in lines)
    if max(alike.values()) > most:
        every = joined([panel, *(one for one in rest if one is not panel)], lines)
        panel = every if len(every.values) <= MOST_JOINED else panel
    return Arrangement(colour, panel)


def colour_across(lines: Sequence[AnyLine], wanted: str, over: Setting) -> Setting | None:
    """Return what colours tell of lines drawn against a setting; None: the method.

    Where a method has many lines every line gets a colour, as far as there are colours.
    """
    told = {one.name: one for one in varied(lines) if one.name != over.name}
    methods = Counter(settings_of(line)[METHOD] for line in lines).values()
    crowded = max(methods, default=0) > MOST_OF_A_COLOUR and len(lines) <= len(CATEGORY_COLOURS)
    if wanted == AUTO and crowded:
        return joined(list(told.values()), lines)
    return told.get(wanted) if wanted != METHOD else None


def setting_over(lines: Sequence[AnyLine], wanted: str) -> Setting | None:
    """Return the setting a map or a summary is drawn against: the longest ordered one."""
    found = varied(lines)
    named = {one.name: one for one in found}
    if wanted in named:
        return named[wanted]
    rest = [one for one in found if one.name != METHOD] or found
    return max(rest, key=lambda one: (one.ordered, len(one.values)), default=None)


def panels_of(lines: Sequence[Line], panel: Setting | None) -> list[tuple[str, list[Line]]]:
    """Return every panel's title and series, in order."""
    if panel is None:
        return [("", list(lines))]
    by_place: dict[int, list[Line]] = {}
    for line in lines:
        by_place.setdefault(panel.place(line), []).append(line)
    return [(panel.say(panel.values[place]), by_place[place]) for place in sorted(by_place)]


def ramp(count: int, scheme: Scheme, name: str = "Viridis") -> list[str]:
    """Return so many colours of a ramp, evenly, as far from the page's as they must be."""
    return _along(name, scheme, [i / max(count - 1, 1) for i in range(count)])


def _along(name: str, scheme: Scheme, places: Sequence[float]) -> list[str]:
    low, high = RAMP_ENDS[scheme]
    wanted = [low + (high - low) * place for place in places]
    return [_hex(colour) for colour in sample_colorscale(name, wanted)]


def _hex(colour: str) -> str:
    parts = colour.removeprefix("rgb(").removesuffix(")").split(",")
    return "#" + "".join(f"{round(float(part)):02X}" for part in parts)


def light_twins() -> dict[str, Any]:
    """Return what every colour of the dark scheme is in the light one, for a picture on paper.

    Along a ramp both are straight between its corners: pairs of those tell all in between.
    """
    return {"pairs": LIGHT_TWINS, "ramps": [_ramp_twins(name) for name in RAMPS]}


def _ramp_twins(name: str) -> list[tuple[str, str]]:
    corners = {0.0, 1.0}
    for low, high in RAMP_ENDS.values():
        places = ((place - low) / (high - low) for place, _ in get_colorscale(name))
        corners |= {place for place in places if 0 < place < 1}
    dark, light = (_along(name, scheme, sorted(corners)) for scheme in ("dark", "light"))
    return list(zip(dark, light, strict=True))


def styles(
    lines: Sequence[AnyLine], arrangement: Arrangement, scheme: Scheme
) -> dict[str, SeriesStyle]:
    """Return each series' look; what would be alike in one panel gets other markers and dashes."""
    colours = _colours(arrangement.colour, scheme)
    seen: dict[tuple[Any, ...], int] = {}
    found = {}
    for line in lines:
        own = settings_of(line)
        tone = colours.get(arrangement.colour.of(line)) if arrangement.colour else None
        panel = arrangement.panel.of(line) if arrangement.panel else None
        look = (tone, own[METHOD], line.clip is not None, line.imported, panel)
        variant = seen[look] = seen.get(look, -1) + 1
        found[line.id] = series_style(
            line.method,
            scheme,
            clipped=line.clip is not None,
            imported=line.imported,
            variant=variant,
            tone=tone,
        )
    return found


def _colours(setting: Setting | None, scheme: Scheme) -> Mapping[Any, str]:
    if setting is None:
        return {}
    if setting.ordered:
        return dict(zip(setting.values, ramp(len(setting.values), scheme), strict=True))
    found: dict[Any, str] = {}
    free = list(CATEGORY_COLOURS)
    for value in (
        setting.values if METHOD in setting.names else ()
    ):  # a method's first keeps its own
        own = method_style(value[setting.names.index(METHOD)]).colour
        if own in free:
            free.remove(own)
            found[value] = own
    rest = [value for value in setting.values if value not in found]
    order = free[::-1] if found else free  # the last are of fewer methods
    return found | {value: order[i % len(order)] for i, value in enumerate(rest)}


@dataclass(frozen=True, slots=True)
class Naming:
    """What a picture calls its series: what varies, and no more.

    Attributes:
        settings: All that varies in it.
        without: What is told elsewhere, as by a panel's title.
    """

    settings: list[Setting] = field(default_factory=list)
    without: frozenset[str] = frozenset()

    def of(self, line: AnyLine, *names: str) -> str:
        """Return a series' name, of all that varies or of some settings."""
        own = settings_of(line)
        told = [s.name for s in self.settings if s.name not in self.without]
        wanted = [name for name in told if not names or name in names]
        words = _told(wanted, [own.get(name) for name in wanted])
        return ", ".join(words) or say(METHOD, own[METHOD])


def join_order(lines: Sequence[Line], along: Setting) -> list[list[Line]]:
    """Return series that differ in one setting only together, in its order."""
    rest = [one for one in varied(lines) if one.name != along.name]
    groups: dict[tuple[Any, ...], list[Line]] = {}
    for line in lines:
        groups.setdefault(tuple(one.of(line) for one in rest), []).append(line)
    return [sorted(group, key=along.place) for group in groups.values()]
