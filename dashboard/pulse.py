"""What every open page asks now and then: does the API answer, and have studies ended?"""

from dataclasses import replace
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse

from backend.client import ApiError, ServerAway, calls
from dashboard.api_client import Sender
from dashboard.components.progress import unfinished

#: A page asks about the studies its visitor saw running; more than these are not remembered.
MOST_STUDIES = 10


def add_pulse(server: FastAPI, client: Sender) -> None:
    """Add the pulse to an app."""

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
    if unfinished(study.progress):
        return None
    return {"id": study.id, "name": study.name, "state": str(study.state)}
