from ib_core.datasets import UCI_NAMES
from ib_core.metrics import PRINTED_OVERHEADS
from ib_core.reproduction.claims import CLAIMS
from ib_core.reproduction.evidence import Evidence, Run
from ib_core.reproduction.plan import experiments
from ib_core.reproduction.published import (
    CLIPPED_MUSIC,
    printed_run_times,
    printed_uci_losses,
    profile_note,
    published_better,
    published_claims,
    published_words,
)
from ib_core.reproduction.recorded import recorded_evidence
from ib_core.reproduction.uci import judge_cells
from ib_core.reproduction.verdicts import Verdict


def test_the_printed_tables_are_whole():
    losses = printed_uci_losses()
    assert len(losses) == 121 * 10 * 2
    assert {name for name, _, _ in losses} == set(UCI_NAMES)
    assert losses["abalone", "eb", 3.0] == 12.30
    assert losses["car", "ib", 30.0] == 213.52


def test_run_times_are_those_the_metrics_know():
    for row in printed_run_times():
        known = PRINTED_OVERHEADS[row.dataset]
        assert round(known.measured * 100, 2) == row.measured
        assert (known.bound and round(known.bound * 100, 2)) == row.bound


def test_every_claim_has_a_rule_and_every_experiment_a_note():
    assert set(CLAIMS) == set(published_claims())
    known = {experiment.id for experiment in experiments()}
    assert set(CLIPPED_MUSIC) <= known
    assert all(profile_note(name) for name in known)


def test_the_paper_names_one_of_the_two_experiments_that_ib_does_not_win():
    said = {one.id: published_better(one.id) for one in experiments() if one.id != "uci"}
    assert [name for name, ib in said.items() if ib is False] == ["04_mnist_autoencoder_clip_1.0"]
    assert [name for name, ib in said.items() if ib is None] == ["16_piano_midi_clip_0.1"]
    assert "No winner is named" in published_words("16_piano_midi_clip_0.1")
    # What the sentence says of the recorded runs.
    means = {name: recorded_evidence().number(name, "ib", "mean_difference").value for name in said}
    assert [name for name, mean in means.items() if mean > 0] == [
        "04_mnist_autoencoder_clip_1.0",
        "16_piano_midi_clip_0.1",
    ]


def table(shift):
    return Evidence.of(
        Run("uci", dataset, method, lr, 1, loss + shift)
        for (dataset, method, lr), loss in printed_uci_losses().items()
    )


def test_the_printed_tables_agree_with_themselves_and_not_with_others():
    assert judge_cells(table(0.005)).verdict is Verdict.REPRODUCED
    assert judge_cells(table(0.5)).verdict is Verdict.DIFFERS
