"""The paper's two toy figures, as numbers."""

import pytest
from fastapi.testclient import TestClient


def descent(api: TestClient, **query: object) -> dict:
    answer = api.get("/api/illustrations/quadratic", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def update(api: TestClient, **query: object) -> dict:
    answer = api.get("/api/illustrations/update", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_defaults_are_the_papers_first_figure(api: TestClient) -> None:
    found = descent(api)
    explicit, implicit = found["paths"]
    assert (found["lr"], found["start"], found["steps"]) == (1.75, 2, 10)
    assert explicit["theta"][:3] == pytest.approx([2, -1.5, 1.125])
    assert implicit["theta"][1] == pytest.approx(2 / 2.75)
    assert (explicit["factor"], implicit["factor"]) == pytest.approx((-0.75, 1 / 2.75))
    assert (explicit["verdict"], implicit["verdict"]) == ("oscillates", "converges")
    assert found["stability_limit"] == 2


@pytest.mark.parametrize(
    ("lr", "verdict"), [(0.5, "converges"), (1.5, "oscillates"), (2, "cycles"), (2.1, "diverges")]
)
def test_explicit_steps_break_at_two_over_the_curvature(
    api: TestClient, lr: float, verdict: str
) -> None:
    explicit, implicit = descent(api, lr=lr / 4, curvature=4)["paths"]
    assert explicit["verdict"] == verdict
    assert implicit["verdict"] == "converges"


def test_a_path_that_leaves_the_finite_numbers_is_null_from_there(api: TestClient) -> None:
    explicit, implicit = descent(api, lr=1e6, curvature=1e6, steps=200)["paths"]
    assert explicit["theta"][-1] is None
    assert explicit["loss"][-1] is None
    assert explicit["verdict"] == "diverges"
    assert None not in implicit["theta"]


@pytest.mark.parametrize("loss", ["quadratic", "absolute", "logistic", "arctan_well"])
def test_implicit_steps_never_raise_any_loss(api: TestClient, loss: str) -> None:
    for lr in (0.1, 1.75, 50):
        losses = descent(api, loss=loss, lr=lr, steps=20)["paths"][1]["loss"]
        assert losses == sorted(losses, reverse=True)


def test_explicit_steps_on_the_absolute_value_end_in_a_circle(api: TestClient) -> None:
    found = descent(api, loss="absolute", lr=1.5, start=2, steps=20)
    assert found["paths"][0]["verdict"] == "cycles"
    assert found["stability_limit"] is None


def test_the_update_defaults_are_the_papers_relu_figure(api: TestClient) -> None:
    found = update(api)
    landing = {(step["method"], step["b"]): step["landing"] for step in found["steps"]}
    assert landing["eb", 1] == pytest.approx(-0.7)
    assert landing["ib", 1] == pytest.approx(0.0)
    assert landing["eb", -1] == pytest.approx(-0.3)
    assert landing["ib", -1] == pytest.approx(0.7)
    cases = {(step["method"], step["b"]): step["case"] for step in found["steps"]}
    assert "hinge" in cases["ib", 1]
    assert "past the hinge" in cases["ib", -1]
    assert found["jump"] == -0.5


def jumps(found: dict, method: str, b: float) -> list[float]:
    """Return where neighbouring samples of the step differ by more than their distance allows."""
    sweep = next(one for one in found["sweeps"] if (one["method"], one["b"]) == (method, b))
    s, steps = found["s"], sweep["step"]
    return [
        (s[i] + s[i + 1]) / 2
        for i in range(len(s) - 1)
        if abs(steps[i + 1] - steps[i]) > 5 * (s[i + 1] - s[i])
    ]


def test_step_lengths_jump_where_the_paper_says(api: TestClient) -> None:
    found = update(api)
    assert jumps(found, "eb", 1) == pytest.approx([0], abs=0.02)
    assert jumps(found, "ib", 1) == []
    assert jumps(found, "eb", -1) == pytest.approx([0], abs=0.02)
    assert jumps(found, "ib", -1) == pytest.approx([-0.5], abs=0.02)


@pytest.mark.parametrize("activation", ["linear", "arctan", "hardtanh", "smoothstep", "tanh"])
def test_the_implicit_step_minimises_its_problem(api: TestClient, activation: str) -> None:
    explicit, implicit = update(api, activation=activation, s=0.5, lr=3)["steps"][:2]

    def cost(step: dict) -> float:
        return step["loss"] + 3 * step["alpha"] ** 2 / 2

    assert cost(implicit) <= cost(explicit) + 1e-9


def test_a_ridge_shrinks_both(api: TestClient) -> None:
    steps = update(api, activation="linear", b=0, s=1, lr=1, mu=0.5)["steps"]
    assert [step["landing"] for step in steps[:2]] == pytest.approx([0.5, 1 / 1.5])


@pytest.mark.parametrize(
    "query", [{"lr": 0}, {"lr": "nan"}, {"steps": 201}, {"loss": "cubic"}, {"curvature": "inf"}]
)
def test_settings_out_of_range_are_refused(api: TestClient, query: dict[str, object]) -> None:
    assert api.get("/api/illustrations/quadratic", params=query).status_code == 422


def test_an_unknown_activation_lists_the_known(api: TestClient) -> None:
    answer = api.get("/api/illustrations/update", params={"activation": "swish"})
    assert answer.status_code == 422
    assert "smoothstep" in answer.json()["error"]["message"]
