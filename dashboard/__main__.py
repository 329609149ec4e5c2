"""The dashboard alone, against an API elsewhere: `python -m dashboard --api http://host:8050`."""

import argparse
import os

import uvicorn
from fastapi import FastAPI

from backend.client import AsyncClient
from dashboard.app import create_dash_app


def create_server(api: str, token: str | None = None) -> FastAPI:
    """Return a web app with the pages only; numbers come from the API at `api`."""
    server = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    server.state.api_address = api.rstrip("/")
    create_dash_app(server, AsyncClient(api, token=token))
    return server


def main(arguments: list[str] | None = None) -> None:
    """Serve the pages until stopped."""
    parser = argparse.ArgumentParser(prog="python -m dashboard", description=__doc__)
    parser.add_argument("--api", default="http://127.0.0.1:8050", help="where the API is")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=8051, help="port to listen on")
    given = parser.parse_args(arguments)
    server = create_server(given.api, os.environ.get("ETASCOPE_TOKEN"))
    uvicorn.run(server, host=given.host, port=given.port, log_level="warning")


if __name__ == "__main__":
    main()
