"""`etascope user`, `token`, `db`, `import-bundle`: from the server's own shell."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from backend.cli.server import read_settings
from backend.errors import Unavailable
from ib_core.errors import InvalidSpec

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from backend.services.accounts import Caller

    pass


# --- accounts


user_app = typer.Typer(help="Create accounts, lock out, set passwords.", no_args_is_help=True)
token_app = typer.Typer(help="Bearer tokens for programs.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Of the account.")]
Generate = Annotated[
    bool, typer.Option("--generate", help="Make up a password and print it, instead of asking.")
]


@contextmanager
def _accounts() -> Iterator["Session"]:
    """Yield a transaction; a database that is not there or not up to date is one sentence."""
    from sqlalchemy.exc import SQLAlchemyError

    from backend import db

    try:
        with db.transaction() as session:
            yield session
    except SQLAlchemyError as error:
        raise Unavailable(
            f"The database cannot be used: {db.reason(error)}.",
            hint="Run `etascope db upgrade` first.",
        ) from None


@user_app.command()
def create(
    name: Name,
    role: Annotated[
        Literal["viewer", "member", "admin"], typer.Option(help="What it may do.")
    ] = "member",
    generate: Generate = False,
) -> None:
    """Create an account."""
    from backend.services import accounts
    from backend.services.accounts import check_name

    read_settings()
    check_name(name)
    digest, shown = _password(name, generate)
    with _accounts() as session:
        user = accounts.create_user(session, name=name, role=role, password_digest=digest)
        accounts.audit(session, by=_shell(), action="user.create", user_id=user.id, name=name)
    typer.echo(f"Created {name}, {role}.{shown}")


@user_app.command("list")
def list_users() -> None:
    """List every account."""
    from backend.services import accounts

    read_settings()
    with _accounts() as session:
        found = accounts.list_users(session)
    for user in found:
        seen = f"{user.last_login_at:%Y-%m-%d %H:%M} UTC" if user.last_login_at else "never"
        locked = ", locked out" if user.disabled else ""
        typer.echo(f"{user.username}: {user.role}{locked}, last login {seen}")
    if not found:
        typer.echo("There are no accounts. Create one: etascope user create NAME --role admin")


@user_app.command()
def disable(
    name: Name, undo: Annotated[bool, typer.Option("--undo", help="Let in again.")] = False
) -> None:
    """Lock somebody out: logins and tokens end at once, studies stay."""
    from backend.services import accounts

    read_settings()
    with _accounts() as session:
        user = accounts.find_user(session, name=name)
        accounts.change_user(session, user_id=user.id, disabled=not undo)
        accounts.audit(
            session,
            by=_shell(),
            action="user.change",
            user_id=user.id,
            name=name,
            disabled=not undo,
        )
    typer.echo(f"{name} may log in again." if undo else f"{name} is locked out.")


@user_app.command()
def password(
    name: Name,
    generate: Generate = False,
    keep_tokens: Annotated[
        bool, typer.Option("--keep-tokens", help="Leave their tokens as they are.")
    ] = False,
) -> None:
    """Set somebody's password, and end all of their logins and tokens."""
    from backend.services import accounts

    read_settings()
    with _accounts() as session:
        user = accounts.find_user(session, name=name)
    digest, shown = _password(name, generate)
    with _accounts() as session:
        revoked = accounts.set_password(
            session, user_id=user.id, password_digest=digest, keep_tokens=keep_tokens
        )
        accounts.audit(
            session,
            by=_shell(),
            action="user.password",
            user_id=user.id,
            name=name,
            tokens_revoked=revoked,
        )
    ended = f" {revoked} of their tokens no longer work." if revoked else ""
    typer.echo(f"{name} has a new password.{ended}{shown}")


@user_app.command()
def link(
    url: Annotated[
        str | None, typer.Option(help="Where browsers find the server; default: this machine.")
    ] = None,
) -> None:
    """Print the link that makes the first admin; it works once."""
    from backend.operations.launcher import address

    settings = read_settings()
    if not settings.auth:
        raise InvalidSpec("Accounts are off; ETASCOPE_AUTH=on turns them on.")
    found = first_admin_link(url or address(settings))
    typer.echo(found or "There is an admin already, who can create accounts.")


def first_admin_link(url: str) -> str | None:
    """Return the link for the first admin, None where accounts are off or there is one.

    The key is behind a `#`, which browsers keep to themselves: no proxy or log sees it.
    """
    from backend.services import accounts

    settings = read_settings()
    if not settings.auth:
        return None
    with _accounts() as session:
        key = accounts.invitation(session, secret=settings.secret)
    return f"{url.rstrip('/')}/welcome#{key}" if key else None


@token_app.command("create")
def create_token(
    name: Annotated[str, typer.Argument(help="What the token is for.")],
    user: Annotated[str, typer.Option(help="Whose it is.")],
    scope: Annotated[
        Literal["read", "write", "admin", "agent"],
        typer.Option(help="Never more than the role allows; agent: cells of its sweeps only."),
    ] = "write",
    days: Annotated[float, typer.Option(help="Until it expires; 0: never.", min=0)] = 90,
) -> None:
    """Make a token and print it; it is not shown again."""
    from backend.services import accounts

    read_settings()
    with _accounts() as session:
        owner = accounts.find_user(session, name=user)
        made = accounts.create_token(
            session, user_id=owner.id, name=name, scope=scope, days=days or None
        )
        accounts.audit(
            session, by=_shell(), action="token.create", user_id=owner.id, name=name, scope=scope
        )
    typer.echo(made.token)


def _password(name: str, generate: bool) -> tuple[str, str]:
    """Return a password's digest, and what to print about it."""
    from backend.services import accounts

    if generate:
        made = accounts.choose_password(name)
        return made.digest, f" The password is {made.text}"
    wish = typer.prompt("Password", hide_input=True, confirmation_prompt=True)
    return accounts.choose_password(name, wish).digest, ""


def _shell() -> "Caller":
    """Return who acts here: whoever may use the server's shell owns everything anyway."""
    from backend.services.accounts import LOCAL_OWNER

    return LOCAL_OWNER


# --- the database


app = typer.Typer(help="Upgrade, back up, restore and check the database.", no_args_is_help=True)


@app.command()
def upgrade() -> None:
    """Bring the database to this version's schema; SQLite is backed up before."""
    from backend.operations import database

    done = database.upgrade(read_settings())
    copy = f" A copy of what it was is in {done.backup}." if done.backup else ""
    typer.echo(f"The database is up to date ({done.after}).{copy}")


@app.command()
def backup(file: Annotated[Path, typer.Argument(help="A new file.")]) -> None:
    """Copy the whole database to a file, also while Etascope runs."""
    from backend.operations.database import back_up

    back_up(read_settings(), file)
    typer.echo(f"Wrote {file} ({file.stat().st_size / 1e6:.1f} MB).")


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(help="A file made by `etascope db backup`.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Replace the whole database by a copy."""
    from backend.operations import database
    from backend.operations.launcher import only_one

    settings = read_settings()
    question = f"Replace everything in Etascope's database by {file}?"
    if not (yes or typer.confirm(question)):
        raise typer.Exit(1)
    with only_one(settings.home):  # a running `up` would go on writing to the old one
        kept = database.restore(settings, file)
        database.upgrade(settings)
    typer.echo(f"Restored {file}." + (f" What was there before is in {kept}." if kept else ""))


@app.command()
def check(
    repair: Annotated[bool, typer.Option(help="Mend what can be mended, losing nothing.")] = False,
) -> None:
    """Look for rows that contradict each other; exit code 1 if some are left."""
    from sqlalchemy.exc import SQLAlchemyError

    from backend import db
    from backend.services import maintenance

    read_settings()
    try:
        with db.transaction() if repair else db.reading() as session:
            problems = maintenance.repair(session) if repair else maintenance.check(session)
    except SQLAlchemyError as error:
        cause = getattr(error, "orig", None) or error
        raise Unavailable(
            f"The database cannot be checked: {cause}.", hint="Run `etascope db upgrade` first."
        ) from None
    for problem in problems:
        mended = " Mended." if repair and problem.repairable else ""
        typer.echo(f"{problem.sentence}{mended}")
    if any(not (repair and problem.repairable) for problem in problems):
        raise typer.Exit(1)
    typer.echo("No contradiction is left." if problems else "No contradiction was found.")


def import_bundle(
    bundles: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[BUNDLE]...",
            help="Folders of bundles, or of those that come with Etascope: paper, methods, "
            "studies; without any: all of these. Also seeds: further seeds of UCI; and tables: "
            "every method on every UCI table.",
        ),
    ] = None,
) -> None:
    """Put bundles of studies into this installation's history; twice changes nothing."""
    from backend.db import transaction
    from backend.operations import database
    from backend.services.reproduction import store_bundle
    from ib_core.reproduction import SHIPPED_ALL, SHIPPED_NAMES, find_bundle

    named = bundles or SHIPPED_NAMES
    found = {name: find_bundle(name) for name in named}
    database.upgrade(read_settings())
    for name, bundle in found.items():
        ours = name in SHIPPED_ALL
        source = "the bundle that comes with Etascope" if ours else f"the bundle {name}"
        with transaction() as session:
            stored = store_bundle(session, bundle=bundle, source=source)
        typer.echo(
            f"{stored.studies} studies with {stored.trials} trials; {stored.new} of them were new "
            "here."
        )
        if stored.left_out:
            typer.echo(f"{stored.left_out} trials of another engine version were left out.")
