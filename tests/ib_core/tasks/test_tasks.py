import pytest
import torch

from ib_core.datasets import DATASETS, load_dataset
from ib_core.errors import IBError
from ib_core.tasks import TASKS, build_workload, find_task, parameter_count
from ib_core.tasks.losses import LOSSES, accuracy
from ib_core.tasks.randomness import streams

OFFLINE = [
    "digits_mlp",
    "digits_autoencoder",
    "digits_conv",
    "music/procedural",
    "bundled/iris",
    "bundled/wine",
    "bundled/breast_cancer",
    "toy/quadratic",
]


@pytest.mark.parametrize(
    ("name", "profile", "count"),
    [
        ("mnist_classifier", "text", 21_840),
        ("mnist_classifier", "authors", 21_840),
        ("mnist_autoencoder", "text", 1_152_614),
        ("music/jsb_chorales", "text", 143_188),
        ("music/nottingham", "authors", 150_932),
    ],
)
def test_parameters_are_counted_as_in_the_paper(name, profile, count):
    task = find_task(name)
    assert parameter_count(task, task.recipe(profile)) == count


@pytest.mark.parametrize("profile", ["text", "authors"])
@pytest.mark.parametrize("name", OFFLINE)
def test_every_offline_task_builds_the_network_it_counts(name, profile):
    task = find_task(name)
    recipe = task.recipe(profile)
    workload = build_workload(task, load_dataset(task.dataset), recipe, [1], torch.device("cpu"))
    model = workload.model()
    assert sum(p[0].numel() for p in model.parameters()) == parameter_count(task, recipe)
    workload.begin_epoch()
    workload.load_batch(0)
    assert torch.isfinite(workload.losses(model)).all()
    assert torch.isfinite(workload.evaluate(model).train_loss).all()


def test_every_uci_name_is_a_task_with_a_data_set():
    names = [name for name in TASKS if name.startswith("uci/")]
    assert len(names) == 121
    assert all(TASKS[name].dataset in DATASETS for name in names)


def test_unknown_tasks_are_answered_with_those_that_exist():
    with pytest.raises(IBError, match="digits_mlp"):
        find_task("digits")


def test_width_and_depth_change_the_network():
    task = find_task("digits_mlp")
    assert task.widths(task.recipe(width=7, depth=2)) == (64, 7, 7, 10)


def test_weights_differ_by_seed_and_streams_do_not_overlap():
    first, second = streams(1), streams(2)
    draws = [torch.rand(8, generator=g) for g in (first.weights, first.order, second.weights)]
    assert not torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


def test_glorot_bounds_and_zero_biases_in_the_text_profile():
    task = find_task("bundled/wine")
    dataset = load_dataset("wine")
    text, authors = (
        build_workload(task, dataset, task.recipe(profile), [1], torch.device("cpu")).model()
        for profile in ("text", "authors")
    )
    first = text.layers[0]
    assert first.weight.abs().max() <= (6 / 26) ** 0.5
    assert (first.bias == 0).all()
    assert authors.layers[0].weight.abs().max() <= 0.1
    assert authors.layers[0].bias.abs().max() > 0
    assert authors.layers[3].weight.abs().max() > 0.1


@pytest.mark.parametrize("name", ["cross_entropy", "note_loss"])
def test_hand_written_gradients_equal_autograd(name):
    torch.manual_seed(1)
    outputs = torch.randn(2, 5, 4, dtype=torch.float64, requires_grad=True)
    twin = outputs.detach().clone().requires_grad_()
    weights = torch.rand(2, 5, dtype=torch.float64)
    if name == "cross_entropy":
        targets = torch.randint(0, 4, (2, 5))
        plain = torch.nn.functional.cross_entropy(
            twin.flatten(0, 1), targets.flatten(), reduction="none"
        ).view(2, 5)
    else:
        targets = torch.randint(0, 2, (2, 5, 4)).double()
        p = (twin.atan() + torch.pi / 2) / torch.pi
        plain = torch.nn.functional.binary_cross_entropy(p, targets, reduction="none").mean(-1)
    ours = LOSSES[name].per_row(outputs if name == "cross_entropy" else outputs.atan(), targets)
    torch.testing.assert_close(ours, plain)
    (ours * weights).sum().backward()
    (plain * weights).sum().backward()
    torch.testing.assert_close(outputs.grad, twin.grad)


def test_a_row_of_nan_is_never_a_right_answer():
    outputs = torch.tensor([[[float("nan"), 0.0], [1.0, 0.0]]])
    assert accuracy(outputs, torch.tensor([[0, 0]])).tolist() == [0.5]


def test_note_loss_passes_nan_on_instead_of_raising():
    loss = LOSSES["note_loss"].per_row(torch.full((1, 1, 88), float("nan")), torch.zeros(1, 1, 88))
    assert loss.isnan().all()


def workload_of(name, profile="text", seeds=(1,)):
    task = find_task(name)
    dataset = load_dataset(task.dataset)
    recipe = task.recipe(profile)
    return build_workload(task, dataset, recipe, list(seeds), torch.device("cpu")), dataset


def test_an_epoch_feeds_every_row_once_in_the_seed_s_own_order():
    workload, dataset = workload_of("bundled/iris", seeds=(1, 2))
    seen = []

    def model(x):
        seen.append(x)
        return torch.zeros(*x.shape[:2], 3)

    workload.begin_epoch()
    for step in range(workload.steps_per_epoch):
        workload.load_batch(step)
        workload.losses(model)
    assert len(seen) > 1
    first, second = torch.cat(seen, dim=1).tolist()
    assert sorted(first) == sorted(second) == sorted(dataset.train.x.tolist())
    assert first != second


def test_dropout_keeps_half_of_the_units_and_doubles_them():
    workload, _ = workload_of("digits_conv", seeds=(1, 2))
    kept = []

    def model(x, channel_mask, unit_mask):
        assert channel_mask is None  # the text mentions no other dropout
        kept.append(unit_mask)
        return torch.zeros(*x.shape[:2], 10)

    workload.begin_epoch()
    workload.load_batch(0)
    workload.losses(model)
    assert set(kept[0].unique().tolist()) == {0.0, 2.0}
    assert kept[0].mean().item() == pytest.approx(1.0, abs=0.1)
    assert not torch.equal(kept[0][0], kept[0][1])


@pytest.mark.parametrize("name", ["bundled/iris", "digits_conv"])
def test_test_losses_and_accuracies_are_those_of_the_test_rows(name):
    workload, dataset = workload_of(name)
    model = workload.model()
    found = workload.evaluate(model)
    for split, loss, share in (
        (dataset.train, found.train_loss, found.train_accuracy),
        (dataset.test, found.test_loss, found.test_accuracy),
    ):
        x = split.x.view(len(split.x), *workload.train.x.shape[1:])
        with torch.no_grad():
            outputs = model(x.unsqueeze(0))[0]
        expected = torch.nn.functional.cross_entropy(outputs, split.y)
        torch.testing.assert_close(loss[0], expected)
        assert share.item() == pytest.approx((outputs.argmax(-1) == split.y).double().mean().item())
    assert found.train_loss.item() != found.test_loss.item()


def test_a_piece_is_learnt_by_telling_its_next_frame():
    workload, _ = workload_of("music/procedural")
    workload.begin_epoch()
    workload.load_batch(0)
    piece = workload.train[0]

    def tells(frames):
        certain = (2 * frames - 1) * torch.pi / 2  # the output that means: I am sure
        return lambda x: certain.view(1, 1, *x.shape[-2:])

    assert workload.losses(tells(piece[1:])).item() == pytest.approx(0.0, abs=1e-6)
    assert workload.losses(tells(piece[:-1])).item() > 0.1


def test_the_authors_music_loss_is_in_effect_the_last_frames_divided_by_the_length():
    task = find_task("music/procedural")
    dataset = load_dataset(task.dataset)
    workload = build_workload(task, dataset, task.recipe("authors"), [1], torch.device("cpu"))
    weights = workload._weights(torch.tensor([3]), 0, 3)[0]
    loss = torch.tensor([3.0, 5.0, 7.0]) @ weights
    expected = ((3.0 / 3 + 5.0) / 3 + 7.0) / 3
    assert loss.item() == pytest.approx(expected)


@pytest.mark.parametrize("profile", ["text", "authors"])
@pytest.mark.parametrize("room", [1, 3_000, 10**7])
def test_music_is_measured_as_piece_by_piece_however_many_frames_fit(profile, room, monkeypatch):
    task = find_task("music/procedural")
    dataset, seeds = load_dataset(task.dataset), [1, 2]
    workload = build_workload(task, dataset, task.recipe(profile), seeds, torch.device("cpu"))
    model = workload.model()
    pieces = [piece[:length] for piece, length in zip(workload.train, (9, 4, 30, 2), strict=False)]
    alone = []
    for piece in pieces:
        workload._piece = piece
        alone.append(workload.losses(model).detach())
    monkeypatch.setattr("ib_core.tasks.workloads.EVALUATION_STATES", room)
    together = workload._measure(model, pieces)
    torch.testing.assert_close(together, torch.stack(alone).mean(0))
