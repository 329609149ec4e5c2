"""`etascope up`, `api`, `worker` and `dashboard`: the parts of a server, together or alone."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backend.errors import Unavailable
from ib_core.errors import InvalidSpec

if TYPE_CHECKING:  # web and database, which `--help` need not wait for
    from fastapi import FastAPI
    from pydantic import ValidationError

    from backend.settings import Settings

#: A client that sends endless headers is cut off here.
LONGEST_HEADERS = 64 * 1024
#: Settings that may hold a password: an error must not repeat them.
UNSPEAKABLE = frozenset({"secret", "database_url", "broker_url"})


OwnFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        help="A file with tasks and methods of yours, or package.Class; once for each.",
        metavar="FILE",
    ),
]


def read_settings() -> "Settings":
    """Return the settings, or say in one sentence which `ETASCOPE_*` variable is wrong."""
    from pydantic import ValidationError

    from backend.settings import get_settings

    try:
        return get_settings()
    except ValidationError as error:
        raise InvalidSpec(_sentence(error)) from None


def _sentence(error: "ValidationError") -> str:
    parts = []
    for problem in error.errors(include_url=False):
        message = problem["msg"].removeprefix("Value error, ")
        if not problem["loc"]:
            parts.append(message)
            continue
        name = str(problem["loc"][0])
        given = "" if name in UNSPEAKABLE else f"; got {problem['input']!r}"
        parts.append(f"ETASCOPE_{name.upper()}: {message.rstrip('.')}{given}.")
    return " ".join(parts)


def up(
    first_study: Annotated[
        bool, typer.Option(help="Run a first study if the history is empty, once a browser opens.")
    ] = True,
    paper: Annotated[
        bool, typer.Option(help="Load the paper's reproduction after the first study.")
    ] = True,
    own: OwnFiles = None,
) -> None:
    """Start everything on this machine: database, broker, worker, API and dashboard.

    The dashboard is at port 8050; ETASCOPE_PORT chooses another, as ETASCOPE_PORT=8060 etascope up.
    """
    from rich.console import Console

    from backend.operations import launcher

    console = Console(highlight=False)

    def say(sentence: str) -> None:
        with contextlib.suppress(OSError):  # the terminal may be gone; we stop all the same
            console.print(sentence, soft_wrap=True)

    settings = read_settings()
    files = _checked(own)
    say(f"Starting Etascope. Database, queue and logs are in {settings.home}.")
    launcher.up(settings, say=say, first_study=first_study, paper=paper, invite=_invite, own=files)


def _invite(url: str) -> str | None:
    """Return what to tell the first admin; to the terminal only, never to a log."""
    from backend.cli.administration import first_admin_link

    found = first_admin_link(url)
    return f"There is no admin yet. Make the first account at {found}" if found else None


def api() -> None:
    """Serve the API and the dashboard."""
    from backend.operations.web_process import stay_small

    stay_small()
    settings = read_settings()
    _say_if_nobody_can_log_in()
    _serve(create_site(), settings)


def _say_if_nobody_can_log_in() -> None:
    from backend.cli.administration import first_admin_link

    with contextlib.suppress(Unavailable):  # the database may come later
        if first_admin_link(""):
            typer.echo(
                "There is no admin yet. Make one: etascope user create NAME --role admin, or "
                "print a link for it: etascope user link",
                err=True,
            )


def dashboard(
    api: Annotated[str, typer.Option(help="Address of the API, as http://host:8050.")],
    token: Annotated[
        str | None, typer.Option(envvar="ETASCOPE_TOKEN", help="Needed where accounts are on.")
    ] = None,
) -> None:
    """Serve the dashboard alone, against an API elsewhere."""
    settings = read_settings()
    _serve(create_pages(api, token), settings)


def create_site() -> "FastAPI":
    """Return the API with the dashboard; its pages ask the API without a network in between."""
    from backend.app import create_app
    from dashboard.app import create_dash_app

    site = create_app()
    create_dash_app(site)
    return site


def create_pages(api: str, token: str | None = None) -> "FastAPI":
    """Return the dashboard alone, asking an API elsewhere.

    Whoever opens it acts with the token's rights, so it is for one person on one machine.

    Args:
        api: That API's address.
        token: What to show it, where accounts are on.
    """
    from fastapi import FastAPI

    from backend.client import AsyncClient
    from backend.settings import LOOPBACK, get_settings
    from backend.web import LocalGuard
    from dashboard.app import create_dash_app

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


def _serve(site: "FastAPI", settings: "Settings") -> None:
    import uvicorn

    from backend.operations.launcher import free_port
    from backend.settings import configure_logs
    from backend.web import ImpatientProtocol

    configure_logs(settings)
    uvicorn.run(
        site,
        host=settings.host,
        port=free_port(settings.host, settings.port),
        log_config=None,  # one format for all of the process
        access_log=False,  # `/metrics` counts requests, and addresses may hold secrets
        server_header=False,
        # Whoever else sends X-Forwarded-For could choose the address that logins are counted by.
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=settings.trusted_proxies,
        http=ImpatientProtocol,
        h11_max_incomplete_event_size=LONGEST_HEADERS,
        timeout_keep_alive=75,  # longer than proxies keep a connection, so that none is cut in use
        timeout_graceful_shutdown=3,  # event streams never end by themselves
    )


def worker(
    processes: Annotated[
        int | None,
        typer.Option(min=1, help="Training processes; default: one a GPU, else one."),
    ] = None,
    own: OwnFiles = None,
) -> None:
    """Train what is queued."""
    from worker.main import serve

    read_settings()
    serve(processes=processes, own=_words(own))


def _words(own: list[str] | None) -> list[str]:
    """Return files by their full paths, which hold in another process, too; classes as they are."""
    return [str(Path(one).resolve()) if one.endswith(".py") else one for one in own or ()]


def _checked(own: list[str] | None) -> list[str]:
    """Return the files to bring along, each of them tried; what cannot be used is refused here."""
    words = _words(own)
    if words:
        from worker.own_files import probe

        probe(words)
    return words
