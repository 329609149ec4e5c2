"""Unknown paths below /api, and known paths with a method they do not have."""

from collections.abc import Iterable

from fastapi import APIRouter
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from backend.web.failures import failure


class ApiFallback:
    """Matches whatever no route took, so that the dashboard never answers for the API."""

    def __init__(self, routers: Iterable[APIRouter]) -> None:
        self._routes = [
            route for router in routers for route in router.routes if isinstance(route, Route)
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 405 with every method the path has, or 404."""
        allowed = self.allowed(scope)
        path, method = scope["path"], scope["method"]
        if allowed:
            names = ", ".join(allowed)
            answer = failure(
                405,
                "method_not_allowed",
                f"{path} does not take {method}; it takes {names}.",
                headers={"Allow": names},
            )
        else:
            answer = failure(
                404, "not_found", f"There is nothing at {path}.", hint="See /api/docs for what is."
            )
        await answer(scope, receive, send)

    def allowed(self, scope: Scope) -> list[str]:
        """Return the methods of all routes on this path: each route knows only its own."""
        methods: set[str] = set()
        for route in self._routes:
            if route.path_regex.match(scope["path"]):
                methods |= route.methods or set()
        return sorted(methods)
