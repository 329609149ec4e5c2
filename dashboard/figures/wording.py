"""Titles, axis names and hover texts of figures."""

import re
import textwrap
from collections.abc import Mapping, Sequence
from html import escape
from urllib.parse import unquote

from backend.schemas import (
    Metric,
    MovementRead,
    PairedRead,
    RatePointRead,
    Reducer,
    ScorecardRow,
    SeriesKey,
    SeriesRead,
)
from dashboard.figures.families import (
    METHOD,
    TASK,
    Line,
    Naming,
    Setting,
    say,
    setting_over,
    varied,
)
from dashboard.theme import METHOD_STYLE, counted, method_style, number, percent, told_method

QUANTITY: dict[Metric, str] = {
    "train_loss": "training loss",
    "test_loss": "test loss",
    "validation_loss": "validation loss",
    "train_accuracy": "training accuracy",
    "test_accuracy": "test accuracy",
    "validation_accuracy": "validation accuracy",
    "seconds": "share of a stack's time",
}
BAND_WORDS = {
    "std": "± 1 std",
    "se": "± 1 standard error",
    "quantile": "and 10th to 90th percentile",
}


def error_words(metric: Metric) -> str:
    """Return what is lower if better: a loss, or what an accuracy lacks to 1."""
    return QUANTITY[metric].replace("accuracy", "error")


AnySeries = SeriesRead | ScorecardRow
#: So many letters of a title fit on a phone, and beside the controls of a small screen.
NARROW_LETTERS, WIDE_LETTERS = 40, 84
#: The same of bold ones.
BOLD = 0.85
#: With more curves than this a sentence names them only.
MOST_SPOKEN = 8
#: What a caption says besides what varies.
TOLD_ANYWAY = ("method", "task", "epochs", "batch_size")
#: More values of a setting than this a caption counts.
MOST_VALUES = 24


def literal(text: str) -> str:
    """Return somebody's own words so that plotly shows them letter by letter.

    It takes `<b>` in any text for bold; what a study is called must not decide how it looks.
    """
    return escape(text, quote=False)


def title_words(title: str, rest: str, *, narrow: bool) -> str:
    """Return a figure's title: what it is about in bold, then what is drawn.

    Args:
        title: What it is about; may be empty.
        rest: What is drawn.
        narrow: Whether there is a phone's width only; then it takes several lines.
    """
    if not narrow and len(title) + len(rest) <= WIDE_LETTERS:
        return f"<b>{literal(title)}</b> · {rest}" if title else rest
    room = NARROW_LETTERS if narrow else WIDE_LETTERS
    bold = [f"<b>{literal(line)}</b>" for line in textwrap.wrap(title, round(BOLD * room))]
    return "<br>".join([*bold, *textwrap.wrap(rest, room)])


#: What a task's title says of its network that a sweep may choose otherwise.
USUALLY = re.compile(
    r"(?P<deep>three )?\b(?P<activation>arctan|relu) (?P<kind>layers|RNN|autoencoder)"
)


def network_words(title: str, lines: Sequence[SeriesKey]) -> str:
    """Return a task's title without what its series do not have: three layers, of arctan."""
    deep = any(line.options.get("depth") is not None for line in lines)
    chosen = {line.activation for line in lines if line.activation}

    def told(found: re.Match[str]) -> str:
        usual, kind = found["activation"], found["kind"]
        one = usual if chosen <= {usual} else chosen.copy().pop() if len(chosen) == 1 else ""
        words = ["" if deep else (found["deep"] or "").strip(), one, kind]
        told = " ".join(word for word in words if word)
        return f"dense {kind}" if told == "layers" else told

    return USUALLY.sub(told, title)


def title_lines(title: str) -> int:
    """Return how many lines a figure's title takes."""
    return title.count("<br>") + 1


#: Letters of a name that a phone's legend has room for.
PHONE_LETTERS = 34


def series_name(line: SeriesKey, label: str, *, narrow: bool = False) -> str:
    """Return what a legend calls a curve: the method in words, then what sets it apart.

    What sets it apart stands last, where a phone would cut it off: there long names are shortened.
    """
    own = told_method(line.method, line.settings)
    method, _, rest = label.partition(", ")
    known = METHOD_STYLE.get(own) if method == own else None
    name = known.title if known else method
    if narrow and known and len(f"{name}, {rest}") > PHONE_LETTERS:
        name = known.short
    told = "imported" in rest or "recorded" in rest
    name = f"{name}, imported" if line.imported and not told else name
    return f"{name}, {rest}" if rest else name


def only_words(only: Sequence[str]) -> str:
    """Return in words what is shown alone."""
    return ", ".join(unquote(one.partition(":")[2]) for one in only)


def with_titles(lines: Sequence[Line], titles: Mapping[str, str]) -> list[Line]:
    """Return series whose tasks are called by their titles, which people know them by."""
    titled = []
    for line in lines:
        title = titles.get(line.task, line.task)
        parts = (title if part == line.task else part for part in line.label.split(", "))
        settings = {**line.settings, TASK: title} if TASK in line.settings else line.settings
        titled.append(line.model_copy(update={"label": ", ".join(parts), "settings": settings}))
    return titled


def series_names(rows: Sequence[ScorecardRow]) -> dict[str, str]:
    """Return what a legend calls all series, by id: what varies and no more, if that tells them."""
    naming = Naming(varied(rows))
    names = {row.id: naming.of(row) for row in rows}
    if len(set(names.values())) == len(names) and not any(row.imported for row in rows):
        return names
    return {row.id: series_name(row, row.label) for row in rows}


def pair_names(items: Sequence[PairedRead], rows: Sequence[ScorecardRow]) -> list[PairedRead]:
    """Return pairs that are called by what varies in words, as the other pictures call series."""
    paired = {id for item in items for id in (item.first, item.second)}
    rows = [row for row in rows if row.id in paired]
    told = [one for one in varied(rows) if one.name != METHOD]
    names: dict[str, str] = {}
    for row in rows:
        words = [say(one.name, value) for one in told if (value := one.of(row)) is not None]
        names[row.id] = ", ".join([row.label.partition(", ")[0], *words])
    renamed = {}
    for item in items:
        first, second = names.get(item.first), names.get(item.second)
        said = {"first_label": first, "second_label": second}
        if first and second and first != second:
            renamed[first, second] = item.model_copy(update=said)
    return list(renamed.values()) if len(renamed) == len(items) else list(items)


def axis_title(series: Sequence[AnySeries], metric: Metric, reducer: Reducer) -> str:
    """Return quantity, split and after how many epochs, or how the best of them was chosen."""
    quantity = QUANTITY[metric]
    if metric == "seconds":
        return f"{quantity} (s)"
    epochs = sorted({line.epochs for line in series})
    span = " or ".join(str(epoch) for epoch in epochs) if len(epochs) <= 2 else "training"
    words = counted(epochs[0], "epoch") if len(epochs) == 1 else f"{span} epochs"
    words = words if len(epochs) <= 2 else span
    if reducer != "best":
        return f"{quantity} after {words}"
    chosen = sorted({c for line in series if (c := getattr(line, "chosen_on", None))}, reverse=True)
    if not chosen:
        return f"best {quantity} within {words}"
    return f"{quantity}, best within {words} (chosen on {' or '.join(chosen)})"


def seeds_words(series: Sequence[SeriesRead]) -> str:
    """Return over how many seeds is averaged."""
    counts = {point.n for line in series for point in line.points}
    if not counts:
        return "no seed yet"
    low, high = min(counts), max(counts)
    return counted(high, "seed") if low == high else f"{low} to {high} seeds"


def caption_words(series: Sequence[AnySeries], metric: Metric, reducer: Reducer, title: str) -> str:
    """Return what a paper's caption has to say: task, epochs, batch, seeds, grid.

    Args:
        series: All that is drawn.
        metric: What is drawn of it.
        reducer: Of a trial's losses.
        title: The task in words.
    """
    batches = sorted({str(line.batch_size) for line in series if line.batch_size}, key=float)
    methods = list(dict.fromkeys(method_style(line.method).title for line in series))
    parts = [
        f"{title or ', '.join(dict.fromkeys(line.task for line in series))}: "
        f"{axis_title(series, metric, reducer)}.",
        f"Methods: {', '.join(methods)}.",
        f"Batch size {' or '.join(batches)}." if batches else "",
        *_varied_words(series),
        _grid_words(series),
    ]
    return " ".join(part for part in parts if part)


def _varied_words(series: Sequence[AnySeries]) -> list[str]:
    told = {
        one.name.replace("_", " ").capitalize(): one.values
        for one in varied(series)
        if one.name not in TOLD_ANYWAY
    }
    return [f"{name}: {_listed(values)}." for name, values in told.items()]


def _listed(values: Sequence[object]) -> str:
    many = len(values) > MOST_VALUES
    return f"{len(values)} values" if many else ", ".join(map(_text, values))


def _text(value: object) -> str:
    return "none" if value is None else f"{value:g}" if _number(value) else str(value)


def best_rate_moves(
    moves: Sequence[MovementRead], rows: Sequence[ScorecardRow]
) -> list[MovementRead]:
    """Return whether best rates move with the setting that rows are drawn against."""
    over = setting_over(rows, "")
    return [] if over is None else moves_with(over, moves, rows)


def moves_with(
    over: Setting, moves: Sequence[MovementRead], rows: Sequence[ScorecardRow]
) -> list[MovementRead]:
    """Return what is said about a setting, of series all of which are shown."""
    shown = {row.id for row in rows}
    return [one for one in moves if one.setting == over.name and shown.issuperset(one.rows)]


def moves_words(moves: Sequence[MovementRead], rows: Sequence[ScorecardRow]) -> str:
    """Return whether best rates move, with the task where there are several."""
    tasks = {row.id: str(row.settings.get("task", row.task)) for row in rows}
    several = len(set(tasks.values())) > 1
    return "".join(
        f" {tasks[one.rows[0]]}, {one.text}" if several else f" {one.text}" for one in moves
    )


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _grid_words(series: Sequence[AnySeries]) -> str:
    tested = (one.strip.cells if isinstance(one, ScorecardRow) else one.points for one in series)
    cells = {(cell.lr, cell.n) for cells in tested for cell in cells}
    if not cells:
        return ""
    rates = sorted({lr for lr, _ in cells})
    low, high = min(n for _, n in cells), max(n for _, n in cells)
    seeds = counted(high, "seed") if low == high else f"{low} to {high} seeds"
    span = f" from {number(rates[0])} to {number(rates[-1])}" if len(rates) > 1 else ""
    return f"{seeds} at {counted(len(rates), 'learning rate')}{span}."


def spoken(
    series: Sequence[SeriesRead], about: str, axis: str, best: Sequence[RatePointRead | None]
) -> str:
    """Return in a sentence what a picture of curves shows, for who does not see it.

    Args:
        series: The curves.
        about: What is learnt, and what is averaged.
        axis: What is drawn against the learning rate.
        best: Each curve's best rate.
    """
    told = [_curve_words(line, point) for line, point in zip(series, best, strict=True)]
    if len(told) > MOST_SPOKEN:
        told = [f"{len(told)} curves, {', '.join(series_name(one, one.label) for one in series)}"]
    words = f"{axis[:1].upper()}{axis[1:]} against the learning rate"
    return f"{words}, {about}: {'; '.join(told) or 'no curve'}."


def _curve_words(line: SeriesRead, best: RatePointRead | None) -> str:
    name = series_name(line, line.label)
    lost = sum(1 for point in line.points if point.diverged)
    found = f"best {number(best.mean)} at rate {number(best.lr)}" if best else "no finite mean"
    broken = f"seeds diverged at {lost} of {counted(len(line.points), 'rate')}" if lost else ""
    return f"{name}, {', '.join(filter(None, [found, broken or 'no seed diverged']))}"


def mean_hover(name: str, point: RatePointRead, band: str) -> str:
    """Return all there is to say about one rate of one curve."""
    lines = [f"<b>{name}</b>", f"learning rate {number(point.lr)}"]
    if point.mean is not None:
        lines.append(f"mean {number(point.mean)} of {counted(point.n, 'seed')}")
    elif point.finite_mean is not None:
        lines.append(f"mean of the {point.n_finite} finite seeds {number(point.finite_mean)}")
        lines.append(f"{point.n - point.n_finite} of {point.n} seeds are not finite")
    if point.low is not None and point.high is not None:
        lines.append(
            f"{BAND_WORDS[band].removeprefix('and ')}: {number(point.low)} to {number(point.high)}"
        )
    if point.diverged:
        lines.append(diverged_words(point))
    return "<br>".join(lines)


def diverged_words(point: RatePointRead) -> str:
    """Return the share of diverged seeds with its interval."""
    interval = f"{percent(point.diverged_low)} to {percent(point.diverged_high)}"
    return f"diverged {point.diverged} of {point.n} (95 %: {interval})"


def told_apart(names: Sequence[str], longest: int) -> list[str]:
    """Return names of at most so many letters, without what all begin with if that is needed."""
    short = list(names)
    if any(len(name) > longest for name in names):
        short = _without_start(names)
    return [one if len(one) <= longest else f"{one[: longest - 1].rstrip()}…" for one in short]


def _without_start(names: Sequence[str]) -> list[str]:
    words = [name.split() for name in names]
    bare = [[word.strip(",:;") for word in one] for one in words]
    same = [len(set(column)) == 1 for column in zip(*bare, strict=False)]
    start = same.index(False) if False in same else len(same)
    left = [" ".join(one[start:]) for one in words]
    left = [one[1:-1] if one[:1] == "(" and one[-1:] == ")" else one for one in left]
    return left if len(set(names)) > 1 and all(left) else list(names)


def diverged_hover(name: str, point: RatePointRead) -> str:
    """Return what a mark of diverged seeds says."""
    return f"<b>{name}</b><br>learning rate {number(point.lr)}<br>{diverged_words(point)}"


#: So many curves are named at one mark of a folded rail.
MOST_NAMED = 8


def rail_words(
    lr: float, gone: int, seeds: int, lost: Sequence[tuple[SeriesRead, int, Sequence[int]]]
) -> str:
    """Return what one mark of a folded rail stands for.

    Args:
        lr: Its rate.
        gone: How many seeds were lost there.
        seeds: Of how many.
        lost: The curves that lost some: how many diverged, and the trials off the scale.
    """
    naming = Naming(varied([line for line, *_ in lost]))
    told = [
        f"{literal(naming.of(line))}: {diverged} diverged"
        + (f", {len(off_scale)} off scale" if off_scale else "")
        for line, diverged, off_scale in lost[:MOST_NAMED]
    ]
    more = len(lost) - MOST_NAMED
    rest = [f"and {counted(more, 'more curve')}"] if more > 0 else []
    words = f"<b>{gone} of {counted(seeds, 'seed')} diverged or off scale</b>"
    return "<br>".join([words, f"learning rate {number(lr)}", *told, *rest])


#: What fits beside a lane of a rail.
LANE_LETTERS = 11


def lane_names(labels: Sequence[str]) -> list[str]:
    """Return what stands beside a rail for each label: the method, and the values that vary.

    `ib, width 8` beside `ib, width 16` is `ib 8`.
    """
    parts = [label.split(", ") for label in labels]
    common = set.intersection(*map(set, parts)) if parts else set()
    told = [[own[0], *(_value(part) for part in own[1:] if part not in common)] for own in parts]
    names = [" ".join(words) for words in told]
    return [n if len(n) <= LANE_LETTERS else f"{n[: LANE_LETTERS - 1]}…" for n in names]


def _value(part: str) -> str:
    return part if part.startswith("no ") else part.rpartition(" ")[2]
