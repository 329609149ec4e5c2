"""Has the C library give memory back after a large answer, instead of keeping it for the next."""

import ctypes
import sys

#: Names and values of glibc's malloc.h.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
LARGE = 128 * 1024


def stay_small() -> None:
    """Set it up, early in the process; does nothing where the C library is another.

    By default every thread gets an arena of its own, and the size from which blocks are given
    back grows with use. Ten thousand trials read by a dozen threads then stay resident for ever.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_ARENA_MAX, 1)
        mallopt(M_MMAP_THRESHOLD, LARGE)
        mallopt(M_TRIM_THRESHOLD, LARGE)
