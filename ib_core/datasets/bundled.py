"""Data that needs no fetching: scikit-learn's small tables, toys, a text, and music made by rule.

The tables are split 80/20 by the same seed as the UCI tables. Means and deviations are summed
exactly (`math.fsum`), the music is integer arithmetic on the raw stream of a bit generator, and the
text, which comes with Python as its module `this`, has not changed since 2004: every machine gets
the same bits and with them the same hash.
"""

import ast
import codecs
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from itertools import pairwise, product
from math import fsum, sqrt

import numpy as np
from numpy.typing import NDArray

from ib_core.datasets.base import Content, DatasetInfo, Layout, Pieces, Split, random_split
from ib_core.errors import MissingData

Table = NDArray[np.float64]


def standardised(table: Table) -> Table:
    """Return the columns with mean 0 and standard deviation 1 (n-1 in the denominator)."""
    columns = []
    for column in table.T.tolist():
        mean = fsum(column) / len(column)
        centred = [value - mean for value in column]
        deviation = sqrt(fsum(value * value for value in centred) / (len(column) - 1))
        columns.append([value / deviation for value in centred])
    return np.array(columns).T


def _sixteenths(table: Table) -> Table:
    return table / 16  # ink runs from 0 to 16


def read_table(loader: str, scale: Callable[[Table], Table]) -> Content:
    """Return float32 features [rows, d] of one of scikit-learn's tables."""
    import sklearn.datasets  # a second to import, which a catalogue of data sets need not pay

    table, labels = getattr(sklearn.datasets, loader)(return_X_y=True)
    x, y = scale(table).astype(np.float32), labels.astype(np.int64)
    train, test = (Split.of(x[order], y[order]) for order in random_split(len(x)))
    return Content(train=train, test=test, classes=int(y.max()) + 1)


def _table(name: str, title: str, scale: Callable[[Table], Table]) -> DatasetInfo:
    return DatasetInfo(
        name=name,
        title=title,
        kind="table",
        source="UCI repository, copy shipped with scikit-learn",
        licence="CC BY 4.0 (UCI); BSD-3-Clause (scikit-learn)",
        layouts=(Layout((), partial(read_table, f"load_{name}", scale)),),
        size_bytes=0,
    )


TABLES = (
    _table("digits", "Handwritten digits, 8x8 pixels row by row", _sixteenths),
    _table("iris", "Iris flowers", standardised),
    _table("wine", "Wine cultivars", standardised),
    _table("breast_cancer", "Breast cancer (Wisconsin, diagnostic)", standardised),
)


# Legs and hypotenuse of right triangles: points of the unit circle without any rounding of angles.
_TRAIN_TRIANGLES = ((3, 4, 5), (5, 12, 13), (8, 15, 17), (7, 24, 25), (20, 21, 29))
_TEST_TRIANGLES = ((12, 35, 37), (9, 40, 41))


def quadratic(rows: int = 10) -> Content:
    """Return rows x = 1, y = 0: the loss (theta x - y)^2 / 2 is theta^2 / 2 (Fig. 1)."""
    split = Split.of(np.ones((rows, 1), np.float32), np.zeros((rows, 1), np.float32))
    return Content(train=split, test=split, classes=None)


def least_squares(condition: float = 100.0) -> Content:
    """Return a noiseless regression on the plane with the solution theta = (1, 1).

    Args:
        condition: Ratio of the two eigenvalues of the mean of x x^T, which are 1 and 1/condition.
    """
    return Content(
        train=_ellipse(_TRAIN_TRIANGLES, condition),
        test=_ellipse(_TEST_TRIANGLES, condition),
        classes=None,
    )


def _ellipse(triangles: tuple[tuple[int, int, int], ...], condition: float) -> Split:
    # Mirrored in both axes and the diagonal, any point of the circle has covariance I/2.
    circle = [
        (right * legs[0] / hypotenuse, up * legs[1] / hypotenuse)
        for right, up, swapped in product((1, -1), (1, -1), (False, True))
        for a, b, hypotenuse in triangles
        for legs in ((b, a) if swapped else (a, b),)
    ]
    x = np.array(circle) * np.sqrt([2.0, 2.0 / condition])
    y = x.sum(axis=1, keepdims=True)
    return Split.of(_float32(x), _float32(y))


def moons() -> Content:
    """Return two interleaved half circles, 200 rows to train on and 100 to test on."""
    return Content(train=_moons(200, seed=1), test=_moons(100, seed=2), classes=2)


def _moons(rows: int, seed: int) -> Split:
    # A bit generator's raw output is the one stream NumPy promises never to change.
    raw = np.random.PCG64(seed).random_raw(3 * rows).reshape(3, rows)
    along, *jitter = (raw >> np.uint64(11)).astype(np.float64) / 2.0**52 - 1.0  # in [-1, 1)
    y = np.arange(rows) % 2
    across, height = 2 * along / (1 + along**2), (1 - along**2) / (1 + along**2)
    x = np.where(y == 0, [across, height], [1 - across, 0.5 - height])
    return Split.of(_float32((x + 0.2 * np.array(jitter)).T), y.astype(np.int64))


def _float32(values: NDArray[np.float64]) -> NDArray[np.float32]:
    return np.ascontiguousarray(values, dtype=np.float32)


def _toy(name: str, title: str, make: Callable[[], Content]) -> DatasetInfo:
    return DatasetInfo(
        name=name,
        title=title,
        kind="toy",
        source="made by Etascope",
        licence="MIT",
        layouts=(Layout((), make),),
        size_bytes=0,
    )


TOYS = (
    _toy("toy_quadratic", "theta^2 / 2 in one dimension", quadratic),
    _toy("toy_least_squares", "Least squares on a plane, condition 100", least_squares),
    _toy("toy_moons", "Two moons", moons),
)


# --- The Zen of Python, by Tim Peters, under the licence of Python (PSF-2.0)


#: Bytes of a window, how far windows are apart, and which share of the text is for training.
WINDOW, STRIDE, TRAINED = 32, 2, 0.8


def zen() -> bytes:
    """Return the text, read from the module's source: importing it would print it."""
    spec = find_spec("this")
    source = spec.loader.get_source("this") if spec and spec.loader else None  # type: ignore[attr-defined]
    for node in ast.parse(source or "").body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            return codecs.decode(str(node.value.value), "rot13").encode()
    raise MissingData("This Python has no module `this` with the Zen of Python.", field="dataset")


def read_zen() -> Content:
    """Return windows of bytes [rows, 32], each with itself one byte on."""
    text = np.frombuffer(zen(), dtype=np.uint8)
    cut = int(TRAINED * len(text))
    return Content(train=_windows(text[:cut]), test=_windows(text[cut:]), classes=256)


def _windows(text: "np.ndarray[tuple[int], np.dtype[np.uint8]]") -> Split:
    starts = range(0, len(text) - WINDOW, STRIDE)
    x = np.stack([text[start : start + WINDOW] for start in starts])
    y = np.stack([text[start + 1 : start + WINDOW + 1] for start in starts])
    return Split.of(x, y)


ZEN = DatasetInfo(
    name="python_zen",
    title="The Zen of Python, bytes",
    kind="text",
    source="Tim Peters; the module `this` of Python's standard library",
    licence="PSF-2.0 (Python)",
    layouts=(Layout((), read_zen),),
    size_bytes=0,
)


# --- Four voices through chord progressions: a stand-in for the paper's music sets


TRAIN_PIECES, TEST_PIECES = 60, 20
SHORTEST, LONGEST = 40, 80

NOTES, LOWEST_NOTE = 88, 21
_MAJOR, _MINOR = (0, 2, 4, 5, 7, 9, 11), (0, 2, 3, 5, 7, 8, 10)
_TONIC, _DOMINANT = 0, 4
_CADENCE_FRAMES = 8
_DOUBLING = 5  # semitones a voice will go out of its way to complete the triad

# Which chord (degree of the scale) may follow which; repeated where it often does.
_FOLLOWS = {
    0: (3, 3, 4, 4, 5, 1, 2),
    1: (4, 4, 4, 3),
    2: (5, 5, 3),
    3: (4, 4, 0, 1),
    4: (0, 0, 0, 5),
    5: (1, 3, 3, 4, 2),
}

# Lowest and highest note from bass to soprano. The tops lie seven semitones apart, so that some
# tone of any triad always remains above the voice below.
_RANGES = ((40, 60), (48, 67), (55, 74), (60, 81))

Chord = tuple[int, ...]


class _Dice:
    """Whole numbers from a stream that NumPy promises never to change."""

    def __init__(self, seed: int) -> None:
        self._bits = np.random.PCG64(seed)

    def below(self, limit: int) -> int:
        return int(self._bits.random_raw()) % limit


def _rhythm(dice: _Dice, frames: int) -> list[tuple[int, int]]:
    """Return (degree, frames) of each chord: a walk from the tonic that ends in a cadence."""
    chords, degree, left = [], _TONIC, frames - _CADENCE_FRAMES
    while left > 0:
        held = min(2 + dice.below(3), left)
        chords.append((degree, held))
        degree = _FOLLOWS[degree][dice.below(len(_FOLLOWS[degree]))]
        left -= held
    half = _CADENCE_FRAMES // 2
    return [*chords, (_DOMINANT, half), (_TONIC, half)]


def _triad(key: int, scale: tuple[int, ...], degree: int) -> tuple[int, ...]:
    tones = [scale[(degree + step) % 7] for step in (0, 2, 4)]
    if degree == _DOMINANT:
        tones[1] = 11  # the leading tone, also in minor
    return tuple((key + tone) % 12 for tone in tones)


def _lead(triad: tuple[int, ...], before: Chord, dice: _Dice) -> Chord:
    """Move each voice to a near tone of the triad, bass on the root, no voices crossing."""
    voices: list[int] = []
    for (low, high), previous in zip(_RANGES, before, strict=True):
        tones = triad if voices else triad[:1]
        floor = max(low, voices[-1] + 1) if voices else low
        reachable = [note for note in range(floor, high + 1) if note % 12 in tones]
        sounding = {note % 12 for note in voices}
        reachable.sort(key=lambda note: (_effort(note, previous, sounding), note))
        # Now and then a leap in the melody; without, the soprano would hardly move.
        leaps = len(voices) == 3 and len(reachable) > 1 and dice.below(4) == 0
        voices.append(reachable[1 if leaps else 0])
    return tuple(voices)


def _effort(note: int, previous: int, sounding: set[int]) -> int:
    return abs(note - previous) + (_DOUBLING if note % 12 in sounding else 0)


def _passing(melody: int, target: int, key: int, scale: tuple[int, ...]) -> int:
    """Return the note of the scale between two melody notes a third apart, else the first."""
    if abs(target - melody) not in (3, 4):
        return melody
    between = range(min(melody, target) + 1, max(melody, target))
    return next((note for note in between if (note - key) % 12 in scale), melody)


def _piece(dice: _Dice) -> list[Chord]:
    key, scale = dice.below(12), (_MAJOR, _MINOR)[dice.below(2)]
    rhythm = _rhythm(dice, SHORTEST + dice.below(LONGEST - SHORTEST + 1))
    chord: Chord = tuple((low + high) // 2 for low, high in _RANGES)
    chords = [chord := _lead(_triad(key, scale, degree), chord, dice) for degree, _ in rhythm]
    frames: list[Chord] = []
    for (now, then), (_, held) in zip(pairwise([*chords, chords[-1]]), rhythm, strict=True):
        *lower, melody = now
        step = _passing(melody, then[-1], key, scale)
        frames += [now] * (held - 1)
        frames.append((*lower, step if step > lower[-1] else melody))
    return frames


def _compose(pieces: int, dice: _Dice) -> Pieces:
    composed = [_piece(dice) for _ in range(pieces)]
    lengths = [len(piece) for piece in composed]
    roll = np.zeros((sum(lengths), NOTES), np.uint8)
    notes = np.array([chord for piece in composed for chord in piece]) - LOWEST_NOTE
    np.put_along_axis(roll, notes, 1, axis=1)
    return Pieces.of(roll, np.array(lengths, np.int64))


def compose() -> Content:
    """Compose 60 pieces to train on and 20 to test on, 40 to 80 frames each."""
    dice = _Dice(seed=1)
    train = _compose(TRAIN_PIECES, dice)
    return Content(train=train, test=_compose(TEST_PIECES, dice), classes=None)


MUSIC_BY_RULE = DatasetInfo(
    name="procedural_music",
    title="Four-part music made by rule",
    kind="music",
    source="made by Etascope",
    licence="MIT",
    layouts=(Layout((), compose),),
    size_bytes=0,
)
