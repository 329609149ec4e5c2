"""Accounts from the server's shell."""

import pytest
from typer.testing import CliRunner

from backend.cli import app
from backend.db import transaction
from backend.errors import Conflict, InvalidInput, NotFound, Unavailable
from backend.services import accounts
from backend.services.accounts import passwords
from backend.settings import get_settings
from ib_core.errors import InvalidSpec
from tests.backend.accounts import CHEAP, PASSWORD, SECRET


@pytest.fixture(autouse=True)
def _database(sqlite_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    del sqlite_database
    monkeypatch.setattr(passwords, "HASHER", CHEAP)


def etascope(*words: str, typed: str | None = None) -> str:
    done = CliRunner().invoke(app, list(words), input=typed)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.output


def digest_of(name: str) -> str:
    from sqlalchemy import select

    from backend.models import UserRow

    with transaction() as session:
        found = session.scalar(select(UserRow.password_hash).where(UserRow.name == name))
    return found or ""


def test_an_account_is_created_with_a_typed_password() -> None:
    said = etascope("user", "create", "ada", "--role", "admin", typed=f"{PASSWORD}\n{PASSWORD}\n")
    assert "Created ada, admin." in said
    assert PASSWORD not in said
    assert passwords.password_matches(PASSWORD, digest_of("ada"))
    assert "ada: admin, last login never" in etascope("user", "list")


def test_a_made_up_password_is_printed_and_works() -> None:
    said = etascope("user", "create", "ada", "--generate")
    assert passwords.password_matches(said.split()[-1], digest_of("ada"))
    again = etascope("user", "password", "ada", "--generate")
    assert passwords.password_matches(again.split()[-1], digest_of("ada"))
    assert not passwords.password_matches(said.split()[-1], digest_of("ada"))


def test_locking_out_and_letting_in() -> None:
    etascope("user", "create", "root", "--role", "admin", "--generate")
    etascope("user", "create", "ada", "--generate")
    assert "locked out" in etascope("user", "disable", "ada")
    assert "ada: member, locked out" in etascope("user", "list")
    assert "again" in etascope("user", "disable", "ada", "--undo")
    with pytest.raises(Conflict, match="only admin"):
        etascope("user", "disable", "root")


def test_a_token_is_printed_once_and_works() -> None:
    etascope("user", "create", "ada", "--generate")
    text = etascope("token", "create", "ci", "--user", "ada", "--scope", "read").strip()
    with transaction() as session:
        caller = accounts.token_caller(session, text=text)
    assert caller is not None
    assert (caller.name, caller.scope) == ("ada", "read")


def test_what_does_not_work_is_a_sentence() -> None:
    with pytest.raises(InvalidInput, match="lower-case letters"):
        etascope("user", "create", "Ada Lovelace", "--generate")
    with pytest.raises(InvalidInput, match="10 to 200 characters"):
        etascope("user", "create", "ada", typed="short\nshort\n")
    with pytest.raises(NotFound, match="no account called ada"):
        etascope("user", "password", "ada", "--generate")


def test_the_first_admin_s_link_keeps_its_key_behind_the_hash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(InvalidSpec, match="Accounts are off"):
        etascope("user", "link")
    monkeypatch.setenv("ETASCOPE_AUTH", "on")
    monkeypatch.setenv("ETASCOPE_SECRET", SECRET)
    get_settings.cache_clear()
    link = etascope("user", "link", "--url", "https://etascope.example/").strip()
    address, _, key = link.partition("#")
    assert address == "https://etascope.example/welcome"
    assert len(key) == 40
    assert SECRET not in link
    etascope("user", "create", "root", "--role", "admin", "--generate")
    assert "There is an admin" in etascope("user", "link")


def test_a_database_without_tables_says_what_to_do(
    tmp_path: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ETASCOPE_DATABASE_URL", f"sqlite:///{tmp_path}/empty.db")
    get_settings.cache_clear()
    with pytest.raises(Unavailable) as caught:
        etascope("user", "list")
    assert "etascope db upgrade" in str(caught.value.hint)


def test_the_shell_s_deeds_are_remembered() -> None:
    from backend.services import accounts

    etascope("user", "create", "ada", "--generate")
    with transaction() as session:
        (entry,) = accounts.audit_page(session).items
        user = accounts.find_user(session, name="ada")
    assert (entry.action, entry.user_id, entry.username) == ("user.create", user.id, None)
