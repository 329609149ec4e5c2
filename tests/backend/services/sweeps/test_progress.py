"""What a sweep's trials add up to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.schemas import SweepState, TrialState
from backend.services.studies.study import PRECEDENCE, study_state
from backend.services.sweeps import Progress, state_of

counts = st.fixed_dictionaries({state: st.integers(0, 3) for state in TrialState})


def progress(fresh: int = 0, **states: int) -> Progress:
    found = Progress(fresh=fresh)
    found.counts |= {TrialState(name): count for name, count in states.items()}
    return found


@pytest.mark.parametrize(
    ("found", "cancelled", "state"),
    [
        (progress(queued=2), False, "queued"),
        (progress(queued=2, completed=3), False, "queued"),  # the three were reused
        (progress(queued=2, completed=3, fresh=1), False, "running"),
        (progress(queued=1, running=1), False, "running"),
        (progress(running=1, failed=5), False, "running"),
        (progress(completed=1, diverged=1), False, "completed"),
        (progress(diverged=2), False, "completed"),
        (progress(completed=9, failed=1), False, "failed"),
        (progress(completed=9, failed=1, cancelled=1), False, "failed"),
        (progress(completed=9, cancelled=1), False, "cancelled"),
        (progress(queued=1, running=1), True, "cancelled"),
        (progress(completed=1, failed=1), True, "cancelled"),
        (progress(completed=2), True, "completed"),
    ],
)
def test_states(found, cancelled, state) -> None:
    assert state_of(found, cancelled=cancelled) == state


@given(counts, st.integers(0, 5), st.booleans())
def test_only_good_trials_make_a_completed_sweep(by_state, fresh, cancelled) -> None:
    found = Progress(counts=by_state, fresh=fresh)
    state = state_of(found, cancelled=cancelled)
    bad = [s for s in TrialState if s not in ("completed", "diverged") and by_state[s]]
    assert (state is SweepState.COMPLETED) == (not bad)
    if state in (SweepState.QUEUED, SweepState.RUNNING):
        assert found.unfinished
        assert not cancelled


def test_every_state_is_counted_even_when_there_is_none() -> None:
    assert progress(queued=1).by_name() == dict.fromkeys(TrialState, 0) | {"queued": 1}


@given(st.lists(st.sampled_from(SweepState), min_size=1))
def test_a_study_is_what_matters_most_in_it(states) -> None:
    assert study_state(states) == min(states, key=PRECEDENCE.index)


def test_a_study_without_sweeps_has_no_state() -> None:
    assert study_state([]) is None
