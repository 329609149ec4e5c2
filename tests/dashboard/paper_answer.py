"""What the API would say of a few made-up runs."""

from functools import cache

from backend.paper import read_findings
from backend.schemas import PaperRead
from ib_core.reproduction.evidence import Evidence
from ib_core.reproduction.findings import find
from tests.ib_core.reproduction.evidence import runs

EB = {0.5: 1.0, 5.0: 0.5, 50.0: 2.5, 500.0: 4.0}
IB = {0.5: 1.0, 5.0: 0.4, 50.0: 0.5, 500.0: 3.0}


@cache
def paper_answer() -> PaperRead:
    """Return JSB Chorales run in both profiles and recorded; nothing else."""
    found = [
        *runs("05_jsb_chorales", "eb", EB, spread=0.02),
        *runs("05_jsb_chorales", "ib", IB, spread=0.02),
    ]
    evidence = Evidence.of(found, {"JSB Chorales": 0.31})
    return read_findings(find(evidence, evidence, evidence))
