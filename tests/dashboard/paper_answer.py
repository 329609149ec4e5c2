"""What the API would say of a few made-up runs."""

from functools import cache

from backend.paper import read_findings
from backend.schemas import PaperRead
from ib_core.reproduction.evidence import Evidence, Run
from ib_core.reproduction.findings import find
from tests.ib_core.reproduction.evidence import runs

EB = {0.5: 1.0, 5.0: 0.5, 50.0: 2.5, 500.0: 4.0}
IB = {0.5: 1.0, 5.0: 0.4, 50.0: 0.5, 500.0: 3.0}


@cache
def paper_answer() -> PaperRead:
    """Return JSB Chorales, plain and clipped, and a table of UCI: in both profiles and recorded."""
    found = [
        run
        for name in ("05_jsb_chorales", "06_jsb_chorales_clip_8.0")
        for method, losses in (("eb", EB), ("ib", IB))
        for run in runs(name, method, losses, spread=0.02)
    ]
    found += [
        Run("uci", "iris", method, lr, 1, loss, test_accuracy=accuracy)
        for method, accuracy in (("eb", 0.9), ("ib", 0.95))
        for lr, loss in ((0.1, 1.04), (1.0, 0.3))
    ]
    evidence = Evidence.of(found, {"JSB Chorales": 0.31})
    return read_findings(find(evidence, evidence, evidence))
