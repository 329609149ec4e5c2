import pytest
import torch

from ib_core import ImplicitLinear, Member, build_optimizer
from ib_core.tasks.losses import LOSSES


def least_squares(members, steps=1):
    """One linear layer without bias on three rows; returns start and end weights, x and y."""
    torch.manual_seed(1)
    model = ImplicitLinear(2, 1, "linear", bias=False, members=len(members)).double()
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[1.0, -2.0]]).expand_as(model.weight))
    x, y = torch.randn(3, 2, dtype=torch.float64), torch.randn(3, 1, dtype=torch.float64)
    start = model.weight.detach().clone()
    optimizer = build_optimizer(model, members)

    def closure():
        outputs = model(x.expand(len(members), 3, 2))
        losses = (
            LOSSES["half_squared_error"].per_row(outputs, y.expand(len(members), 3, 1)).mean(-1)
        )
        losses.sum().backward()
        return losses.detach()

    for _ in range(steps):
        optimizer.step(closure)
    return start[:, 0], model.weight.detach()[:, 0], x, y


@pytest.mark.parametrize("mu", [0.0, 0.3])
def test_the_text_form_converges_to_the_closed_form_proximal_step(mu):
    rates = [0.1, 1.0, 5.0]
    members = [Member("isgd", lr, mu=mu, inner_steps=2000) for lr in rates]
    start, end, x, y = least_squares(members)
    for row, lr in enumerate(rates):
        # minimise 2*lr*(loss + mu/2 |theta|^2) + |theta - theta_t|^2
        matrix = x.T @ x / 3 + (mu + 1 / lr) * torch.eye(2, dtype=torch.float64)
        expected = torch.linalg.solve(matrix, x.T @ y[:, 0] / 3 + start[row] / lr)
        torch.testing.assert_close(end[row], expected, rtol=1e-9, atol=1e-12)


def test_the_authors_form_pulls_with_weight_one_whatever_the_rate():
    rates = [0.5, 2.0]
    members = [Member("isgd", lr, isgd_form="authors", inner_steps=4000) for lr in rates]
    start, end, x, y = least_squares(members)
    matrix = x.T @ x / 3 + torch.eye(2, dtype=torch.float64)
    for row in range(2):
        expected = torch.linalg.solve(matrix, x.T @ y[:, 0] / 3 + start[row])
        torch.testing.assert_close(end[row], expected, rtol=1e-9, atol=1e-12)


def test_a_rate_too_large_for_the_inner_steps_diverges_visibly():
    _, end, x, _ = least_squares([Member("isgd", 1e3)], steps=5)
    steepest = torch.linalg.eigvalsh(x.T @ x / 3).max().item()
    assert 1e3 * steepest > 19
    assert not torch.isfinite(end).all() or end.abs().max() > 1e10


def test_clipping_acts_on_the_whole_step_of_the_text_form_only():
    members = [
        Member("isgd", 1.0, clip=0.01),
        Member("isgd", 1.0, clip=0.01, isgd_form="authors"),
    ]
    start, end, _, _ = least_squares(members)
    moved = (start - end).norm(dim=1)
    assert moved[0].item() == pytest.approx(0.01, rel=1e-3)
    assert moved[1].item() > 0.1
