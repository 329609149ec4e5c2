"""One client serves many people, and must not mix them up."""

from fastapi import FastAPI, Request, Response

from backend.client import AsyncClient, Call
from tests.coroutines import run


def test_what_one_person_s_browser_is_told_is_not_sent_for_the_next() -> None:
    app, seen = FastAPI(), []

    @app.post("/in")
    def log_in(response: Response) -> None:
        response.set_cookie("session", "ada")

    @app.get("/who")
    def who(request: Request) -> str:
        seen.append(request.headers.get("cookie"))
        return ""

    async def visit() -> None:
        async with AsyncClient(app=app) as client:
            await client.send(Call("POST", "/in", type(None)))
            await client.send(Call("GET", "/who", str))
            own = Call("GET", "/who", str, headers={"Cookie": "session=bob"})
            await client.send(own)

    run(visit())
    assert seen == [None, "session=bob"]
