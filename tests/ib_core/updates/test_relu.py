"""The relu's rule by example, as the paper's figure draws it, and those of its relatives."""

import pytest
import torch

from ib_core.updates.hardtanh import hardtanh_alpha
from ib_core.updates.leaky_relu import leaky_relu_alpha
from ib_core.updates.linear import linear_alpha
from ib_core.updates.relu import relu_alpha
from ib_core.updates.smoothstep import smoothstep_alpha


def landing(rule, s, b, lr=1.0, z_sq=1.0, mu=0.0):
    alpha = rule(torch.tensor([[s]]), torch.tensor([[b]]), torch.tensor([[z_sq]]), lr, mu)
    return s / (1 + lr * mu) - lr * alpha.item() * z_sq


def test_a_relu_step_lands_on_the_hinge_instead_of_jumping_past_it():
    assert landing(relu_alpha, 0.3, 1.0) == pytest.approx(0.0, abs=1e-7)
    assert landing(relu_alpha, 0.3, 2.0, lr=10.0) == pytest.approx(0.0, abs=1e-6)
    assert landing(relu_alpha, 3.0, 1.0) == pytest.approx(2.0)


def test_a_relu_that_sleeps_is_woken_if_the_whole_step_pays():
    assert landing(relu_alpha, -0.3, -1.0) == pytest.approx(0.7)
    assert landing(relu_alpha, -0.6, -1.0) == pytest.approx(-0.6)


def test_a_leaky_relu_is_woken_a_little_sooner_because_its_sleep_costs_something():
    """It pays from s = k*b*(1 + .01)/2 = -.505 on."""
    assert landing(leaky_relu_alpha, -0.504, -1.0) == pytest.approx(0.496)
    assert landing(leaky_relu_alpha, -0.506, -1.0) == pytest.approx(-0.496)


@pytest.mark.parametrize("rule", [relu_alpha, leaky_relu_alpha])
def test_a_tie_goes_to_the_shorter_step(rule):
    """At s = k*b*(slope + 1)/2 sleeping on and waking up cost the same."""
    shallow = 0.01 if rule is leaky_relu_alpha else 0.0
    s = torch.tensor([-(1 + shallow) / 2], dtype=torch.float64)
    alpha = rule(s, -torch.ones_like(s), torch.ones_like(s), 1.0)
    assert alpha.item() == pytest.approx(-shallow)


def test_a_relu_step_shrinks_with_the_ridge():
    assert landing(relu_alpha, 3.0, 1.0, lr=2.0, mu=0.5) == pytest.approx(1.5 - 1.0)
    assert landing(linear_alpha, 3.0, 1.0, lr=2.0, mu=0.5) == pytest.approx(1.5 - 1.0)


def test_a_hardtanh_step_comes_down_from_the_plateau_only_if_it_pays():
    assert landing(hardtanh_alpha, 1.4, 1.0) == pytest.approx(0.4)
    assert landing(hardtanh_alpha, 1.6, 1.0) == pytest.approx(1.6)
    assert landing(hardtanh_alpha, 1.4, 100.0) == pytest.approx(-1.0)
    assert landing(hardtanh_alpha, -1.4, -1.0) == pytest.approx(-0.4)
    assert landing(hardtanh_alpha, -1.4, 1.0) == pytest.approx(-1.4)


def test_a_smoothstep_comes_down_from_its_plateau_only_if_it_pays():
    """To the distance u from -1 a step of b = k = 1 takes s = u - 1 + 3u(2 - u)/2.

    It pays if 9/4*u^2 < 1 + u: up to u = .925.
    """
    assert landing(smoothstep_alpha, 1.385, 1.0) == pytest.approx(-0.1, abs=1e-5)  # u = .9
    assert landing(smoothstep_alpha, 1.4576, 1.0) == pytest.approx(1.4576)  # u = .96
    assert landing(smoothstep_alpha, -1.385, -1.0) == pytest.approx(0.1, abs=1e-5)
