"""What can be run."""

from fastapi import APIRouter

from backend.deps import CallerDep
from backend.routes.documented import errors
from backend.schemas import CatalogRead
from backend.services import catalog

router = APIRouter(prefix="/api/catalog", tags=["catalog"])


@router.get("", responses=errors())
def get_catalog(_: CallerDep) -> CatalogRead:
    """Return tasks, methods, activations, presets and the limits of a sweep."""
    return catalog.read()
