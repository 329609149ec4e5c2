"""Moments, which the browser writes in its viewer's zone."""

from datetime import UTC, datetime

from dashboard.formats import NONE, duration
from dashboard.markup import Component, html


def local_time(moment: datetime | None) -> Component | str:
    """Return a moment; without JavaScript it stays in UTC and says so."""
    if moment is None:
        return NONE
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return html.Time(
        aware.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        dateTime=aware.isoformat(),
        className="local-time",
    )


def age(moment: datetime, now: datetime) -> str:
    """Return how long ago a moment was."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    seconds = max(0.0, (now - aware).total_seconds())
    return "just now" if seconds < 1 else f"{duration(round(seconds))} ago"
