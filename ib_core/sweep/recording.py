"""What a trial did on its way: its layers' norms and outputs, its sharpness, kept as bytes.

`ib_core.sweep.recorder` fills a `Recording` while a trial trains, `ib_core.sweep.replay` tells in
words why it broke. Nothing here needs torch: services and pages read recordings.
"""

import base64
import json
import math
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ib_core.sweep.values import RECORDABLE

Floats = NDArray[np.float64]

#: Steps of which a recording holds rows.
MOST_STEPS = 400
#: A loss so many times a positive initial one has exploded (docs/method.md, section 6).
EXPLODED = 5.0
#: Steps before and behind the break that a replay keeps one by one.
BEFORE, BEHIND = 150, 50
#: A loss counts as gone for good if at least half of so many that follow are as high.
FOLLOWING = 20
#: The last losses, all of which are low where a trial has come back.
BACK = 5
#: Numbers of a row besides those of the layers, and those of each layer.
OF_ROW = ("step", "loss", "rate")
OF_LAYER = ("weights", "gradients", "moves", "damping")
#: And of each layer whose outputs were looked at.
OF_OUTPUT = ("size", "change")
#: Steps after which layers' outputs are looked at, where that was asked for.
LOOKS = (0, 1, 2, 3, 5, 10)
#: How the bytes are laid out; the second has outputs, too.
VERSION, WITH_OUTPUTS = 1, 2


def explodes_above(initial: float) -> float:
    """Return the loss above which a training that began at `initial` has exploded.

    A multiple says that only of a positive one: a likelihood's -1 that becomes -2 has improved.
    """
    return EXPLODED * initial if initial > 0 else math.inf


@dataclass(frozen=True, slots=True)
class Wish:
    """What to keep of a trial's way; it never decides what comes of the trial.

    Attributes:
        what: Out of `RECORDABLE`; losses and rates are kept anyway.
        around: A step around which every step is kept.
        most: Steps to keep, all of them if None.
    """

    what: tuple[str, ...] = RECORDABLE
    around: int | None = None
    most: int | None = MOST_STEPS

    def steps(self, total: int) -> set[int]:
        """Return the steps of which rows are kept, out of 1 to `total`.

        Without a break to look at, the first quarter of them one by one, since most trials that
        break do so early, and the others evenly; with one, half of them around it.
        """
        if self.most is None or total <= self.most:
            return set(range(1, total + 1))
        if self.around is None:
            first = self.most // 4
            return set(range(1, first + 1)) | _evenly(first, total, self.most - first)
        window = range(max(1, self.around - BEFORE), min(total, self.around + BEHIND) + 1)
        return set(window) | _evenly(1, total, self.most - len(window))

    def sharp_steps(self, total: int) -> set[int]:
        """Return the steps before which sharpness is taken besides at the evaluations."""
        if self.around is None:
            return set()
        window = range(max(1, self.around - BEFORE), min(total, self.around + 1) + 1)
        return _evenly(window[0], window[-1], 16) | set(window[-4:])


def _evenly(first: int, last: int, count: int) -> set[int]:
    return {round(first + (last - first) * i / max(1, count - 1)) for i in range(count)}


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """A trial's way by step.

    The row of step t holds the loss on that step's batch and its gradient's norms, both before the
    step, how far the step moved each layer, and the layers' norms after it. Row 0 holds the initial
    weights and the initial loss over the whole training set. NaN stands where there is no number.

    Attributes:
        layers: Their names, input to output; none where norms were not asked for.
        rows: [rows, 3 + 4 * layers]: `OF_ROW`, then for each of `OF_LAYER` one column a layer.
        sharp: [measurements, 2]: steps taken, and the largest eigenvalue of the Hessian there.
        note: What could not be recorded, and why.
        outputs: Layers whose outputs were looked at.
        sizes: [looks, 1 + 2 * outputs]: steps taken, the outputs' sizes, and how far they have come
            since step 0: roots of mean squares over the same rows.
    """

    layers: tuple[str, ...]
    rows: Floats
    sharp: Floats
    note: str = ""
    outputs: tuple[str, ...] = ()
    sizes: Floats = field(default_factory=lambda: np.empty((0, 1)))

    @property
    def steps(self) -> NDArray[np.int64]:
        """The steps of the rows."""
        return self.rows[:, 0].astype(np.int64)

    @property
    def losses(self) -> Floats:
        """The losses of the rows."""
        return self.rows[:, 1]

    @property
    def rates(self) -> Floats:
        """The rates of the rows."""
        return self.rows[:, 2]

    def holds(self, what: Iterable[str]) -> bool:
        """Return whether all of these, out of `RECORDABLE`, were recorded, as far as they could."""
        found = {
            "norms": len(self.layers) > 0,
            "sharpness": len(self.sharp) > 0,
            "activations": len(self.sizes) > 0,
        }
        return bool(self.note) or all(found[name] for name in what)

    def of_layers(self, what: str) -> Floats:
        """Return one of `OF_LAYER`, [rows, layers]."""
        place = len(OF_ROW) + OF_LAYER.index(what) * len(self.layers)
        return self.rows[:, place : place + len(self.layers)]

    def to_bytes(self) -> bytes:
        """Return it compressed: float32 columns, their bytes sorted by weight."""
        head = {
            "version": WITH_OUTPUTS if self.outputs else VERSION,
            "layers": list(self.layers),
            "rows": len(self.rows),
            "sharp": len(self.sharp),
            "note": self.note,
        }
        if self.outputs:
            head |= {"outputs": list(self.outputs), "looks": len(self.sizes)}
        text = json.dumps(head).encode()
        tables = (_packed(one) for one in (self.rows, self.sharp, self.sizes))
        return zlib.compress(b"".join((len(text).to_bytes(4, "little"), text, *tables)), level=6)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return what `to_bytes` packed.

        Raises:
            ValueError: The bytes are no recording, or that of another version.
        """
        try:
            plain = zlib.decompress(data)
            size = int.from_bytes(plain[:4], "little")
            head = json.loads(plain[4 : 4 + size])
            if head["version"] not in (VERSION, WITH_OUTPUTS):
                raise ValueError("it is of another version")
            layers = tuple(map(str, head["layers"]))
            outputs = tuple(map(str, head.get("outputs", ())))
            body = plain[4 + size :]
            tables: list[Floats] = []
            for count, width in (
                (head["rows"], len(OF_ROW) + len(OF_LAYER) * len(layers)),
                (head["sharp"], 2),
                (head.get("looks", 0), 1 + 2 * len(outputs)),
            ):
                tables.append(_unpacked(body[: 4 * count * width], count, width))
                body = body[4 * count * width :]
            rows, sharp, sizes = tables
            return cls(layers, rows, sharp, str(head["note"]), outputs, sizes)
        except (zlib.error, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"These bytes are no recording: {error}.") from None

    def to_text(self) -> str:
        """Return its bytes as text, for files of lines."""
        return base64.b64encode(self.to_bytes()).decode()

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return what `to_text` wrote; a ValueError if that is none."""
        return cls.from_bytes(base64.b64decode(text, validate=True))

    def thin(self, most: int) -> Self:
        """Return at most so many rows (and measurements): half next to the break, others evenly."""
        return replace(
            self, rows=_thin(self.rows, self._kept(most)), sharp=_thin_evenly(self.sharp, most)
        )

    def _kept(self, most: int) -> list[int]:
        count = len(self.rows)
        if count <= most:
            return list(range(count))
        broken = self.break_row()
        if broken is None:
            return sorted(_evenly(0, count - 1, most))
        near = max(0, min(broken - most // 3, count - most // 2))
        window = set(range(near, min(count, near + most // 2)))
        return sorted(window | _evenly(0, count - 1, most - len(window)))

    def break_row(self) -> int | None:
        """Return the row at which the loss explodes for good; None if it never does.

        That is the first loss that is not finite or above `EXPLODED` times the initial one, with at
        least half of the `FOLLOWING` ones as high: a single bad batch is no break.
        """
        bound = explodes_above(self.losses[0]) if len(self.rows) else math.inf
        high = ~(np.isfinite(self.losses) & (self.losses <= bound))
        for row in np.flatnonzero(high):
            if not math.isfinite(self.losses[row]) or high[row : row + FOLLOWING].mean() >= 0.5:
                return int(row)
        return None

    def high_before(self, row: int) -> int | None:
        """Return the first step before a row whose loss was as high as after a break, if any."""
        high = np.flatnonzero(self.losses[:row] > explodes_above(self.losses[0]))
        return int(self.steps[high[0]]) if len(high) else None

    def came_back(self, row: int) -> float | None:
        """Return the last loss, if the last ones after a row are below the initial one again."""
        end = self.losses[max(row + 1, len(self.losses) - BACK) :]
        low = len(end) == BACK and bool((end < self.losses[0]).all())
        return float(end[-1]) if low else None

    def table(self) -> tuple[list[str], Iterable[list[float]]]:
        """Return the names of the columns, and the rows, as a file holds them."""
        names = [*OF_ROW, *(f"{what} {layer}" for what in OF_LAYER for layer in self.layers)]
        names += ["sharpness", *(f"{what} {n}" for what in OF_OUTPUT for n in self.outputs)]
        tables = [
            ({int(row[0]): row[1:] for row in table.tolist()}, [math.nan] * (table.shape[1] - 1))
            for table in (self.rows, self.sharp, self.sizes)
        ]
        steps = sorted({step for rows, _ in tables for step in rows})
        lines = ([s, *chain(*(rows.get(s, none) for rows, none in tables))] for s in steps)
        return names, lines


def _thin(rows: Floats, kept: list[int]) -> Floats:
    found: Floats = rows[kept]
    return found


def _thin_evenly(rows: Floats, most: int) -> Floats:
    if len(rows) <= most:
        return rows
    return _thin(rows, sorted(_evenly(0, len(rows) - 1, most)))


def _packed(numbers: Floats) -> bytes:
    """Return float32 numbers by column, all first bytes, then all second: so they pack better."""
    with np.errstate(over="ignore"):  # what float32 cannot hold is infinite there
        columns = np.ascontiguousarray(numbers.T, dtype="<f4")
    return columns.view(np.uint8).reshape(-1, 4).T.tobytes()


def _unpacked(data: bytes, rows: int, width: int) -> Floats:
    columns = np.frombuffer(data, np.uint8).reshape(4, -1).T.copy().view("<f4")
    return columns.reshape(width, rows).T.astype(np.float64)


def recording_answer(recording: Recording) -> dict[str, Any]:
    """Return a recording as plain lists, None where there is no finite number."""

    def plain(numbers: Floats) -> list[Any]:
        listed = numbers.astype(object)
        listed[~np.isfinite(numbers)] = None
        found: list[Any] = listed.tolist()
        return found

    layered: Mapping[str, Any] = {
        what: plain(recording.of_layers(what).T) for what in OF_LAYER if recording.layers
    }
    return {
        "layers": list(recording.layers),
        "steps": recording.steps.tolist(),
        "losses": plain(recording.losses),
        "rates": plain(recording.rates),
        **{what: layered.get(what, []) for what in OF_LAYER},
        "sharp_steps": recording.sharp[:, 0].astype(int).tolist(),
        "sharpness": plain(recording.sharp[:, 1]),
        "outputs": list(recording.outputs),
        "looked_at": recording.sizes[:, 0].astype(int).tolist(),
        "sizes": plain(recording.sizes[:, 1 : 1 + len(recording.outputs)].T),
        "changes": plain(recording.sizes[:, 1 + len(recording.outputs) :].T),
        "note": recording.note,
    }
