"""Settings: sensible without any, and unsafe ones are refused in a sentence."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from backend.settings import Settings, get_settings

SECRET = "2fK8-vQ3nD5rT7wY9zA1cE4gH6jL0mP-"


def test_nothing_set_suits_one_person_on_one_machine(monkeypatch) -> None:
    monkeypatch.setenv("ETASCOPE_HOME", "/somewhere")
    settings = Settings()
    assert settings.database == "sqlite:////somewhere/etascope.db"
    assert settings.broker == "redis+socket:///somewhere/broker/broker.sock"
    assert (settings.host, settings.port, settings.auth) == ("127.0.0.1", 8050, False)


def test_every_setting_explains_itself() -> None:
    for name, field in Settings.model_fields.items():
        assert field.description, name
        assert field.description.endswith("."), name


def test_variables_are_read(monkeypatch) -> None:
    monkeypatch.setenv("ETASCOPE_PORT", "9000")
    monkeypatch.setenv("ETASCOPE_LOG_LEVEL", "DEBUG")
    assert (Settings().port, Settings().log_level) == (9000, "debug")


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("postgresql://ada:pw@db/etascope", "postgresql+psycopg://ada:pw@db/etascope"),
        ("postgres://db/etascope", "postgresql+psycopg://db/etascope"),
        ("postgresql+psycopg://db/etascope", "postgresql+psycopg://db/etascope"),
        ("sqlite:////tmp/x.db", "sqlite:////tmp/x.db"),
    ],
)
def test_a_database_address_gets_the_driver_that_is_installed(given, used) -> None:
    assert Settings(database_url=given).database == used


@pytest.mark.parametrize("given", ["mysql://db/x", "nonsense", "redis://x"])
def test_other_databases_are_refused_with_what_works(given) -> None:
    with pytest.raises(ValidationError, match="postgresql://user:password@host/name"):
        Settings(database_url=given)


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("redis://localhost:6379/3", "redis://localhost:6379/3"),
        ("unix:///run/b.sock", "redis+socket:///run/b.sock"),
    ],
)
def test_a_broker_address_is_what_celery_reads(given, used) -> None:
    assert Settings(broker_url=given).broker == used


def test_a_long_home_does_not_make_a_socket_nobody_can_open() -> None:
    settings = Settings(home=Path("/home") / ("x" * 120))
    assert len(str(settings.broker_socket)) < 100
    other = Settings(home=Path("/home") / ("y" * 120))
    assert settings.broker_socket != other.broker_socket


def test_accounts_need_a_secret() -> None:
    with pytest.raises(ValidationError, match="needs ETASCOPE_SECRET"):
        Settings(auth=True)
    with pytest.raises(ValidationError, match="at least 32"):
        Settings(auth=True, secret="short")
    for weak in ("x" * 64, "changeme" * 4, "0123456789abcdef" * 2):
        with pytest.raises(ValidationError, match="needs ETASCOPE_SECRET"):
            Settings(auth=True, secret=weak)
    assert Settings(auth=True, secret=SECRET).auth


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org"])
def test_only_loopback_may_be_open_to_everybody(host) -> None:
    with pytest.raises(ValidationError, match="would let anybody in"):
        Settings(host=host)
    assert Settings(host=host, auth=True, secret=SECRET).host == host


def test_the_secret_is_not_shown() -> None:
    assert SECRET not in repr(Settings(auth=True, secret=SECRET))


@pytest.mark.parametrize("name", ["lease_seconds", "heartbeat_seconds", "max_attempts", "port"])
def test_impossible_numbers_are_refused(name) -> None:
    with pytest.raises(ValidationError):
        Settings(**{name: -1})


def test_settings_are_read_once(home) -> None:
    assert get_settings() is get_settings()
