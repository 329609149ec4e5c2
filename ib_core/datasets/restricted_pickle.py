"""Reading pickles that hold plain data, without an unpickler.

The published piano rolls are pickles, and a pickle is a program: it may name any function to be
called, or, once damaged, ask for any amount of memory. Here the opcodes that build containers, text
and whole numbers are interpreted one by one, and every other opcode is refused. No name is ever
imported; the few by which pickles spell NumPy integers are answered with the stand-ins below.
"""

import pickletools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ib_core.datasets.reading import reading, refuse_if_huge

_MAX_FILE_BYTES = 64 * 2**20  # the largest published pickle has ten


class _IntegerType:
    """Stands in for ``numpy.dtype``: knows only size, sign and byte order of integers."""

    def __init__(self, code: str, *_flags: object) -> None:
        if code[:1] not in ("i", "u") or code[1:] not in ("1", "2", "4", "8"):
            raise ValueError(f"it holds NumPy values of type {code!r}, not integers")
        self.size, self.signed, self.big_endian = int(code[1:]), code[0] == "i", False


def _integer(kind: _IntegerType, raw: bytes | str) -> int:
    """Stands in for NumPy's constructor of single values."""
    data = _latin1_bytes(raw) if isinstance(raw, str) else raw
    if not isinstance(kind, _IntegerType) or len(data) != kind.size:
        raise ValueError("it holds a malformed NumPy value")
    return int.from_bytes(data, "big" if kind.big_endian else "little", signed=kind.signed)


def _latin1_bytes(text: str, _encoding: str = "latin1") -> bytes:
    """Stands in for ``codecs.encode``, by which older protocols spell bytes."""
    return text.encode("latin1")


@dataclass(frozen=True, slots=True)
class _StandIn:
    call: Callable[..., object]


_STAND_INS = {
    "numpy dtype": _StandIn(_IntegerType),
    "numpy.core.multiarray scalar": _StandIn(_integer),
    "numpy._core.multiarray scalar": _StandIn(_integer),
    "_codecs encode": _StandIn(_latin1_bytes),
}


@dataclass(slots=True)
class _Machine:
    """The state of the pickle language: a stack, marks on it, and values to come back to."""

    stack: list[Any] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    memo: dict[int, object] = field(default_factory=dict)

    def since_mark(self) -> list[Any]:
        return self.top(len(self.stack) - self.marks.pop())

    def top(self, count: int) -> list[Any]:
        start = len(self.stack) - count
        if start < 0:
            raise ValueError("it takes more values than it has")
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def extend(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not list:
            raise ValueError("it appends to something that is no list")
        target.extend(items)

    def set_items(self, items: list[Any]) -> None:
        keys, target = items[::2], self.stack[-1]
        if type(target) is not dict or not all(type(key) is str for key in keys):
            raise ValueError("it has a dictionary whose keys are not text")
        target.update(zip(keys, items[1::2], strict=True))

    def new_dict(self, items: list[Any]) -> None:
        self.stack.append({})
        self.set_items(items)

    def name(self, name: str) -> None:
        if name not in _STAND_INS:
            raise ValueError(f"it asks for {name}, which plain data never needs")
        self.stack.append(_STAND_INS[name])

    def reduce(self) -> None:
        function, arguments = self.top(2)
        if not isinstance(function, _StandIn) or type(arguments) is not tuple:
            raise ValueError("it calls something that is no function")
        self.stack.append(function.call(*arguments))

    def build(self) -> None:
        target, state = self.top(2)
        if not isinstance(target, _IntegerType):
            raise ValueError("it sets the state of something that has none")
        target.big_endian = state[1] == ">"
        self.stack.append(target)


# fmt: off
_LITERALS = (
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4",
    "STRING", "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES",
    "UNICODE", "BINUNICODE", "SHORT_BINUNICODE",
)
# fmt: on

_OPCODES: dict[str, Callable[[_Machine, Any], object]] = {
    **dict.fromkeys(("PROTO", "FRAME", "STOP"), lambda m, arg: None),
    **dict.fromkeys(_LITERALS, lambda m, arg: m.stack.append(arg)),
    "NONE": lambda m, arg: m.stack.append(None),
    "NEWTRUE": lambda m, arg: m.stack.append(True),
    "NEWFALSE": lambda m, arg: m.stack.append(False),
    "MARK": lambda m, arg: m.marks.append(len(m.stack)),
    "EMPTY_TUPLE": lambda m, arg: m.stack.append(()),
    "TUPLE": lambda m, arg: m.stack.append(tuple(m.since_mark())),
    "TUPLE1": lambda m, arg: m.stack.append(tuple(m.top(1))),
    "TUPLE2": lambda m, arg: m.stack.append(tuple(m.top(2))),
    "TUPLE3": lambda m, arg: m.stack.append(tuple(m.top(3))),
    "EMPTY_LIST": lambda m, arg: m.stack.append([]),
    "LIST": lambda m, arg: m.stack.append(m.since_mark()),
    "APPEND": lambda m, arg: m.extend(m.top(1)),
    "APPENDS": lambda m, arg: m.extend(m.since_mark()),
    "EMPTY_DICT": lambda m, arg: m.stack.append({}),
    "DICT": lambda m, arg: m.new_dict(m.since_mark()),
    "SETITEM": lambda m, arg: m.set_items(m.top(2)),
    "SETITEMS": lambda m, arg: m.set_items(m.since_mark()),
    **dict.fromkeys(
        ("PUT", "BINPUT", "LONG_BINPUT"), lambda m, arg: m.memo.update({arg: m.stack[-1]})
    ),
    "MEMOIZE": lambda m, arg: m.memo.update({len(m.memo): m.stack[-1]}),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), lambda m, arg: m.stack.append(m.memo[arg])),
    "GLOBAL": lambda m, arg: m.name(arg),
    "STACK_GLOBAL": lambda m, arg: m.name(" ".join(m.top(2))),
    "REDUCE": lambda m, arg: m.reduce(),
    "BUILD": lambda m, arg: m.build(),
}


def load_plain_pickle(path: Path) -> object:
    """Return the containers, text and integers of a pickle.

    Raises:
        CorruptData: If the pickle is damaged or holds anything else; nothing has been run then.
    """
    with reading(path):
        refuse_if_huge(path, _MAX_FILE_BYTES)
        machine = _Machine()
        for opcode, argument, _ in pickletools.genops(path.read_bytes()):
            if opcode.name not in _OPCODES:
                raise ValueError(f"it uses {opcode.name}, which plain data never needs")
            _OPCODES[opcode.name](machine, argument)
        (value,) = machine.stack
        return value
