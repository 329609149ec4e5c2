import pytest
import torch

from ib_core.datasets import bundled as toys


def test_the_quadratic_is_theta_squared_over_two():
    rows = toys.quadratic().train
    theta = torch.tensor([[1.7]])
    loss = ((rows.x @ theta - rows.y) ** 2).mean() / 2
    assert loss.item() == pytest.approx(1.7**2 / 2)


@pytest.mark.parametrize("condition", [1.0, 100.0, 1e4])
@pytest.mark.parametrize("part", ["train", "test"])
def test_least_squares_has_the_curvature_it_promises(condition, part):
    rows = getattr(toys.least_squares(condition), part)
    x = rows.x.double()
    curvature = x.T @ x / len(rows)
    expected = torch.diag(torch.tensor([1.0, 1 / condition], dtype=torch.float64))
    assert torch.allclose(curvature, expected, rtol=1e-6, atol=1e-8)


def test_least_squares_is_solved_by_one_and_one():
    rows = toys.least_squares().train
    assert torch.allclose(rows.x @ torch.ones(2, 1), rows.y)
    assert len({tuple(row) for row in rows.x.tolist()}) == len(rows)


def test_moons_are_two_balanced_classes_no_line_can_part():
    content = toys.moons()
    assert content.train.y.bincount().tolist() == [100, 100]
    x = torch.cat([content.train.x.double(), torch.ones(200, 1, dtype=torch.float64)], 1)
    sign = (2.0 * content.train.y - 1).double()
    line = torch.linalg.lstsq(x, sign[:, None]).solution
    wrong = ((x @ line).squeeze() * sign < 0).sum().item()
    assert 10 < wrong < 60
    upper, lower = content.train.x[content.train.y == 0], content.train.x[content.train.y == 1]
    assert upper[:, 1].mean() > lower[:, 1].mean()
    assert not torch.equal(content.train.x[:100], content.test.x)
