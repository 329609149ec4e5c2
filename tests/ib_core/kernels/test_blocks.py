"""What is compiled for many small problems against torch's formulas, in float64 and float32."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ib_core.kernels import made_orthogonal, solved_output, torch_formulas
from ib_core.methods.adam import orthogonal
from ib_core.updates.output_layer import cross_entropy_output

EPS = torch.finfo(torch.float32).eps


def heavy(seed, *shape, size=1.0):
    """Heavy tails: a few numbers are a thousand times the others."""
    draw = torch.Generator().manual_seed(seed)
    return size * torch.randn(shape, generator=draw) / torch.rand(shape, generator=draw).clamp(1e-3)


def outputs(seed, members, rows, classes, *, size=1.0, rows_last=True):
    """Logits and the gradients of their mean loss, as the backward pass of a stack gives them."""
    s = heavy(seed, members, classes, rows, size=size).mT
    s = s if rows_last else s.contiguous()
    draw = torch.Generator().manual_seed(seed + 1)
    y = torch.eye(classes)[torch.randint(classes, (members, rows), generator=draw)]
    b = torch.empty_like(s).copy_((s.log_softmax(-1).exp() - y) / rows)
    return s, b


def solve(s, b, rho):
    """Return the kernel's alphas times the rows, which are p - y."""
    rows = s.shape[-2]
    found = solved_output(s, b, rho, 1.0, 0.0, divisor=rows, scale=float(rows))
    assert found is not None
    return rows * found


def formula(s, b, rho):
    rows = s.shape[-2]
    with torch_formulas():
        return rows * cross_entropy_output(s, b, rho, 1.0, 0.0, divisor=rows, scale=float(rows))


@pytest.mark.parametrize("rows_last", [False, True])
@pytest.mark.parametrize("classes", [1, 2, 3, 10, 100, 1000])
@pytest.mark.parametrize("size", [0.1, 5.0, 100.0])
def test_the_kernel_is_as_exact_as_the_formula_it_stands_in_for(size, classes, rows_last):
    s, b = outputs(classes, 3, 45, classes, size=size, rows_last=rows_last)
    for power in (*range(-8, 10), 12, 16, 20, 30):
        rho = torch.full((3, 45, 1), 10.0**power)
        wanted = formula(s.double(), b.double(), rho.double())
        found = solve(s, b, rho)
        assert found.stride() == s.stride()
        off, in_torch = ((p - wanted).abs().max().item() for p in (found, formula(s, b, rho)))
        assert off <= 2 * in_torch + 2 * EPS, (power, off / EPS, in_torch / EPS)


def test_a_row_gets_the_same_bits_wherever_it_stands():
    s, b = outputs(7, 5, 37, 6, size=5.0)
    rho = heavy(8, 5, 37, 1, size=10.0).abs()
    together = solve(s, b, rho) / 37
    for member in range(5):
        of_one = solve(s[member], b[member], rho[member]) / 37
        assert torch.equal(of_one, together[member])
    s, b, rho, every = (part.reshape(185, -1) for part in (s, b, rho, together))
    for first, last in ((0, 1), (3, 4), (31, 34), (150, 185), (17, 90)):
        part = slice(first, last)
        alone = solved_output(s[part], b[part], rho[part], 1.0, 0.0, divisor=37, scale=37.0)
        assert alone is not None
        assert torch.equal(alone, every[part])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 3e38, -3e38])
@pytest.mark.parametrize("spoilt", ["s", "b", "rho"])
@pytest.mark.parametrize("size", [0.01, 100.0])
def test_a_row_that_is_not_finite_is_the_formula_s_and_harms_no_row_beside_it(size, spoilt, value):
    s, b = outputs(9, 2, 40, 5)
    given = {"s": s, "b": b, "rho": torch.full((2, 40, 1), size)}
    clean = solve(**given)
    given[spoilt][1, 3, 0] = value
    found, wanted = solve(**given), formula(**given)
    others = torch.ones(2, 40, dtype=torch.bool)
    others[1, 3] = False
    assert torch.equal(found[others], clean[others])
    assert torch.equal(found.isnan(), wanted.isnan())
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6, equal_nan=True)


@given(
    seed=st.integers(0, 2**31),
    rows=st.integers(1, 70),
    classes=st.integers(1, 40),
    lr=st.sampled_from([1e-4, 0.1, 1.0, 30.0, 1e4]),
    own=st.booleans(),
)
def test_a_stack_with_a_rate_each_lands_where_the_formula_does(seed, rows, classes, lr, own):
    s, b = outputs(seed, 3, rows, classes, size=2.0)
    z_sq = 20 * torch.rand(3, rows, 1, generator=torch.Generator().manual_seed(seed))
    rates = lr * torch.tensor([0.5, 1.0, 2.0]).view(3, 1, 1)
    how = {"mu": 0.0, "divisor": rows, "scale": float(rows) if own else 1.0}
    found = cross_entropy_output(s, b, z_sq, rates, **how)
    with torch_formulas():
        wanted = cross_entropy_output(s, b, z_sq, rates, **how)
    assert (rows * (found - wanted)).abs().max() <= 32 * EPS
    scales = {**how, "scale": torch.full((3, 1, 1), how["scale"])}
    torch.testing.assert_close(cross_entropy_output(s, b, z_sq, rates, **scales), found)


def test_what_the_kernel_cannot_solve_is_left_to_the_formula():
    s, b = outputs(1, 2, 4, 3)
    z_sq, how = torch.ones(2, 4, 1), {"divisor": 4, "scale": 4.0}
    assert solved_output(s, b, z_sq, 0.1, 0.0, **how) is not None
    assert solved_output(s, b, z_sq, 0.1, 0.5, **how) is None, "a ridge"
    assert solved_output(s, b, z_sq, 0.1, torch.zeros(2, 1, 1), **how) is None, "a ridge each"
    assert solved_output(s.double(), b.double(), z_sq.double(), 0.1, 0.0, **how) is None, "float64"
    assert solved_output(s, b, z_sq, 0.1 * torch.ones(3), 0.0, **how) is None, "a rate each class"
    assert solved_output(s[:, :0], b[:, :0], z_sq[:, :0], 0.1, 0.0, **how) is None, "no rows"
    with torch_formulas():
        assert solved_output(s, b, z_sq, 0.1, 0.0, **how) is None
    wanted = s.clone().requires_grad_()
    assert solved_output(wanted, b, z_sq, 0.1, 0.0, **how) is None, "a gradient is asked for"


def test_tensors_are_read_where_they_lie():
    s, b = outputs(2, 3, 20, 4)
    rho = torch.full((3, 20, 1), 2.0)
    wanted = solve(s, b, rho)
    for alike in (s.contiguous(), torch.cat([s, s], dim=-1)[..., :4], s[0].expand(3, 20, 4)):
        first = torch.equal(alike[1], s[1])
        found = solve(alike, b.contiguous(), rho)
        assert torch.equal(found if first else found[0], wanted if first else wanted[0])


def in_torch(matrices):
    with torch_formulas():
        return orthogonal(matrices)


@pytest.mark.parametrize("members", [1, 64, 130])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 7), (7, 1), (6, 6), (4, 12), (23, 9)])
def test_small_matrices_are_made_orthogonal_as_by_torchs_products(rows, columns, members):
    matrices = heavy(rows * columns, members, rows, columns)
    found, exact = orthogonal(matrices), in_torch(matrices.double())
    assert not torch.equal(found, in_torch(matrices)) or rows * columns == 1, "compiled"
    off, off_by_torch = ((f - exact).abs().max().item() for f in (found, in_torch(matrices)))
    assert off <= 2 * off_by_torch + 20 * EPS


def test_a_matrix_is_made_orthogonal_whatever_the_others_are():
    matrices = heavy(3, 70, 5, 4)
    alone = orthogonal(matrices[5:6].clone())
    matrices[0, 2, 1], matrices[69], matrices[64, 0, 0] = torch.nan, 0.0, torch.inf
    found = orthogonal(matrices)
    assert torch.equal(found[5], alone[0])
    assert found[0].isnan().all()
    assert found[64].isnan().all()
    assert torch.equal(found[69], torch.zeros(5, 4))


def test_matrices_that_no_kernel_takes_are_left_to_torch():
    def compiled(matrices):
        return made_orthogonal(matrices, 5, 1e-7, (1.0, 1.0, 1.0)) is not None

    small = torch.ones(2, 4, 3)
    assert compiled(small)
    assert not compiled(torch.ones(2, 16, 16)), "torch's products are quicker"
    assert not compiled(small.double())
    assert not compiled(small.mT), "not as it lies in memory"
    assert not compiled(small.to("meta"))
    assert not compiled(torch.ones(0, 4, 3)[:, :, :0])
    with torch_formulas():
        assert not compiled(small)
