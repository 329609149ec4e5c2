"""What is read of a user's tasks, options and optimizers: nothing is dropped in silence."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from ib_core import Method, Task, number
from ib_core.errors import InvalidSpec, MisuseError
from ib_core.own import enter_method
from ib_core.sweep import TrialSpec, fingerprint, specs_of
from ib_core.sweep.request import body_of
from tests.ib_core.own.models import rows

GRID: dict[str, Any] = {"task": "digits_mlp", "learning_rates": [0.1], "seeds": 1, "epochs": 1}


def trials_of(**body: Any) -> list[TrialSpec]:
    return [trial for spec in specs_of({**GRID, **body}) for trial in spec.expand()]


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ib_core.own._files", {})


# --- momentum


@pytest.fixture
def mine() -> str:
    method = Method(torch.optim.SGD, options={"momentum": number(0, 1)})
    return enter_method(method, "mine.py:sgd", "code", {}).name


@pytest.mark.parametrize("said", ["vary", "list"])
@pytest.mark.parametrize("method", ["torch.optim.SGD", "mine.py:sgd"])
@pytest.mark.usefixtures("mine")
def test_a_varied_momentum_is_part_of_an_optimizers_name(method: str, said: str) -> None:
    asked = {"momentum": [0, 0.5]}
    body = {"methods": [method, "eb"], **({"vary": asked} if said == "vary" else asked)}
    (spec,) = specs_of({**GRID, **body})
    assert spec.methods == (method, "eb", f"{method}(momentum=0.5)")
    assert len({fingerprint(trial, "d") for trial in spec.expand()}) == 3


@pytest.mark.usefixtures("mine")
def test_a_sweeps_momentum_reaches_every_method_that_has_one() -> None:
    methods = ["eb", "momo", "torch.optim.SGD", "mine.py:sgd"]
    for values in (0.5, [0.5, 0.7]):
        specs = specs_of({**GRID, "methods": methods, "momentum": values})
        for spec, value in zip(
            specs, values if isinstance(values, list) else [values], strict=True
        ):
            assert spec.methods[2:] == (
                f"torch.optim.SGD(momentum={value})",
                f"mine.py:sgd(momentum={value})",
            )
            assert [trial.options.momentum for trial in spec.expand()] == [None, value, None, None]
            assert specs_of(body_of(spec.as_dict())) == (spec,)


@pytest.mark.parametrize(
    "body",
    [
        {"methods": ["eb", "torch.optim.Adam"], "momentum": 0.5},
        {"methods": ["eb"], "momentum": [0.5, 0.6]},
        {"methods": ["eb"], "vary": {"momentum": [0.5, 0.6]}},
        {"methods": ["torch.optim.SGD(momentum=0.1)"], "momentum": 0.5},
        {"methods": ["torch.optim.SGD(momentum=0.1)"], "vary": {"momentum": [0.5, 0.6]}},
    ],
)
def test_a_momentum_that_nobody_would_use_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(InvalidSpec, match="momentum") as caught:
        trials_of(**body)
    assert caught.value.field in ("options.momentum", "vary.momentum")


@pytest.mark.parametrize("name", ["momentum", "own"])
def test_a_models_option_may_not_have_a_name_that_means_something_else(name: str) -> None:
    def model(**_: float) -> nn.Module:
        return nn.Linear(16, 3)

    with pytest.raises(MisuseError, match=f"a '{name}' of its own"):
        Task(model, rows, loss=F.cross_entropy, options={name: number(0, 1, 0.5)})
