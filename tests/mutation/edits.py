"""Every fault the tests are held to."""

from tests.mutation import (
    edits_elsewhere,
    edits_learning,
    edits_reading,
    edits_running,
    edits_stored,
    edits_web,
)

EDITS = (
    *edits_learning.EDITS,
    *edits_reading.EDITS,
    *edits_running.EDITS,
    *edits_stored.EDITS,
    *edits_web.EDITS,
    *edits_elsewhere.EDITS,
)
