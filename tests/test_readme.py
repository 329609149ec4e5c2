"""What the README shows is executed, so that it stays true; see also test_docs."""

import re
from typing import Any

from tests.papers import ROOT, python_blocks

README = ROOT / "README.md"
#: So many bytes a newcomer reads in five minutes; the rest belongs into docs/.
LONGEST = 6_000


def run(*blocks: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for code in blocks:
        exec(compile(code, README, "exec"), found)
    return found


def test_it_stays_short() -> None:
    assert len(README.read_bytes()) <= LONGEST


def test_the_model_learns_at_a_rate_where_plain_sgd_explodes() -> None:
    model, _ = python_blocks(README)
    plain = model.replace(
        'ImplicitSGD(model, lr=10.0, output_loss="cross_entropy")',
        "torch.optim.SGD(model.parameters(), lr=10.0)",
    )
    assert plain != model
    said = re.search(r"ends at a loss of (\d+), the implicit steps at (\.\d+)", README.read_text())
    assert said is not None
    assert abs(run(plain)["loss"].item() / float(said[1]) - 1) < 0.2
    assert abs(run(model)["loss"].item() / float(said[2]) - 1) < 0.5
