"""Columns and constraints that several tables share."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from sqlalchemy import CheckConstraint, Enum
from sqlalchemy.orm import mapped_column

from backend.db import clock

#: Largest finite double: a stored number is never infinite, and PostgreSQL's NaN is above it.
LARGEST = "1.7976931348623157e308"

#: Ids are never given twice: a late result must not land in a row that took a deleted one's id.
NO_SECOND_USE = {"sqlite_autoincrement": True}

CreatedAt = Annotated[datetime, mapped_column(default=clock())]


def enum_column(kind: type[StrEnum]) -> Enum:
    """Return a VARCHAR that reads as `kind`; `one_of` adds the CHECK."""
    return Enum(
        kind,
        native_enum=False,
        create_constraint=False,
        length=16,
        values_callable=lambda members: [member.value for member in members],
    )


def one_of(column: str, values: type[StrEnum] | tuple[str, ...]) -> CheckConstraint:
    """Return a CHECK that the column holds one of these values."""
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=column)


def finite(column: str) -> CheckConstraint:
    """Return a CHECK that the column holds a finite number or none."""
    return CheckConstraint(
        f"{column} IS NULL OR ({column} >= -{LARGEST} AND {column} <= {LARGEST})",
        name=f"{column}_finite",
    )
