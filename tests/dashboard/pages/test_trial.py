"""One trial."""

from dashboard.pages import trial
from tests.coroutines import run
from tests.dashboard.dispatch import text_of


def test_a_trial_is_drawn_with_its_outcome_and_no_longer_asked_for_once_it_ended(api):
    figure, outcome, state, paused = run(trial.draw(0, "log", "dark", 27))
    assert figure.layout.yaxis.type == "log"
    assert figure.layout.template.layout.paper_bgcolor == "#17191C"
    assert "at step 40 (loss)" in text_of(outcome)
    assert text_of(state) == "diverged"
    assert paused is True
