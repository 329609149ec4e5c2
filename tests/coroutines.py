"""Runs coroutines to their end in tests that are not themselves asynchronous."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine returns.

    In a thread of its own: playwright keeps a loop running in the thread of the tests, and one
    thread cannot run two.
    """
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()
