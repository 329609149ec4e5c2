"""The dashboard alone, against an API elsewhere: `python -m dashboard --api http://host:8050`."""

import argparse
import os

import uvicorn
from fastapi import FastAPI
from starlette.middleware.trustedhost import TrustedHostMiddleware

from backend.client import AsyncClient
from dashboard.app import create_dash_app

#: Whoever opens these pages acts with the token they were started with.
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def create_server(api: str, token: str | None = None) -> FastAPI:
    """Return a web app with the pages only; numbers come from the API at `api`."""
    server = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    server.state.api_address = api.rstrip("/")
    create_dash_app(server, AsyncClient(api, token=token))
    # Another site could point its own name at this machine.
    server.add_middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
    return server


def main(arguments: list[str] | None = None) -> None:
    """Serve the pages until stopped."""
    parser = argparse.ArgumentParser(prog="python -m dashboard", description=__doc__)
    parser.add_argument("--api", default="http://127.0.0.1:8050", help="where the API is")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=8051, help="port to listen on")
    given = parser.parse_args(arguments)
    if given.host not in LOOPBACK:
        parser.error(f"whoever reaches {given.host} would act with your token; use 127.0.0.1")
    server = create_server(given.api, os.environ.get("ETASCOPE_TOKEN"))
    uvicorn.run(server, host=given.host, port=given.port, log_level="warning")


if __name__ == "__main__":
    main()
