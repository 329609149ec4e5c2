"""Every setting of the service, each with its help text, read from `ETASCOPE_*`; and its logs."""

import hashlib
import ipaddress
import json
import logging
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import platformdirs
from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

#: A unix socket's address has to fit `sockaddr_un`, 108 bytes on Linux and 104 on macOS.
LONGEST_SOCKET_PATH = 100
LOOPBACK = ("127.0.0.1", "::1", "localhost")
SHORTEST_SECRET = 32
FEWEST_DIFFERENT = 10


def _installed() -> str:
    try:
        return version("etascope")
    except PackageNotFoundError:  # run from a source tree
        return "0.1.0"


#: This installation's.
VERSION = _installed()


class Settings(BaseSettings):
    """All settings; an unset one has a value that suits one person on one machine."""

    model_config = SettingsConfigDict(env_prefix="ETASCOPE_", extra="ignore")

    home: Path = Field(
        default_factory=lambda: platformdirs.user_data_path("etascope", appauthor=False),
        description="Folder of the database, the broker's files and the logs.",
    )
    data_dir: Path | None = Field(
        None,
        description="Folder of the data sets that are not bundled; unset: `data` in HOME.",
    )
    host: str = Field(
        "127.0.0.1", description="Address to listen on; others than loopback need ETASCOPE_AUTH=on."
    )
    port: int = Field(8050, ge=0, le=65535, description="Port of the API and the dashboard.")
    database_url: str = Field(
        "",
        description="SQLAlchemy address, sqlite:///... or postgresql://...; "
        "unset: an SQLite file in HOME.",
    )
    broker_url: str = Field(
        "",
        description="Redis or Valkey address, redis://host:6379/0; "
        "unset: a private server that `etascope up` starts on a unix socket.",
    )
    auth: bool = Field(
        False, description="on: everybody needs an account or a token; off: one owner, local only."
    )
    secret: str = Field(
        "", repr=False, description="Key that signs sessions; needed with ETASCOPE_AUTH=on."
    )
    secure_cookies: bool = Field(
        False,
        description="on: browsers send logins over https only; off: only if they came by https.",
    )
    trusted_proxies: str = Field(
        "",
        description="Addresses or networks, by commas, whose X-Forwarded-For and "
        "X-Forwarded-Proto are believed; unset: nobody's.",
    )
    session_hours: float = Field(24 * 7, gt=0, description="How long a login lasts.")
    lease_seconds: float = Field(
        30.0, gt=0, description="A shard whose worker is silent for so long is given to another."
    )
    heartbeat_seconds: float = Field(5.0, gt=0, description="How often a worker says it is alive.")
    reap_seconds: float = Field(
        2.0, gt=0, description="How often lost and unsent work is looked for."
    )
    flush_seconds: float = Field(1.0, gt=0, description="How often a worker stores new losses.")
    stall_seconds: float = Field(
        1800.0, gt=0, description="A shard without any progress for so long counts as hung."
    )
    resend_seconds: float = Field(
        300.0, gt=0, description="Unclaimed work is announced to the workers again after so long."
    )
    max_attempts: int = Field(
        3, ge=1, le=100, description="How often a shard is tried before its trials fail."
    )
    retry_seconds: float = Field(
        2.0, ge=0, description="Wait before a failed shard's second attempt; it doubles each time."
    )
    max_trials: int = Field(20_000, ge=1, description="Most trials in one sweep.")
    max_body_bytes: int = Field(
        32 * 1024 * 1024, ge=1024, description="Largest request body, as sent and unpacked."
    )
    page_limit: int = Field(500, ge=1, le=10_000, description="Most rows in one page of a list.")
    threads: int = Field(
        0, ge=0, description="Threads of one training process; 0: the processors, fairly divided."
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="What workers here train on; auto: GPUs if torch can use them."
    )
    first_study: bool = Field(
        True,
        description="Whether an empty history gets its first study when a browser opens the start "
        "page; never with ETASCOPE_AUTH=on.",
    )
    reaper: bool = Field(
        True, description="Whether the web process looks for lost and unsent work."
    )
    keep_shards_days: float = Field(
        30.0, ge=0, description="How long it is known how a shard went; 0: for ever."
    )
    keep_audit_days: float = Field(
        0.0, ge=0, description="How long it is known who did what; 0: for ever."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="How much is logged."
    )
    log_format: Literal["text", "json"] = Field(
        "text", description="json: one object a line, with request, shard and trial ids."
    )

    @field_validator("log_level", "log_format", mode="before")
    @classmethod
    def _lower(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @field_validator("home", "data_dir")
    @classmethod
    def _absolute(cls, value: Path | None) -> Path | None:
        return None if value is None else value.expanduser().absolute()

    @field_validator("trusted_proxies")
    @classmethod
    def _networks(cls, value: str) -> str:
        for name in filter(None, map(str.strip, value.split(","))):
            try:
                ipaddress.ip_network(name)
            except ValueError:
                raise ValueError(
                    "addresses or networks are needed, as 10.0.0.5 or 172.16.0.0/12."
                ) from None
        return value

    @field_validator("database_url")
    @classmethod
    def _known_database(cls, value: str) -> str:
        if not value:
            return value
        try:
            kind = make_url(value).get_backend_name()
        except ArgumentError:
            kind = "something unreadable"
        if kind not in ("sqlite", "postgresql", "postgres"):
            raise ValueError(
                f"it names {kind}; write sqlite:////path/to/file.db or "
                "postgresql://user:password@host/name."
            )
        return value

    @model_validator(mode="after")
    def _safe(self) -> "Settings":
        if self.auth and not _is_strong(self.secret):
            raise ValueError(
                f"ETASCOPE_AUTH=on needs ETASCOPE_SECRET with at least {SHORTEST_SECRET} "
                f"characters, {FEWEST_DIFFERENT} of them different; make one with: "
                'python3 -c "import secrets; print(secrets.token_urlsafe(32))"'
            )
        if self.host not in LOOPBACK and not self.auth:
            raise ValueError(
                f"Listening on {self.host} would let anybody in: set ETASCOPE_AUTH=on and "
                "ETASCOPE_SECRET, or leave ETASCOPE_HOST at 127.0.0.1."
            )
        return self

    @property
    def database(self) -> str:
        """The database's address, with the driver that is installed."""
        if not self.database_url:
            return f"sqlite:///{self.home / 'etascope.db'}"
        url = make_url(self.database_url)
        if url.get_backend_name() in ("postgresql", "postgres"):
            url = url.set(drivername="postgresql+psycopg")
        return url.render_as_string(hide_password=False)

    @property
    def broker(self) -> str:
        """The broker's address in the form Celery reads."""
        if not self.broker_url:
            return f"redis+socket://{self.broker_socket}"
        if self.broker_url.startswith("unix://"):
            return "redis+socket://" + self.broker_url.removeprefix("unix://")
        return self.broker_url

    @property
    def broker_socket(self) -> Path:
        """Where the private broker listens; in the temporary folder if HOME's path is too long."""
        socket = self.home / "broker" / "broker.sock"
        if len(str(socket)) <= LONGEST_SOCKET_PATH:
            return socket
        digest = hashlib.sha256(str(self.home).encode()).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"etascope-{digest}" / "broker.sock"


def _is_strong(secret: str) -> bool:
    """Return whether nobody would guess a secret; not `changeme` written four times, either."""
    repeats = secret in (secret + secret)[1:-1]
    return len(secret) >= SHORTEST_SECRET and len(set(secret)) >= FEWEST_DIFFERENT and not repeats


@lru_cache(maxsize=1)
def get_settings() -> Settings:
    """Return this process's settings, read once."""
    return Settings()


# --- Logs of every process: for people or as JSON, with ids to search for, and without secrets

#: What this request, or this thread of control, is about: `request_id`.
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_here: ContextVar[Mapping[str, Any]] = ContextVar("log_fields", default=_NOTHING)
#: What the whole process is about, whichever thread speaks: a worker trains one shard at a time.
_everywhere: dict[str, Any] = {}

#: Passwords in addresses, tokens and keys in headers, our own tokens wherever they are.
_SECRETS = (
    (re.compile(r"(?<=://)([^\s:/@]*):[^\s@]+(?=@)"), r"\1:***"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]+"), r"\1 ***"),
    (re.compile(r"\beta_[\w-]{8,}"), "eta_***"),
    (
        re.compile(
            r"(?i)(password|passwd|secret|token|cookie)([\"']?\s*[:=]\s*[\"']?)[^\s\"',;&]+"
        ),
        r"\1\2***",
    ),
)


def configure_logs(settings: Settings) -> None:
    """Send everything this process logs to stderr, in the format the settings ask for."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if settings.log_format == "json" else Lines())
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler], force=True)
    # One line for each of our own requests would drown everything else.
    logging.getLogger("httpx").setLevel(logging.WARNING)


@contextmanager
def about(**fields: Any) -> Iterator[None]:
    """Add fields to whatever is logged in the block, by this request or thread."""
    token = _here.set({**_here.get(), **fields})
    try:
        yield
    finally:
        _here.reset(token)


@contextmanager
def process_about(**fields: Any) -> Iterator[None]:
    """Add fields to whatever any thread of this process logs while the block runs."""
    _everywhere.update(fields)
    try:
        yield
    finally:
        for name in fields:
            _everywhere.pop(name, None)


def redact(text: str) -> str:
    """Return the text without what looks like a password, a token or a key."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def _fields() -> dict[str, Any]:
    return {**_everywhere, **_here.get()}


class Lines(logging.Formatter):
    """One line for a person; ids stand in brackets at its end."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        ids = " ".join(f"{name}={_short(value)}" for name, value in _fields().items())
        return redact(super().format(record)) + (f" [{ids}]" if ids else "")


def _short(value: Any) -> str:
    if isinstance(value, list) and len(value) > 4:
        return f"{value[0]}..{value[-1]}({len(value)})"
    return str(value).replace(" ", "")


class JsonLines(logging.Formatter):
    """One JSON object a line, for machines."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the object."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact(record.getMessage()),
            **_fields(),
        }
        if record.exc_info:
            line["traceback"] = redact(self.formatException(record.exc_info))
        return json.dumps(line, default=str, ensure_ascii=False)
