"""A trial's columns are named once: in the table, and in the answer if people may see them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import sqlalchemy as sa

from backend.models import TrialRow
from backend.schemas import TrialEvent, TrialRead
from backend.services.trials import NOT_IN_TABLES, SETTINGS, TABLE_COLUMNS, rows
from backend.services.trials.rows import RESULTS
from ib_core.sweep.result import COLUMNS

ROOT = Path(__file__).resolve().parents[4]

#: What a developer adds for one more number: a field of the engine's result, a column of the table
#: and a field of the answer. Everything else is the program as it is.
ONE_MORE = """
from dataclasses import dataclass
import csv, io, json, os, sys
from sqlalchemy import Float
from sqlalchemy.orm import mapped_column
import backend.schemas
from backend.models import TrialRow
from ib_core.sweep import result

@dataclass(frozen=True, slots=True)
class Measured(result.TrialResult):
    norm: float = 2.5

class Answer(backend.schemas.TrialRead):
    norm: float | None = None

result.TrialResult, backend.schemas.TrialRead = Measured, Answer
TrialRow.norm = mapped_column(Float)

import pyarrow.parquet as pq
from backend.db import Base, build_engine, transaction
from backend.services import trials
from tests.factories import new_study, submit, train_all

engine = build_engine(f"sqlite:///{sys.argv[1]}")
Base.metadata.create_all(engine)
with transaction(engine) as session:
    study = new_study(session).id
    train_all(session, submit(session, study_id=study, methods=["eb"], seeds=[1]))
files = {kind: b"".join(trials.export(engine, study_id=study, format=kind))
         for kind in ("csv", "json", "parquet")}
table = pq.read_table(io.BytesIO(files["parquet"]))
print(json.dumps({
    "csv": [float(row["norm"]) for row in csv.DictReader(io.StringIO(files["csv"].decode()))],
    "json": [trial["norm"] for trial in json.loads(files["json"])["trials"]],
    "parquet": table["norm"].to_pylist(),
    "type": str(table.schema.field("norm").type),
    "cleared": trials.CLEARED["norm"],
}), flush=True)
# At once: pyarrow's threads beside torch's now and then abort a process that ends by itself.
os._exit(0)
"""


def test_one_more_column_is_stored_answered_and_exported_without_being_named_again(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ONE_MORE, str(tmp_path / "one_more.db")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    all_three = [2.5] * 3
    assert json.loads(done.stdout) == {
        "csv": all_three,
        "json": all_three,
        "parquet": all_three,
        "type": "double",
        "cleared": None,
    }


def test_every_answer_is_a_column_and_every_result_can_be_emptied() -> None:
    columns = sa.inspect(TrialRow).columns
    for kind in (TrialRead, TrialEvent):
        assert set(kind.model_fields) - set(rows.NO_COLUMNS) <= set(columns.keys())
    assert {*SETTINGS, *rows.LIFE, *RESULTS} == set(columns.keys())
    assert all(column.nullable for column in RESULTS.values())


def test_tables_begin_with_the_columns_of_the_command_line() -> None:
    assert TABLE_COLUMNS[: len(COLUMNS)] == COLUMNS
    assert set(TABLE_COLUMNS) == set(TrialRead.model_fields) - set(NOT_IN_TABLES)
