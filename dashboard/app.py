"""Puts the dashboard onto a FastAPI app: `create_dash_app(server)`."""

import base64
import hashlib
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse

from backend.client import ApiError, ServerAway, calls
from backend.schemas import CSRF_COOKIE, CSRF_HEADER
from dashboard import pages, router
from dashboard.api_client import Sender, connect, in_process_client
from dashboard.callbacks import register_all, report
from dashboard.components import goes_on, page_shell
from dashboard.dash_routes import keep_scripts_packed, put_inside
from dashboard.markup import Dash

HERE = Path(__file__).parent
INDEX = (HERE / "index.html").read_text("utf-8")
#: A page asks about the studies its visitor saw running; more than these are not remembered.
MOST_STUDIES = 10
INLINE_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)


def create_dash_app(server: FastAPI, client: Sender | None = None) -> Any:
    """Serve the dashboard's pages from `server`.

    Call it after the API's own routes are there, its `/api` fallback included: Dash answers every
    path that is left.

    Args:
        server: The app to add pages to.
        client: What the pages ask for numbers; None: the API that `server` itself serves.
    """
    connect(server, client or in_process_client(server))
    add_pulse(server, client or server.state.dashboard_client)
    app = Dash(
        "dashboard",
        server=server,
        assets_folder=str(HERE / "assets"),
        assets_path_ignore=["pdf"],  # fetched with the first PDF that somebody wants
        title="Etascope",
        update_title="",
        index_string=INDEX,
        suppress_callback_exceptions=True,  # pages come and go
        on_error=report,
        add_log_handler=False,
        csrf_token_name=CSRF_COOKIE,
        csrf_header_name=CSRF_HEADER,
    )
    _without_websockets(app, server)
    app.layout = page_shell(pages.PAGES)
    router.route(app, pages.PAGES)
    register_all(app)
    # Dash would do this on the first request to "/", and serve a deep link before without assets.
    app._setup_server()
    app.index_string = _only_these_scripts(app)
    keep_scripts_packed(server)
    put_inside(server, app)
    return app


def _only_these_scripts(app: Any) -> str:
    """Return the page's frame with the hashes of its inline scripts instead of leave for any.

    Styles stay free: Dash and Mantine write them as they draw, and a style runs nothing.
    """
    own = INLINE_SCRIPT.findall(INDEX)
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in own]
    allowed = " ".join([*app.csp_hashes(), *(f"'sha256-{one}'" for one in hashes)])
    return INDEX.replace("script-src 'self' 'unsafe-inline'", f"script-src 'self' {allowed}")


def _without_websockets(app: Any, server: FastAPI) -> None:
    """Close Dash's second way in: no callback of ours needs it, and each browser would hold one."""
    app.backend.websocket_capability = False
    path = f"{app.config.routes_pathname_prefix}_dash-ws-callback"
    server.router.routes[:] = [
        route for route in server.router.routes if getattr(route, "path", None) != path
    ]


def add_pulse(server: FastAPI, client: Sender) -> None:
    """Add what every open page asks now and then: does the API answer, and have studies ended?"""

    @server.get("/dashboard/pulse", include_in_schema=False)
    async def pulse(request: Request, studies: str = "") -> Response:
        """Answer which of the studies have ended; 503 if the API does not answer."""
        wanted = [int(one) for one in studies.split(",") if one.isdecimal() and len(one) < 19]
        try:
            await client.send(calls.health())
            found = [await _ended(client, request, one) for one in wanted[:MOST_STUDIES]]
        except ServerAway:
            return Response(status_code=503)
        return JSONResponse({"ended": [one for one in found if one]})


async def _ended(client: Sender, request: Request, study_id: int) -> dict[str, Any] | None:
    """Return a study's name and state if it has ended, None while it runs.

    One that its visitor may not see (any more) has ended for them, without a word about it.
    """
    cookies = {"Cookie": request.headers["cookie"]} if "cookie" in request.headers else {}
    call = calls.study(study_id)
    try:
        study = await client.send(replace(call, headers={**call.headers, **cookies}))
    except ApiError:
        return {"id": study_id, "name": None, "state": None}
    if goes_on(study):
        return None
    return {"id": study.id, "name": study.name, "state": str(study.state)}
