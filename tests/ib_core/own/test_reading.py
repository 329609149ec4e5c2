"""What is read of a user's tasks, options and optimizers: nothing is dropped in silence."""

import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from ib_core import Data, Method, Task, choice, number, run_sweep, whole
from ib_core.announced import AnnouncedTask
from ib_core.errors import IBError, InvalidSpec, MisuseError, said_where
from ib_core.methods import find_method
from ib_core.own import enter_method, enter_task, manifest, register_class, register_file
from ib_core.sweep import TrialSpec, fingerprint, specs_of
from ib_core.sweep.request import body_of
from ib_core.tasks import find_task
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


# --- options


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: number(0, math.inf),
        lambda: number(-math.inf, 0),
        lambda: number(math.nan, 1),
        lambda: whole(0, math.inf),  # type: ignore[arg-type]
        lambda: number(0, "1"),  # type: ignore[arg-type]
        lambda: choice(nn.ReLU, nn.Tanh),  # type: ignore[arg-type]
        lambda: choice(1.0, math.nan),
        lambda: choice("none", None),
    ],
)
def test_what_no_form_could_hold_is_no_option(wrong: Callable[[], Any]) -> None:
    with pytest.raises(MisuseError):
        wrong()


def test_none_is_a_choice_as_any_other() -> None:
    def model(norm: str | None = None) -> nn.Module:
        return nn.Linear(16, 3)

    task = Task(model, rows, loss=F.cross_entropy, options={"norm": choice("batch", None)})
    assert task.read({}) == {"norm": None}
    assert enter_task(task, "mine.py:nothing", "code", {}) is task
    body = {**GRID, "task": task.name, "methods": ["eb"]}
    (usual,) = specs_of(body)
    assert usual.options.of_task == {"norm": None}
    for asked in ({"norm": [None]}, ["norm=none"]):
        assert specs_of({**body, "vary": asked}, typed=True) == (usual,)
    assert specs_of(body_of(usual.as_dict())) == (usual,)
    both = specs_of({**body, "vary": {"norm": ["batch", None]}})
    assert [spec.options.of_task["norm"] for spec in both] == ["batch", None]
    assert AnnouncedTask(manifest(task.name)).read({}) == {"norm": None}


def test_a_default_that_is_no_choice_is_not_replaced_in_silence() -> None:
    def model(norm: str | None = None) -> nn.Module:
        return nn.Linear(16, 3)

    with pytest.raises(InvalidSpec, match="must be one of batch, layer"):
        Task(model, rows, loss=F.cross_entropy, options={"norm": choice("batch", "layer")})


# --- optimizers


def test_an_optimizer_whose_tuple_has_a_part_that_is_no_number_is_made() -> None:
    method = find_method("torch.optim.Adafactor(weight_decay=0.1)")
    assert method.factory is not None
    made = method.factory([nn.Parameter(torch.zeros(2, 2))], lr=0.1, **method.values)
    assert made.defaults["eps"] == (None, 0.001)
    assert made.defaults["weight_decay"] == 0.1


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("torch.optim.SGD(momentum=-3)", "momentum"),
        ("torch.optim.Adam(beta1=7)", "beta"),
        ("torch.optim.SGD(nesterov=true)", "Nesterov"),
    ],
)
def test_options_that_no_optimizer_can_be_made_with_are_refused_in_its_words(
    name: str, words: str
) -> None:
    with pytest.raises(InvalidSpec, match=words) as caught:
        find_method(name)
    assert caught.value.field == "methods"


def test_an_optimizer_that_wants_the_models_own_parameters_is_not_tried_without_them() -> None:
    def build(params: list[Any], lr: float, wd: float = 0.0) -> torch.optim.Optimizer:
        assert len(params) == 6
        return torch.optim.SGD(params, lr=lr, weight_decay=wd)

    method = Method(build, options={"wd": number(0, 1)})
    enter_method(method, "mine.py:six", "code", {})
    assert find_method("mine.py:six(wd=0.5)").values == {"wd": 0.5}


@pytest.mark.parametrize(
    "name",
    ["math.pi", "os.path", ".Adam", "Adam.", "torch.nn.Linear", "json.dumps", "builtins.print"],
)
def test_what_makes_no_optimizer_is_no_method(name: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        register_class(name)
    assert caught.value.field == "methods"
    assert "package.Class" in caught.value.message or "is no method" in caught.value.message


# --- files: each has modules of its own, and a hash of all of them


TASK = """
import torch, torch.nn.functional as F
from torch import nn
from ib_core import Data, Method, Task
def data():
    return Data(train=(torch.zeros(8, 2), torch.zeros(8, 1)))
def model():
    return nn.Linear(2, 1)
task = Task(model, data, loss=F.mse_loss)
"""


def written(folder: Path, **files: str) -> Path:
    """Write modules, and return the first."""
    for name, text in files.items():
        place = folder / f"{name.replace('__', '/')}.py"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return folder / f"{next(iter(files))}.py"


def code_of(file: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("ib_core.own._files", {})
    return register_file(file).code


def test_two_files_have_a_helper_of_one_name_each(tmp_path: Path) -> None:
    for name in ("a", "b"):
        file = written(
            tmp_path / name,
            **{f"file_{name}": f"import helpers\n{TASK}\nwho = helpers.who\n"},
            helpers="def who():\n    import late\n    return late.WHO\n",
            late=f"WHO = '{name}'\n",
        )
        register_file(file)
    who = [find_task(f"file_{name}.py:task").model.__globals__["who"]() for name in "ab"]
    assert who == ["a", "b"]


def test_a_function_imports_what_lies_beside_its_file_when_it_runs(tmp_path: Path) -> None:
    text = TASK.replace(
        "def data():\n",
        "def data():\n    import late_rows\n    from late_pack import inner\n"
        "    import late_pack.other as other\n    assert inner.X + other.X == 3\n"
        "    import importlib\n    assert importlib.import_module('late_rows') is late_rows\n",
    )
    file = written(
        tmp_path,
        lazy=text,
        late_rows="class Row:\n    pass\n",
        late_pack____init__="",
        late_pack__inner="from .other import X as Y\nX = Y - 1\n",
        late_pack__other="X = 2\n",
    )
    (tmp_path / "late_rows").mkdir()  # a folder of no module's
    register_file(file)
    assert find_task("lazy.py:task").data_hash()
    import sys

    kept = sys.modules["etascope_own_lazy.late_rows"].Row
    assert pickle.loads(b"\x80\x04clate_rows\nRow\n.") is kept


def test_a_hash_holds_all_that_is_imported_whoever_loaded_it_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helpers = {"mid_c": "import deep_c\n", "deep_c": "X = 1\n"}
    first = written(tmp_path, first_c=f"import mid_c\n{TASK}", **helpers)
    second = written(tmp_path, second_c=f"import mid_c\n{TASK}")
    codes = [register_file(file).code for file in (first, second)]
    assert codes[0] == codes[1]
    (tmp_path / "deep_c.py").write_text("X = 2\n")
    changed = [code_of(file, monkeypatch) for file in (second, first)]
    assert changed[0] == changed[1] != codes[0]


def test_a_module_that_a_file_puts_on_the_path_belongs_to_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "import os, sys\nsys.path.append(os.path.dirname(__file__) + '/../lib')\n"
    for name in ("one", "two"):
        written(tmp_path / name / "lib", common_d=f"WHO = '{name}'\n")
        use = f"{path}import common_d\n{TASK}who = common_d.WHO\n"
        written(tmp_path / name / "src", **{f"{name}_d": use})
    files = [tmp_path / name / "src" / f"{name}_d.py" for name in ("one", "two")]
    codes = [register_file(file).code for file in files]
    who = [find_task(f"{file.name}:task").model.__globals__["who"] for file in files]
    assert who == ["one", "two"]
    written(tmp_path / "one" / "lib", common_d="WHO = 'new'\n")
    assert code_of(files[0], monkeypatch) != codes[0]
    assert code_of(files[1], monkeypatch) == codes[1]
    assert find_task("one_d.py:task").model.__globals__["who"] == "new"


def test_the_hash_of_a_file_alone_is_that_of_its_text_and_its_versions(tmp_path: Path) -> None:
    """Stored addresses hold it: it was found so before a file had modules of its own."""
    import hashlib

    file = written(tmp_path, alone=TASK)
    found = register_file(file)
    digest = hashlib.sha256(b"module\n" + hashlib.sha256(file.read_bytes()).digest())
    digest.update(repr(sorted(found.versions.items())).encode())
    assert found.code == digest.hexdigest()[:16]
    assert list(found.versions) == ["torch"]


def test_another_name_of_a_task_does_not_rename_it(tmp_path: Path) -> None:
    more = "alias = task\nmine = Method(torch.optim.Adam, name='adam')\n"
    found = register_file(written(tmp_path, named=TASK + more))
    assert {name: task.name for name, task in found.tasks.items()} == {
        "named.py:task": "named.py:task",
        "named.py:alias": "named.py:alias",
    }
    assert list(found.methods) == ["named.py:mine"]


def test_a_file_whose_name_has_a_blank_may_hold_tasks_but_no_methods(tmp_path: Path) -> None:
    (tmp_path / "my file.py").write_text(TASK)
    assert list(register_file(tmp_path / "my file.py").tasks) == ["my file.py:task"]
    (tmp_path / "my other.py").write_text(TASK + "m = Method(torch.optim.Adam)\n")
    with pytest.raises(InvalidSpec, match="no blanks"):
        register_file(tmp_path / "my other.py")


# --- where it broke


def test_a_fault_in_torchs_own_layers_names_the_file_and_the_model(tmp_path: Path) -> None:
    text = TASK.replace("nn.Linear(2, 1)", "nn.Sequential(nn.Linear(3, 1))")
    text += "vague = Task(lambda: nn.Linear(2, 1), data, loss=lambda out, y: (out - y) ** 2)\n"
    register_file(written(tmp_path, shapes=text))
    for name, said in (("task", "line 7, in model"), ("vague", "line 10, in <lambda>")):
        results = run_sweep(f"shapes.py:{name}", ["eb"], learning_rates=[0.1], seeds=1, lanes=1)
        assert str(results[0].error).startswith(f"shapes.py, {said}: ")


def test_a_registered_file_is_the_users_wherever_it_lies(tmp_path: Path) -> None:
    for folder in ("site-packages", "my_ib_core_runs"):
        name = f"lies_{folder.partition('-')[0]}"
        text = TASK.replace("def model():\n", "def model():\n    raise ValueError('no')\n")
        register_file(written(tmp_path / folder, **{name: text}))
        with pytest.raises(ValueError, match="no") as caught:
            find_task(f"{name}.py:task").model()
        assert said_where(caught.value).startswith(f"{name}.py, line 8, in model: ")
    with pytest.raises(IBError) as ours:
        find_method("nobody")
    ours.value.__traceback__ = ours.value.__traceback__.tb_next  # type: ignore[union-attr]
    assert said_where(ours.value) == ours.value.message


# --- what a user's code says


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("not even this")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("z" * 10**6), f"ValueError: {'z' * 500}..."),
        (ValueError("\x1b[31mred\u202e\nmore"), "ValueError:  [31mred "),
        (Mute(), "Mute: it cannot be told"),
        (ValueError(), "ValueError"),
    ],
)
def test_an_errors_words_are_a_line_that_can_be_printed(error: Exception, said: str) -> None:
    assert said_where(error) == said


def test_a_file_may_raise_whatever_it_likes(tmp_path: Path) -> None:
    file = tmp_path / "odd.py"
    file.write_text("class Odd(BaseException): pass\nraise Odd('no')")
    with pytest.raises(InvalidSpec, match=r"odd\.py, line 2, in <module>: Odd: no"):
        register_file(file)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"epochs": 0}, "A task's epochs must be a whole number from 1; got 0"),
        ({"batch_size": 2.5}, "batch_size must be a whole number"),
        ({"seeds": "many"}, "seeds must be a whole number"),
        ({"learning_rates": ()}, "positive numbers, one at least"),
        ({"learning_rates": (0.1, math.nan)}, "positive numbers"),
        ({"learning_rates": (0.1, -1)}, "positive numbers"),
    ],
)
def test_a_tasks_own_defaults_can_be_swept(given: dict[str, Any], said: str) -> None:
    with pytest.raises(MisuseError, match=said):
        Task(nn.Linear, rows, loss=F.mse_loss, **given)


def test_lists_of_numbers_are_rows() -> None:
    x, y = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [0, 1, 0]
    read = Data(train=(x, y)).rows("train")
    assert [tuple(part.shape) for part in (*read.x, read.y)] == [(3, 2), (3,)]
    several = Data(train=([torch.zeros(3, 2), torch.ones(3)], y)).rows("train")
    assert [tuple(part.shape) for part in several.x] == [(3, 2), (3,)]
