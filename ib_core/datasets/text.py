"""Text that comes with Python: The Zen of Python, by Tim Peters, from the module `this`.

Under the licence of Python (PSF-2.0). It has not changed since 2004, so that every machine has the
same bytes and with them the same hash.
"""

import ast
import codecs
from importlib.util import find_spec

import numpy as np

from ib_core.datasets.base import Content, DatasetInfo, Layout, Split
from ib_core.errors import MissingData

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


def read() -> Content:
    """Return windows of bytes [rows, 32], each with itself one byte on."""
    text = np.frombuffer(zen(), dtype=np.uint8)
    cut = int(TRAINED * len(text))
    return Content(train=_windows(text[:cut]), test=_windows(text[cut:]), classes=256)


def _windows(text: "np.ndarray[tuple[int], np.dtype[np.uint8]]") -> Split:
    starts = range(0, len(text) - WINDOW, STRIDE)
    x = np.stack([text[start : start + WINDOW] for start in starts])
    y = np.stack([text[start + 1 : start + WINDOW + 1] for start in starts])
    return Split.of(x, y)


INFO = DatasetInfo(
    name="python_zen",
    title="The Zen of Python, bytes",
    kind="text",
    source="Tim Peters; the module `this` of Python's standard library",
    licence="PSF-2.0 (Python)",
    layouts=(Layout((), read),),
    size_bytes=0,
)
