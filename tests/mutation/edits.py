"""Every fault the tests are held to."""

from tests.mutation import (
    edits_dashboard,
    edits_learning,
    edits_leases,
    edits_numbers,
    edits_services,
    edits_web,
    edits_worker,
)

EDITS = (
    *edits_learning.EDITS,
    *edits_numbers.EDITS,
    *edits_leases.EDITS,
    *edits_services.EDITS,
    *edits_web.EDITS,
    *edits_worker.EDITS,
    *edits_dashboard.EDITS,
)
