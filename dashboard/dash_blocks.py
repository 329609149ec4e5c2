"""Dash's building blocks as pages use them: components, and callbacks that cannot fail in silence.

Components are typed `Any` on purpose: Dash generates signatures that refuse `aria-*` and `data-*`
attributes, and Mantine's have none at all, so a checker could only complain here.
"""

import inspect
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import dash
from dash import no_update

from dashboard import ids
from dashboard.api_client import Trouble, sentence

#: Anything Dash can draw.
Component: TypeAlias = Any

html: Any = dash.html
dcc: Any = dash.dcc
Dash: Any = dash.Dash


log = logging.getLogger("etascope.dashboard")

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Registered:
    """A callback as its page declared it; `function` is JavaScript for one in the browser."""

    function: Callable[..., Any] | str
    dependencies: tuple[Any, ...]
    options: dict[str, Any]


REGISTERED: list[Registered] = []


def callback(*dependencies: Any, **options: Any) -> Callable[[F], F]:
    """Declare a callback; works like `dash.callback`, for `async def` only.

    Dash runs a synchronous callback on the event loop, where it would hold up the API and
    everybody else's pages; so one is refused here, when its module is imported.
    """

    def declare(function: F) -> F:
        if not inspect.iscoroutinefunction(function):
            name = getattr(function, "__name__", repr(function))
            raise TypeError(f"Write `async def {name}`: a plain one would block the event loop.")
        REGISTERED.append(Registered(function, dependencies, options))
        return function

    return declare


def browser_callback(javascript: str, *dependencies: Any, **options: Any) -> None:
    """Declare a callback that runs in the browser; `javascript` is a function's source."""
    REGISTERED.append(Registered(javascript, dependencies, options))


def register_all(app: Any) -> None:
    """Give an app every callback declared so far."""
    for entry in REGISTERED:
        if isinstance(entry.function, str):
            app.clientside_callback(entry.function, *entry.dependencies, **entry.options)
        else:
            app.callback(*entry.dependencies, **entry.options)(entry.function)


def report(error: Exception) -> Any:
    """Say in a corner of the page what went wrong, and leave the page as it is."""
    if not isinstance(error, Trouble):
        log.error("a callback failed", exc_info=error)
    dash.set_props(ids.NOTICES, {"sendNotifications": [notice(sentence(error), bad=True)]})
    return no_update


def say(words: str) -> None:
    """Say something in a corner of the page.

    A callback with the corner among its outputs would be called whenever its page opens, since
    one of its outputs is there already; and whatever could follow from it would wait for it.
    """
    dash.set_props(ids.NOTICES, {"sendNotifications": [notice(words)]})


def notice(message: Any, *, title: str | None = None, bad: bool = False) -> dict[str, Any]:
    """Return a notification; it replaces the one before of its kind."""
    shown = {
        "action": "show",
        "id": "trouble" if bad else "notice",
        "message": message,
        "color": "red" if bad else "indigo",
        "autoClose": 8000,
        "withBorder": True,
    }
    return shown if title is None else {**shown, "title": title}
