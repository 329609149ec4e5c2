"""What the README shows is executed, so that it stays true; see also test_docs."""

import re
from typing import Any

from ib_core.reproduction.bundle import Bundle, shipped_folder
from ib_core.reproduction.evidence import Evidence, runs_of
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
    words = r"ends at a loss of (\d+) or more, the implicit steps at (\.\d+)"
    said = re.search(words, README.read_text())
    assert said is not None
    assert run(plain)["loss"].item() > float(said[1])  # which number is up to the processor
    assert abs(run(model)["loss"].item() / float(said[2]) - 1) < 0.5


def test_the_picture_s_words_are_those_of_the_bundle() -> None:
    said = re.search(
        r"(\d) epochs, mean ± one standard deviation of (\d) seeds\. Explicit\s+backpropagation "
        r"\(EB\) is at its best at the lowest rate, (\S+); implicit \(IB\) beats that best from "
        r"(\d+) to (\d+), and\s+at (\d+) its mean loss is (\S+) where EB's is (\S+)\. From",
        README.read_text("utf-8"),
    )
    assert said is not None
    epochs, seeds, lowest, first, last, high, ib_there, eb_there = map(float, said.groups())
    results = Bundle(shipped_folder()).results.values()
    facts = Evidence.of(runs_of(results, "text")).facts["05_jsb_chorales"]
    eb, ib = ({one.lr: one for one in facts[name]} for name in ("eb", "ib"))
    assert {(one.n, one.train.non_finite) for one in (*eb.values(), *ib.values())} == {(seeds, 0)}
    best = min(eb, key=lambda lr: eb[lr].train.mean or 0.0)
    assert best == lowest == min(eb)
    better = [lr for lr in ib if (ib[lr].train.mean or 0.0) < (eb[best].train.mean or 0.0)]
    assert (min(better), max(better), max(ib)) == (first, last, high)
    for curve, there in ((ib, ib_there), (eb, eb_there)):
        assert abs((curve[high].train.mean or 0.0) - there) <= 0.005
    spec = next(one.spec for one in results if one.spec.task == "music/jsb_chorales")
    assert spec.epochs == epochs
