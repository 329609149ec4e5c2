from dataclasses import replace

import pytest

from backend.paper.terminal import print_checks
from ib_core.datasets import Card
from ib_core.reproduction.plan import PLAN
from ib_core.reproduction.verify import Check, Drawn
from ib_core.sweep.result import Outcome
from tests.backend.paper.bundles import result_of

CARD = Card("0" * 64, rows=100, test_rows=10, inputs=1, outputs=2)


@pytest.fixture
def kept():
    return result_of(next(trial for _, trial in PLAN["text/uci"].trials()), 0.5, accuracy=0.5)


def said(capsys, *checks, too_long=0):
    print_checks(checks, Drawn(tuple(one.kept for one in checks), {}, too_long))
    return capsys.readouterr().out


def chaotic(kept):
    wild = tuple(replace(kept, train_loss=loss) for loss in (0.7, 0.9, 0.4))
    return Check(kept, replace(kept, train_loss=0.6), wild, CARD)


def test_the_number_that_decides_is_shown(capsys, kept):
    diverged = replace(kept, outcome=Outcome.DIVERGED)
    text = said(capsys, Check(kept, diverged, (diverged,) * 3, CARD))
    assert "outcome" in text
    assert "completed  diverged" in text
    assert "differing 1" in text


def test_how_many_were_tested_is_said_where_some_are_chaotic(capsys, kept):
    text = said(capsys, chaotic(kept), Check(kept, kept, (), CARD))
    assert "2 trials trained again: agreeing 1, chaotic 1, differing 0." in text
    assert "1 of the 2 were tested" in text


def test_nothing_is_confirmed_where_all_are_chaotic(capsys, kept):
    text = said(capsys, chaotic(kept), too_long=3)
    assert "nothing was confirmed" in text
    assert "3 were passed over" in text
