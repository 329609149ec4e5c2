"""The paper, reproduced: published numbers beside this installation's."""

from fastapi import APIRouter, Request, Response

from backend.deps import CallerDep, ReadDep
from backend.routes.analysis import UNCHANGED
from backend.routes.documented import errors
from backend.schemas.paper import PaperRead
from backend.services import paper
from backend.web.answer_cache import answer_by_version

router = APIRouter(prefix="/api/paper", tags=["paper"])


@router.get("", response_model=PaperRead, responses=errors() | UNCHANGED)
def get_paper(request: Request, session: ReadDep, _: CallerDep) -> Response:
    """Return every experiment and claim with its verdict, rule, numbers and curves.

    Verdicts are computed from the trials of this installation, in both profiles, and from the
    authors' recorded runs where they were imported or lie in the data folder.
    """
    return answer_by_version(request, paper.version(session), lambda: paper.read(session))
