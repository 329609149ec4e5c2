"""What a new installation begins with: its first study, and the paper's reproduction."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from backend.db import reading, transaction
from backend.deps import CallerDep, EngineDep, QueueDep, ReadDep, SettingsDep, WriterDep
from backend.routes.parameters import errors
from backend.routes.sweeps import announce
from backend.schemas import BundleRead, FirstStudyRead
from backend.services import accounts, start
from backend.services.start import BundleLoading

router = APIRouter(prefix="/api", tags=["start"])


def _loading(request: Request) -> BundleLoading:
    found: BundleLoading = request.app.state.loading
    return found


LoadingDep = Annotated[BundleLoading, Depends(_loading)]


@router.post("/first-study", responses=errors())
def begin_first_study(
    engine: EngineDep, queue: QueueDep, settings: SettingsDep, caller: WriterDep
) -> FirstStudyRead:
    """Begin the first study if the history is empty, there are no accounts and it is wanted.

    However often and by whomever it is asked for, it is begun once. The answer names it also
    later.
    """
    with reading(engine) as session:
        known, due = start.find_first_study(session), start.first_study_is_due(session)
    if settings.auth or not settings.first_study or not due:
        return FirstStudyRead(study_id=known)
    request = start.prepare_first_study()
    with transaction(engine) as session:
        found = start.begin_first_study(session, request=request, by=caller)
    announce(queue, list(found.shard_ids))
    return FirstStudyRead(study_id=found.study_id)


@router.get("/bundle", responses=errors())
def get_bundle(session: ReadDep, loading: LoadingDep, _: CallerDep) -> BundleRead:
    """Return whether the paper's reproduction, which comes with the program, is loaded."""
    return loading.read(session)


@router.post("/bundle", status_code=202, responses=errors())
def load_bundle(
    engine: EngineDep, settings: SettingsDep, loading: LoadingDep, caller: WriterDep
) -> BundleRead:
    """Begin to load the paper's reproduction into the history; a second time changes nothing."""
    with transaction(engine) as session:
        if loading.read(session).state != "loaded":
            accounts.audit(session, by=caller, action="bundle.load")
    loading.begin(settings)
    with reading(engine) as session:
        return loading.read(session)
