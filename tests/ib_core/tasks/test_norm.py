"""The norm of a bundled task does what its name says, alone and in a stack."""

from collections.abc import Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ib_core.sweep import run_sweep, specs_of
from ib_core.tasks import find_task
from ib_core.tasks.modern import BASE_WIDTH

RATES, EPOCHS, BATCH = [0.02, 0.1], 2, 600


@pytest.fixture
def one_thread() -> Iterator[None]:
    """A lane trains with one; a loop with more adds its products in another order."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def by_hand(model: nn.Module, x: Tensor, norm: str) -> Tensor:
    """Return the scores of a batch in training, every norm as its formula says."""
    sides = {"layer": 1, "batch": 0}
    for layer, gains in zip(model.layers, model.norms, strict=True):
        x = x @ layer.weight.T + layer.bias
        if norm in sides:
            over = sides[norm]
            centred = x - x.mean(over, keepdim=True)
            x = centred / (centred.square().mean(over, keepdim=True) + 1e-5).sqrt()
            x = x * gains.weight + gains.bias
        x = x.clamp(min=0)
    scores: Tensor = x @ model.output.weight.T + model.output.bias
    return scores


def built(norm: str, **values: object) -> nn.Module:
    torch.manual_seed(3)
    return find_task("digits_wide").model(norm=norm, **values)


@pytest.mark.parametrize("norm", ["none", "layer", "batch"])
def test_a_norm_is_its_formula(norm: str) -> None:
    model, (x, _) = built(norm, width=12), find_task("digits_wide").data().train
    with torch.no_grad():
        for parameter in model.parameters():  # gains of one and shifts of zero would hide a fault
            parameter.add_(0.1 * torch.randn_like(parameter))
    assert torch.allclose(model(x[:40]), by_hand(model, x[:40], norm), atol=1e-5)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("norm", ["none", "layer", "batch"])
def test_members_of_a_stack_train_as_a_plain_loop_does(norm: str) -> None:
    """The running averages are each member's own, and evaluation reads them."""
    asked = {"learning_rates": RATES, "seeds": [3], "epochs": EPOCHS, "batch_size": 2000}
    found = run_sweep("digits_wide", ["eb"], **asked, lanes=1, vary={"norm": [norm], "width": [12]})
    x, y = find_task("digits_wide").data().train
    for result in found:
        assert result.record["way"] == "stacked"
        model, losses = built(norm, width=12), []
        optimizer = torch.optim.SGD(model.parameters(), lr=result.spec.lr)
        for _ in range(EPOCHS):
            optimizer.zero_grad()
            F.cross_entropy(model.train()(x), y).backward()
            optimizer.step()
            losses.append(F.cross_entropy(model.eval()(x), y).item())
        assert [p.train_loss for p in result.curve[1:]] == pytest.approx(losses, rel=1e-4)


def test_the_weights_of_a_seed_are_the_same_under_every_norm() -> None:
    plain, *others = (built(norm).layers for norm in ("none", "layer", "batch"))
    for other in others:
        assert all(
            torch.equal(one.weight, two.weight) for one, two in zip(plain, other, strict=True)
        )


@pytest.mark.parametrize("norm", ["layer", "batch"])
@pytest.mark.parametrize("scaling", ["mup", "mup_adam"])
def test_a_norm_s_gains_begin_at_one_under_every_scaling(norm: str, scaling: str) -> None:
    """They are vectors as long as the width: kept smaller, used as large (Table 3)."""
    model = built(norm, width=4 * BASE_WIDTH, scaling=scaling)
    for gains in model.norms:
        assert torch.allclose(gains.weight * gains.at, torch.ones(4 * BASE_WIDTH))
    kept = 0.5 if scaling == "mup" else 1.0  # 1 / sqrt(m), for SGD to move them m times as far
    assert model.norms[0].weight[0].item() == pytest.approx(kept)


def test_trials_from_before_the_option_keep_their_addresses_and_others_differ() -> None:
    body = {"task": "digits_wide", "methods": ["eb"], "learning_rates": [0.1], "seeds": 1}

    def own(**more: object) -> list[dict[str, object]]:
        specs = specs_of({**body, **more})
        return [dict(trial.options.own) for spec in specs for trial in spec.expand()]

    assert own(vary={"norm": ["none"]}) == own()
    varied = own(vary={"norm": ["none", "layer", "batch"]})
    assert [one.get("norm") for one in varied] == [None, "layer", "batch"]
