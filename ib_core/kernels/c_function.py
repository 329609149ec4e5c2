"""Python loops as C functions, compiled by numba for this processor and kept on disk."""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numba

#: What such functions take: a name for numba, a type for ctypes.
ADDRESS, LENGTH = ("CPointer(float32)", ctypes.c_void_p), ("int64", ctypes.c_int64)
NUMBER = ("float32", ctypes.c_float)


@cache
def as_c_function(
    body: Callable[..., None], arguments: tuple[tuple[str, Any], ...]
) -> Callable[..., None]:
    """Return a loop as a C function: compiled once, then read from disk.

    Called through ctypes it takes addresses and costs a microsecond; called as a numba function
    it takes arrays and costs ten, as much as the work itself for a small layer.
    """
    signature = f"void({', '.join(name for name, _ in arguments)})"
    in_c = numba.cfunc(signature, cache=True, error_model="numpy", fastmath={"contract"})
    compiled: Any = in_c(body)
    function: Any = ctypes.CFUNCTYPE(None, *(kind for _, kind in arguments))(compiled.address)
    function.code = compiled  # which lives as long as somebody holds it
    called: Callable[..., None] = function
    return called
