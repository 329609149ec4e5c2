"""Music made by rule: four voices through chord progressions, the same notes on every machine.

A stand-in for the paper's music sets when none has been fetched. Everything is integer arithmetic
on the raw stream of a bit generator, so the pieces never change.
"""

from itertools import pairwise

import numpy as np

from ib_core.datasets.base import Content, DatasetInfo, Layout, Pieces

TRAIN_PIECES, TEST_PIECES = 60, 20
SHORTEST, LONGEST = 40, 80

_NOTES, _LOWEST_NOTE = 88, 21
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
    roll = np.zeros((sum(lengths), _NOTES), np.uint8)
    notes = np.array([chord for piece in composed for chord in piece]) - _LOWEST_NOTE
    np.put_along_axis(roll, notes, 1, axis=1)
    return Pieces.of(roll, np.array(lengths, np.int64))


def read() -> Content:
    """Compose 60 pieces to train on and 20 to test on, 40 to 80 frames each."""
    dice = _Dice(seed=1)
    train = _compose(TRAIN_PIECES, dice)
    return Content(train=train, test=_compose(TEST_PIECES, dice), classes=None)


INFO = DatasetInfo(
    name="procedural_music",
    title="Four-part music made by rule",
    kind="music",
    source="made by Etascope",
    licence="MIT",
    layouts=(Layout((), read),),
    size_bytes=0,
)
