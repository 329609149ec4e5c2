"""A sweep as a command: what is copied asks for the same grid."""

import ast
import json
import shlex

from backend.schemas import SweepCreate
from dashboard.pages.study.sweeps import as_command, as_curl, as_python
from ib_core.sweep.request import body_of, read_body
from tests.dashboard.fake_api import FakeApi

SPEC = FakeApi().sweep(1).spec
SERVER = "http://127.0.0.1:8050"


def test_the_body_is_one_the_api_takes_and_holds_no_empty_field():
    body = body_of({**SPEC, "clips": [None, 1.0], "options": {"width": 8, "restart": False}})
    assert SweepCreate.model_validate(body).clip == [None, 1.0]
    assert body["options"] == {"width": 8}
    assert "clip" not in body_of(SPEC)
    assert "options" not in body_of(SPEC)


def test_curl_sends_that_very_body():
    words = shlex.split(as_curl(3, SPEC, SERVER))
    assert words[3] == f"{SERVER}/api/studies/3/sweeps"
    assert json.loads(words[words.index("-d") + 1]) == body_of(SPEC)


def test_python_is_python():
    tree = ast.parse(as_python(3, SPEC, SERVER))
    sweep = next(node for node in tree.body if isinstance(node, ast.Assign))
    assert ast.literal_eval(sweep.value) == body_of(SPEC)


def test_a_hostile_origin_stays_inside_its_quotes():
    text = as_curl(3, SPEC, "http://x'; rm -rf /; '")
    assert shlex.split(text)[3].startswith("http://x'; rm")


def test_the_command_line_names_everything_the_grid_says():
    options = {"width": 8, "restart": False}
    words = shlex.split(as_command({**SPEC, "clips": [None, 1.0], "options": options}, SERVER))
    assert words[:3] == ["etascope", "submit", "digits_mlp"]
    assert words[words.index("--lrs") + 1] == "0.01,0.03,0.1,0.3,1,3,10,30,100"
    assert words[words.index("--clip") + 1] == "none,1"
    assert words[words.index("--seeds") + 1] == "1,2,3"
    assert words[words.index("--width") + 1] == "8"
    assert words[-2:] == ["--server", SERVER]


def test_one_seed_is_not_taken_for_a_number_of_seeds():
    words = shlex.split(as_command({**SPEC, "seeds": [7]}, SERVER))
    assert read_body({"seeds": words[words.index("--seeds") + 1]}, typed=True)["seeds"] == [7]


def test_the_command_line_says_rare_options_too():
    options = {"momentum": 0.5, "decay": {"tau": 100.0, "power": 0.75}, "restart": True}
    words = shlex.split(as_command({**SPEC, "options": options}, SERVER))
    assert words[words.index("--momentum") + 1] == "0.5"
    assert words[words.index("--decay") + 1] == "100:0.75"
    assert "--restart" in words
