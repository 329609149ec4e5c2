"""The web process put together: the API, and the dashboard's pages on top of it."""

from fastapi import FastAPI

from backend.client import AsyncClient
from backend.main import create_app
from backend.settings import get_settings
from backend.web.guard import LocalGuard
from dashboard.app import create_dash_app


def create_site() -> FastAPI:
    """Return the API with the dashboard; its pages ask the API without a network in between."""
    site = create_app()
    create_dash_app(site)
    return site


def create_pages(api: str, token: str | None = None) -> FastAPI:
    """Return the dashboard alone, asking an API elsewhere.

    Args:
        api: That API's address.
        token: What to show it, if the browser brings no login of its own.
    """
    pages = FastAPI(title="Etascope's dashboard", openapi_url=None)
    create_dash_app(pages, AsyncClient(api, token=token))
    if not get_settings().auth:
        pages.add_middleware(LocalGuard)
    return pages
