"""Requests about training that happens elsewhere: cells, live runs, imports, as values."""

from collections.abc import Iterable

from backend.client.answers import Call, Sender, sends
from backend.schemas import (
    CellAnswer,
    CellClaim,
    CellClaimed,
    CellRead,
    CellReport,
    ImportPreview,
    ImportRead,
    RunCreate,
)

_RAW = {"Content-Type": "application/octet-stream"}


def claim_cell(sweep_id: int, body: CellClaim) -> Call[CellClaimed]:
    """Claim the next waiting cell of a sweep."""
    return Call("POST", f"/api/sweeps/{sweep_id}/cells", CellClaimed, json=body.model_dump())


def report_cell(sweep_id: int, trial_id: int, body: CellReport) -> Call[CellAnswer]:
    """Report on a cell."""
    path = f"/api/sweeps/{sweep_id}/cells/{trial_id}"
    return Call("POST", path, CellAnswer, json=body.model_dump(exclude_unset=True))


def open_run(body: RunCreate) -> Call[CellRead]:
    """Begin to log a run, or go on with it."""
    return Call("POST", "/api/runs", CellRead, json=body.model_dump())


def import_runs(
    content: bytes | Iterable[bytes],
    *,
    filename: str = "",
    study_id: int | None = None,
    name: str | None = None,
    reuse: bool = False,
) -> Call[ImportRead]:
    """Bring runs made elsewhere into a study, a new one unless an id is given or one reused."""
    query = {
        "study_id": study_id,
        "name": name,
        "filename": filename or None,
        "reuse": "true" if reuse else None,
    }
    return Call("POST", "/api/import", ImportRead, query=query, content=content, headers=_RAW)


def preview_import(content: bytes | Iterable[bytes]) -> Call[ImportPreview]:
    """What an import would bring; nothing is stored."""
    query = {"preview": "true"}
    return Call("POST", "/api/import", ImportPreview, query=query, content=content, headers=_RAW)


class ElsewhereCalls(Sender):
    """What needs no more than to be sent."""

    claim_cell = sends(claim_cell)
    report_cell = sends(report_cell)
    open_run = sends(open_run)
    preview_import = sends(preview_import)
