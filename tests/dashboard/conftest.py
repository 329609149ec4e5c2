"""One dashboard for all tests, each with an API of its own."""

from collections.abc import Iterator

import dash._get_app
import pytest
from fastapi import FastAPI

from dashboard.api_client import connect
from dashboard.app import create_dash_app
from tests.dashboard.fake_api import FakeApi
from tests.dashboard.paper_answer import paper_answer


@pytest.fixture(scope="module", autouse=True)
def _no_data(tmp_path_factory) -> Iterator[None]:
    """What pages say of missing data is tested, so none may be here, whatever this machine has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ETASCOPE_DATA_DIR", str(tmp_path_factory.mktemp("no-data")))
        paper_answer.cache_clear()
        yield
    paper_answer.cache_clear()


@pytest.fixture(scope="session")
def dash_app():
    return create_dash_app(FastAPI(), FakeApi())


@pytest.fixture
def api(dash_app) -> Iterator[FakeApi]:
    fake = FakeApi()
    connect(dash_app.server, fake)
    # Outside a request, the dashboard that was created last is the current one.
    before, dash._get_app.APP = dash._get_app.APP, dash_app
    yield fake
    dash._get_app.APP = before
