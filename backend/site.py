"""The web process put together: the API, and the dashboard's pages on top of it."""

from fastapi import FastAPI

from backend.client import AsyncClient
from backend.main import create_app
from backend.settings import LOOPBACK, get_settings
from backend.web.guard import LocalGuard
from dashboard.app import create_dash_app
from ib_core.errors import InvalidSpec


def create_site() -> FastAPI:
    """Return the API with the dashboard; its pages ask the API without a network in between."""
    site = create_app()
    create_dash_app(site)
    return site


def create_pages(api: str, token: str | None = None) -> FastAPI:
    """Return the dashboard alone, asking an API elsewhere.

    Whoever opens it acts with the token's rights, so it is for one person on one machine.

    Args:
        api: That API's address.
        token: What to show it, where accounts are on.
    """
    host = get_settings().host
    if host not in LOOPBACK:
        raise InvalidSpec(
            f"The dashboard alone would let anybody at {host} use its token.",
            hint="Leave ETASCOPE_HOST at 127.0.0.1, or serve teams with `etascope api`.",
        )
    pages = FastAPI(title="Etascope's dashboard", openapi_url=None)
    create_dash_app(pages, AsyncClient(api, token=token))
    pages.add_middleware(LocalGuard)
    return pages
