"""Rows held out of the training set: the same for all, never trained on, and only where asked."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from ib_core import Data, Task, run_sweep
from ib_core.datasets import Split, load_dataset
from ib_core.errors import IBError, MisuseError
from ib_core.sweep import SweepSpec, TrialSpec, fingerprint, plan_shards, run_trials, specs_of
from ib_core.sweep.request import body_of, command_words, read_body
from ib_core.tasks import OWN_TASKS, build_workload, paper_task
from ib_core.tasks.randomness import hold_out
from ib_core.tasks.stacked_model import FetchedRows, Rows

HELD = {"validation": 0.2}
ADDRESS = "e8fea8c6c3d2752c63a02ba4a5d0b2b8a61d04ef709bdb84882604406523af99"


def trials_of(task="bundled/iris", **settings):
    settings = {"methods": ("eb", "ib"), "learning_rates": [0.1, 1.0], **settings}
    return SweepSpec.create(task, **{"seeds": [1, 2], "epochs": 2, "options": HELD, **settings})


def workload_of(task="bundled/iris", *, seeds=(1,), share=0.2, dataset=None):
    task = paper_task(task)
    recipe = task.recipe(validation=share)
    dataset = dataset or load_dataset(task.dataset)
    return build_workload(task, dataset, recipe, list(seeds), torch.device("cpu"))


@pytest.mark.parametrize(("rows", "share", "held"), [(10, 0.1, 1), (3, 0.01, 1), (1437, 0.5, 718)])
def test_every_row_is_either_trained_on_or_held_out(rows, share, held):
    kept, out = hold_out(rows, share)
    assert sorted([*kept.tolist(), *out.tolist()]) == list(range(rows))
    assert len(out) == held
    assert kept.tolist() == sorted(kept.tolist())


def test_one_row_cannot_be_shared_between_training_and_validation():
    with pytest.raises(MisuseError, match="at least 2 training rows; there are 1"):
        hold_out(1, 0.5)


def test_every_seed_has_the_same_rows_held_out():
    first, second = (workload_of(seeds=[seed]).validation for seed in (1, 7))
    whole = load_dataset("iris").train
    assert torch.equal(first.x, second.x)
    assert torch.equal(first.y, whole.y[hold_out(len(whole), 0.2)[1]])


def test_pieces_of_music_are_held_out_whole():
    workload = workload_of("music/procedural")
    whole = load_dataset("procedural_music").train
    kept, held = hold_out(len(whole), 0.2)
    assert workload.steps_per_epoch == len(kept)
    for mine, place in zip(workload.validation, held.tolist(), strict=True):
        assert torch.equal(mine, whole[place].float())


def train(dataset, monkeypatch):
    monkeypatch.setattr("ib_core.tasks.paper.load_dataset", lambda name: dataset)
    return run_trials(trials_of(learning_rates=[0.3]).expand())


def test_labels_of_held_out_rows_move_no_training_number(monkeypatch):
    data = load_dataset("iris")
    y = data.train.y.clone()
    held = hold_out(len(y), 0.2)[1]
    y[held] = (y[held] + 1) % 3
    before = train(data, monkeypatch)
    after = train(replace(data, train=Split(data.train.x, y)), monkeypatch)
    for one, two in zip(before, after, strict=True):
        for name in ("train_loss", "test_loss", "train_accuracy", "test_accuracy"):
            assert [getattr(p, name) for p in one.curve] == [getattr(p, name) for p in two.curve]
        assert one.validation_loss != two.validation_loss


def test_a_validation_loss_is_the_loss_on_those_rows():
    """The slow twin: the same weights, row by row, through the loss in its own words."""
    workload = workload_of()
    model = workload.model()
    found = workload.evaluate(model)
    x, y = workload.validation.x, workload.validation.y
    with torch.no_grad():
        outputs = [model(row.view(1, 1, -1))[0, 0] for row in x]
    losses = [F.cross_entropy(out, label) for out, label in zip(outputs, y, strict=True)]
    right = [float(out.argmax() == label) for out, label in zip(outputs, y, strict=True)]
    assert found.validation_loss.item() == pytest.approx(
        torch.stack(losses).mean().item(), rel=1e-5
    )
    assert found.validation_accuracy.item() == pytest.approx(sum(right) / len(right))


@pytest.mark.parametrize("task", ["bundled/iris", "music/procedural"])
def test_a_stack_finds_what_one_alone_finds(task):
    trials = trials_of(task, epochs=1, learning_rates=[0.1, 3.0], seeds=[1]).expand()
    for stacked, trial in zip(run_trials(trials), trials, strict=True):
        (alone,) = run_trials([trial])
        assert stacked.validation_loss == pytest.approx(alone.validation_loss, rel=1e-4)
        assert len(stacked.curve) == len(alone.curve)
        assert all(point.validation_loss is not None for point in stacked.curve)


def test_a_trial_that_is_lost_loses_its_validation_loss_too():
    (result,) = run_trials(
        trials_of(
            "digits_autoencoder", methods=["eb"], learning_rates=[1e12], seeds=[1], epochs=1
        ).expand()
    )
    assert result.outcome == "diverged"
    assert result.validation_loss != result.validation_loss
    assert result.validation_accuracy is None


def test_nothing_held_out_leaves_every_address_as_it_was():
    without = trials_of(options={}).expand()[0]
    assert "validation" not in without.as_dict()["options"]
    assert without == trials_of(options={"validation": 0}).expand()[0]
    assert without == TrialSpec.from_dict(without.as_dict())
    # Of a time before anything could be held out; `test_shipped` has thousands more.
    assert fingerprint(without, "d") == ADDRESS


def test_a_share_is_part_of_the_address_and_of_the_stack():
    trials = [
        trials_of(methods=["eb"], learning_rates=[1.0], seeds=[1], options=options).expand()[0]
        for options in ({}, {"validation": 0.1}, {"validation": 0.2})
    ]
    assert len({fingerprint(trial, "d") for trial in trials}) == 3
    assert len(plan_shards(trials)) == 3
    assert [TrialSpec.from_dict(trial.as_dict()) for trial in trials] == trials


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"options": {"validation": 0.6}}, "must be a number from 0 to 0.5; got 0.6"),
        ({"options": {"validation": -0.1}}, "must be a number from 0 to 0.5"),
        ({"profile": "authors", "options": HELD}, "The authors trained on all rows"),
        ({"task": None, "preset": "paper/05_jsb_chorales", "options": HELD}, "paper's studies"),
    ],
)
def test_what_cannot_be_held_out_is_refused(body, sentence):
    with pytest.raises(IBError, match=sentence) as caught:
        specs_of({"task": "digits_mlp", **body})
    assert caught.value.field == "options.validation"


def test_a_share_is_typed_and_read_again():
    body = read_body({"task": "digits_mlp", "options": {"validation": "0.1"}}, typed=True)
    assert body["options"] == {"validation": 0.1}
    assert command_words(body) == ["digits_mlp", "--validation", "0.1"]
    (spec,) = specs_of(body)
    assert body_of(spec.as_dict())["options"]["validation"] == 0.1
    assert "options" not in read_body({"options": {"validation": "0"}}, typed=True)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        return self.layer(x)


X = torch.linspace(-1, 1, 40 * 4).view(40, 4).sin()
Y = torch.arange(40) % 3


@pytest.fixture(autouse=True)
def _forget(monkeypatch):
    monkeypatch.setattr(OWN_TASKS, "_here", dict(OWN_TASKS))


def own_result(data, **options):
    task = Task(Net, data, loss=F.cross_entropy, batch_size=10, epochs=2)
    (result,) = run_sweep(task, ["eb"], learning_rates=[0.1], seeds=1, lanes=1, options=options)
    return result


def test_a_task_of_ones_own_brings_rows_for_it_or_has_some_held_out():
    brought = own_result(Data(train=(X, Y), validation=(X[:7], Y[:7])))
    assert brought.validation_loss == brought.curve[-1].validation_loss is not None
    held = own_result(Data(train=(X, Y)), **HELD)
    kept, out = hold_out(40, 0.2)
    cut = own_result(Data(train=(X[kept], Y[kept]), validation=(X[out], Y[out])))
    assert held.train_loss == cut.train_loss == held.test_loss
    assert held.validation_loss == cut.validation_loss
    assert own_result(Data(train=(X, Y))).validation_loss is None


def test_rows_too_many_for_memory_are_held_out_without_being_read():
    pairs = list(zip(X, Y, strict=True))
    fetched = FetchedRows((X[:1],), Y[:1], pairs, torch.device("cpu"))
    kept, _ = hold_out(40, 0.2)
    part = fetched.part(kept)
    assert len(part) == len(kept)
    assert torch.equal(part.between(0, 40)[1], Rows((X,), Y).part(kept).y)


def test_a_table_shows_validation_where_there_is_one():
    settings = {"learning_rates": [0.1], "seeds": 1, "epochs": 1, "lanes": 1}
    held = run_sweep("bundled/iris", ["eb"], options=HELD, **settings)
    assert "validation_loss" in str(held).splitlines()[0]
    assert "<th>validation_loss</th>" in held._repr_html_()
    assert held.rows[0]["validation_accuracy"] is not None
    assert "validation_loss" not in str(run_sweep("bundled/iris", ["eb"], **settings))
