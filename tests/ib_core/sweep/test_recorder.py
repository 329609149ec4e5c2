"""Recording a stack: right numbers, the same for a member as alone, and nothing changed by it."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from ib_core.layers import ImplicitLinear, ImplicitRNN, twice_differentiable
from ib_core.own import enter_task
from ib_core.sweep import Recording, TrialSpec, Wish, fingerprint, run_trials, specs_of
from ib_core.sweep.cost import SAMPLE_ROWS
from ib_core.sweep.recorder import largest_curvature
from ib_core.tasks import LOSSES, find_task
from ib_core.tasks.randomness import evenly
from tests.ib_core.own.models import task_of

IRIS = {"task": "bundled/iris", "epochs": 2, "batch_size": 25, "seeds": [1, 2]}


def trials(**changes) -> list[TrialSpec]:
    body = {**IRIS, "methods": ["eb", "ib"], "learning_rates": [0.1, 3.0], **changes}
    return [trial for spec in specs_of(body) for trial in spec.expand()]


def trials_of(body: dict[str, Any]) -> list[TrialSpec]:
    return [trial for spec in specs_of(body) for trial in spec.expand()]


def watched(given: list[TrialSpec], *what: str) -> list[TrialSpec]:
    return [replace(trial, wish=Wish(what)) for trial in given]


def hessian(loss: Callable[[Tensor], Tensor], at: Tensor) -> np.ndarray:
    return torch.autograd.functional.hessian(loss, at).detach().numpy()


@pytest.mark.parametrize("activation", ["arctan", "tanh", "softplus", "smoothstep"])
def test_sharpness_is_the_largest_eigenvalue_of_the_whole_hessian(activation) -> None:
    torch.manual_seed(3)
    members, x, y = 3, torch.randn(12, 4), torch.randint(0, 3, (12,))
    stack = nn.Sequential(
        ImplicitLinear(4, 5, activation, members=members),
        ImplicitLinear(5, 3, "linear", members=members),
    ).double()
    for layer in stack:
        layer.implicit = True
    shapes = [parameter.shape[1:] for parameter in stack.parameters()]
    x = x.double().expand(members, *x.shape)
    with twice_differentiable(stack):
        outputs = stack(x)
        losses = LOSSES["cross_entropy"].twice_differentiable_mean(outputs, y.expand(members, -1))
        found, _ = largest_curvature(losses, list(stack.parameters()))

    for member in range(members):
        start = torch.cat([p[member].flatten() for p in stack.parameters()]).detach()

        def loss(theta: Tensor, x: Tensor = x[member]) -> Tensor:
            parts = theta.split([shape.numel() for shape in shapes])
            w1, b1, w2, b2 = (part.view(shape) for part, shape in zip(parts, shapes, strict=True))
            hidden = stack[0].activation.value(x @ w1.T + b1)
            return nn.functional.cross_entropy(hidden @ w2.T + b2, y)

        exact = np.linalg.eigvalsh(hessian(loss, start))[-1]
        assert found[member].item() == pytest.approx(exact, rel=0.01)


def test_where_the_steepest_direction_goes_down_the_largest_eigenvalue_is_still_found() -> None:
    theta = nn.Parameter(torch.zeros(2, 3))
    curvatures = torch.tensor([[-9.0, 2.0, 1.0], [-1.0, 4.0, -3.0]])
    found, _ = largest_curvature((curvatures * theta.square()).sum(1) / 2, [theta])
    assert found.tolist() == pytest.approx([2.0, 4.0], rel=0.01)


def test_recurrent_layers_and_the_losses_of_music_have_right_second_derivatives() -> None:
    torch.manual_seed(1)
    layer = ImplicitRNN(2, 3, "arctan", members=2).double()
    x = torch.randn(2, 1, 4, 2, dtype=torch.float64)
    once = layer(x)
    with twice_differentiable(layer):
        twice = layer(x)
    torch.testing.assert_close(once, twice)
    for name, kind in LOSSES.items():
        outputs = torch.randn(2, 6, 5, dtype=torch.float64).atan().requires_grad_()
        targets = torch.rand(2, 6, 5).round().double()
        if kind.classes:
            targets = torch.randint(0, 5, (2, 6))
        once = kind.per_row(outputs, targets).mean(-1)
        twice = kind.twice_differentiable_mean(outputs, targets)
        torch.testing.assert_close(once, twice)
        gradients = [torch.autograd.grad(loss.sum(), outputs)[0] for loss in (once, twice)]
        torch.testing.assert_close(*gradients, msg=name)


def test_on_the_quadratic_steps_grow_exactly_above_two_over_the_rate() -> None:
    body = {"task": "toy/quadratic", "methods": ["eb"], "learning_rates": [1.9, 2.1], "seeds": [1]}
    given = [trial for spec in specs_of(body) for trial in spec.expand()]
    for trial, result in zip(given, run_trials(watched(given, "norms", "sharpness")), strict=True):
        recording = result.recording
        sharpness = recording.sharp[0, 1]
        weights = recording.of_layers("weights")[:, 0]
        moves = recording.of_layers("moves")[1:, 0]
        assert (moves[-1] > moves[0]) == (sharpness > 2 / trial.lr)
        assert np.isfinite(weights).all()


def test_norms_are_those_of_a_plain_loop() -> None:
    (trial,) = trials(methods=["eb"], learning_rates=[0.5], seeds=[1])
    recording = run_trials(watched([trial], "norms"))[0].recording
    assert recording is not None

    from ib_core.sweep.engine import _StackRun
    from ib_core.sweep.machine import choose_device
    from ib_core.sweep.result import SILENT

    run = _StackRun([trial], choose_device("cpu"), SILENT)
    model = copy.deepcopy(run.model)
    layers = list(recording.layers)
    row = 0
    for _ in range(trial.epochs):
        run.workload.begin_epoch()
        for step in range(run.workload.steps_per_epoch):
            row += 1
            run.workload.load_batch(step)
            loss = run.workload.losses(model)
            named = dict(model.named_parameters())
            gradients = torch.autograd.grad(loss.sum(), list(named.values()))
            assert recording.losses[row] == pytest.approx(loss.item(), rel=1e-4)
            with torch.no_grad():
                for parameter, gradient in zip(named.values(), gradients, strict=True):
                    parameter -= trial.lr * gradient
            for place, layer in enumerate(layers):
                mine = [
                    (p, g)
                    for (name, p), g in zip(named.items(), gradients, strict=True)
                    if name.startswith(layer + ".")
                ]
                norm = torch.cat([g.flatten() for _, g in mine]).norm().item()
                weight = torch.cat([p.detach().flatten() for p, _ in mine]).norm().item()
                found = {w: recording.of_layers(w)[row, place] for w in ("gradients", "moves")}
                assert found["gradients"] == pytest.approx(norm, rel=1e-3)
                assert found["moves"] == pytest.approx(trial.lr * norm, rel=1e-3)
                assert recording.of_layers("weights")[row, place] == pytest.approx(weight, rel=1e-4)


def test_recording_changes_no_number_and_no_address() -> None:
    plain = trials(methods=["eb", "ib", "adam"])
    asked = watched(plain, "norms", "sharpness")
    assert [fingerprint(t, "x") for t in plain] == [fingerprint(t, "x") for t in asked]
    assert plain == asked
    for one, other in zip(run_trials(plain), run_trials(asked), strict=True):
        assert repr(one.curve) == repr(other.curve)
        assert one.recording is None
        assert other.recording is not None


def test_a_members_recording_is_that_of_the_same_trial_alone() -> None:
    given = watched(trials(methods=["eb", "ib", "ib_plus"]), "norms", "sharpness")
    together = run_trials(given)
    for trial, member in zip(given, together, strict=True):
        alone = run_trials([trial])[0]
        for one, other in ((member.recording.rows, alone.recording.rows),):
            np.testing.assert_allclose(one, other, rtol=2e-2, atol=1e-4)
        np.testing.assert_allclose(member.recording.sharp, alone.recording.sharp, rtol=0.05)


def test_members_that_break_keep_their_rows_and_others_go_on() -> None:
    body = {"task": "toy/quadratic", "methods": ["eb"], "learning_rates": [0.5, 1e12], "seeds": [1]}
    given = [trial for spec in specs_of({**body, "epochs": 30}) for trial in spec.expand()]
    sound, broken = run_trials(watched(given, "norms"))
    assert broken.outcome == "diverged"
    assert broken.recording.break_row() is not None
    assert not np.isfinite(broken.recording.losses[-1])
    assert len(sound.recording.rows) > len(broken.recording.rows)
    assert sound.recording.steps.tolist() == list(range(len(sound.recording.rows)))


def test_damping_is_the_mean_of_alpha_over_the_explicit_alpha() -> None:
    (trial,) = trials(methods=["ib"], learning_rates=[20.0], seeds=[1])
    result = run_trials(watched([trial], "norms"))[0]
    damping = result.recording.of_layers("damping")
    assert np.isnan(damping[0]).all()
    first = damping[1]
    assert 0 < first[0] < 0.9  # a hidden layer at a high rate
    assert first[-1] == pytest.approx(1.0)  # a linear output steps explicitly
    explicit = run_trials(watched(trials(methods=["eb"], seeds=[1]), "norms"))[0]
    assert np.isnan(explicit.recording.of_layers("damping")).all()


def test_only_who_asked_gets_a_recording() -> None:
    one, other = trials(methods=["eb"], learning_rates=[0.1], seeds=[1, 2])
    first, second = run_trials([replace(one, wish=Wish(("norms",))), other])
    assert first.recording is not None
    assert second.recording is None


@pytest.mark.parametrize("words", ["norms, sharpness", ["sharpness", "norms"]])
def test_a_sweep_says_what_to_record(words) -> None:
    (spec,) = specs_of({**IRIS, "record": words})
    assert spec.record == ("norms", "sharpness")
    assert all(trial.wish == Wish(("norms", "sharpness")) for trial in spec.expand())


@pytest.mark.parametrize(
    ("model", "method"),
    [
        ("batch norm", "torch.optim.SGD"),
        ("attention", "eb"),
        ("lstm", "torch.optim.Adam"),
        ("implicit rnn", "ib"),
        ("tied", "eb"),
        ("convolution", "ib"),
        ("dropout", "adam"),
    ],
)
def test_anybodys_model_is_recorded_alone_as_in_a_stack_and_not_disturbed(model, method) -> None:
    name = enter_task(task_of(model), f"recorded:{model}", "code", {}).name
    body = {"task": name, "methods": [method], "learning_rates": [0.05], "seeds": 2, "epochs": 1}
    plain = [trial for spec in specs_of(body) for trial in spec.expand()]
    given = watched(plain, "norms", "sharpness", "activations")
    together = run_trials(given)
    assert [repr(one.curve) for one in together] == [repr(one.curve) for one in run_trials(plain)]
    alone = run_trials(given[:1])[0].recording
    member = together[0].recording
    assert member.note == alone.note == ""
    np.testing.assert_allclose(member.rows, alone.rows, rtol=1e-2, atol=1e-4)
    np.testing.assert_allclose(member.sharp, alone.sharp, rtol=0.05)
    assert np.isfinite(member.sharp).all()
    assert member.outputs == alone.outputs
    np.testing.assert_allclose(member.sizes, alone.sizes, rtol=1e-2, atol=1e-4)


def test_activations_are_the_outputs_of_a_plain_loop() -> None:
    """Roots of mean squares on the sample, and of the way since the start, of every layer."""
    body = {"task": "digits_wide", "methods": ["eb"], "learning_rates": [0.05, 0.5], "seeds": [4]}
    body |= {"epochs": 4, "batch_size": 2000, "vary": {"norm": ["batch"], "width": [12]}}
    (spec,) = specs_of({**body, "record": "activations"})
    for result in run_trials(spec.expand()):
        task = find_task("digits_wide")
        torch.manual_seed(4)
        model, (x, y) = task.model(width=12, norm="batch"), task.data().train
        optimizer = torch.optim.SGD(model.parameters(), lr=result.spec.lr)
        sample, rows, first = x[evenly(len(x), SAMPLE_ROWS)], [], []
        for step in range(5):
            with torch.no_grad():
                model.eval()
                one = model.layers[0](sample)
                two = model.layers[1](model.norms[0](one).clamp(min=0))
                outputs = [one, two, model(sample)]
            first = first or outputs
            ways = [now - before for now, before in zip(outputs, first, strict=True)]
            sizes = [float(part.square().mean().sqrt()) for part in (*outputs, *ways)]
            rows.append([step, *sizes])
            optimizer.zero_grad()
            task.loss(model.train()(x), y).backward()
            optimizer.step()
        assert result.recording.outputs == ("layers.0", "layers.1", "output")
        np.testing.assert_allclose(result.recording.sizes, rows[:4], rtol=1e-3, atol=1e-6)


def test_what_shares_its_matrix_is_looked_at_and_members_that_leave_take_theirs_along() -> None:
    body = {"task": "gpt_bytes", "methods": ["eb"], "learning_rates": [0.1, 1e12], "seeds": [1]}
    body |= {"epochs": 3, "batch_size": 20, "vary": {"width": [8], "depth": [1]}}
    sound, broken = run_trials(watched(trials_of(body), "activations"))
    assert sound.recording.outputs[0] == "symbol"
    assert sound.recording.outputs[-1] == "output"
    assert broken.outcome == "diverged"
    assert len(broken.recording.sizes) < len(sound.recording.sizes)
    np.testing.assert_allclose(broken.recording.sizes[0], sound.recording.sizes[0])
    assert np.isfinite(sound.recording.sizes).all()
    (alone,) = run_trials(watched(trials_of({**body, "learning_rates": [0.1]}), "activations"))
    np.testing.assert_allclose(alone.recording.sizes, sound.recording.sizes, rtol=1e-3, atol=1e-6)


def test_the_last_layer_stands_for_what_the_model_returns() -> None:
    """muP divides the scores of a GPT by the width after its output layer."""
    body = {"task": "gpt_bytes", "methods": ["adam"], "learning_rates": [0.001], "seeds": [1]}
    body |= {"epochs": 1, "batch_size": 100, "vary": {"width": [64], "scaling": ["mup_adam"]}}
    (result,) = run_trials(watched(trials_of(body), "activations"))
    task = find_task("gpt_bytes")
    torch.manual_seed(1)
    model, (x, _) = task.model(width=64, scaling="mup_adam"), task.data().train
    with torch.no_grad():
        scores = model.eval()(x[evenly(len(x), SAMPLE_ROWS)])
    place = result.recording.outputs.index("output")
    size = float(scores.double().square().mean().sqrt())
    assert result.recording.sizes[0, 1 + place] == pytest.approx(size, rel=1e-5)


def test_the_paper_s_stacks_are_looked_at_too_and_bytes_keep_it() -> None:
    given = watched(trials(), "norms", "activations")
    together, plain = run_trials(given), run_trials(trials())
    assert [repr(one.curve) for one in together] == [repr(one.curve) for one in plain]
    alone = run_trials(given[:1])[0].recording
    member = together[0].recording
    assert len(member.outputs) == len(member.layers)
    assert (member.sizes[0, 1:] > 0).tolist() == [True] * 4 + [False] * 4  # no way at the start
    np.testing.assert_allclose(member.sizes, alone.sizes, rtol=1e-2, atol=1e-5)
    again = Recording.from_bytes(member.to_bytes())
    assert (again.outputs, again.holds(["activations", "norms"])) == (member.outputs, True)
    np.testing.assert_allclose(again.sizes, member.sizes, rtol=1e-6)
    np.testing.assert_allclose(again.rows, member.rows, rtol=1e-6)
    names, lines = again.table()
    (start, *_) = [dict(zip(names, line, strict=True)) for line in lines]
    assert start[f"size {again.outputs[0]}"] == pytest.approx(member.sizes[0, 1], rel=1e-6)
