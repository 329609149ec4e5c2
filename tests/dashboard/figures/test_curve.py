"""A trial's losses by step."""

from backend.client import calls
from dashboard.figures.curve import TrialCurve, curve_figure
from tests.coroutines import run
from tests.dashboard.fake_api import FakeApi


def trial_curve(number: int) -> TrialCurve:
    api = FakeApi()
    return TrialCurve(run(api.send(calls.trial(number))), run(api.send(calls.curve(number))))


def test_training_is_solid_and_test_dashed_in_the_method_s_colour():
    figure = curve_figure([trial_curve(101)])
    dashes = {trace.meta: trace.line.dash for trace in figure.data}
    assert dashes == {"train": "solid", "test": "dash"}
    assert {trace.line.color for trace in figure.data} == {"#0072B2"}


def test_where_a_curve_leaves_the_finite_numbers_is_marked():
    figure = curve_figure([trial_curve(27)])
    (mark,) = [trace for trace in figure.data if trace.meta == "break"]
    assert mark.x == (3,)
    assert mark.text == ("not finite from here",)


def test_several_trials_are_named_by_method_rate_and_seed():
    figure = curve_figure([trial_curve(101), trial_curve(102)], test=False)
    assert [trace.name for trace in figure.data] == [
        "IB, rate 0.01, seed 1",
        "IB, rate 0.01, seed 2",
    ]


def test_one_exploding_curve_does_not_flatten_the_others():
    figure = curve_figure([trial_curve(101), trial_curve(25)])
    assert figure.layout.yaxis.type == "log"
    assert curve_figure([trial_curve(101)]).layout.yaxis.type == "linear"


def test_losses_can_be_logarithmic():
    assert curve_figure([trial_curve(101)], log=True).layout.yaxis.type == "log"
