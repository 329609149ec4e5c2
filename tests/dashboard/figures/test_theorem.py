from backend.schemas import TheoremLine, TheoremRead
from dashboard.figures import theorem_figure, theorem_words


def line(method: str, lr: float, averages: list[float | None]) -> TheoremLine:
    steps = list(range(len(averages)))
    return TheoremLine(
        task="digits_mlp",
        method=method,
        label=method,
        lr=lr,
        seeds=3,
        step=steps,
        average=averages,
        gradient=averages,
        theta=[1.0 for _ in steps],
        restarts=[float(step) for step in steps],
    )


FOUND = TheoremRead(
    study_id=1,
    definition="",
    lines=[
        line("eb", 0.1, [None, 4.0, 2.0]),
        line("eb", 10.0, [None, 40.0]),
        line("ib", 0.1, [None, 3.0, 1.0]),
    ],
)


def test_every_method_and_rate_is_a_line_in_every_panel():
    figure = theorem_figure(FOUND)
    drawn = [(trace.name, trace.meta, list(trace.y)) for trace in figure.data]
    assert len(drawn) == 9
    assert ("EB", "average", [None, 4.0, 2.0]) in drawn
    assert ("IB", "restarts", [0.0, 1.0, 2.0]) in drawn
    assert [trace.name for trace in figure.data if trace.showlegend] == ["EB", "IB"]


def test_lines_that_differ_in_a_setting_are_told_apart():
    lines = [
        line("eb", 0.1, [None, 4.0]).model_copy(update={"label": f"eb, mu {mu}"}) for mu in (1, 2)
    ]
    figure = theorem_figure(FOUND.model_copy(update={"lines": lines}))
    assert [trace.name for trace in figure.data if trace.showlegend] == ["EB, mu 1", "EB, mu 2"]


def test_higher_rates_have_stronger_lines():
    weak, strong = (
        next(t.opacity for t in theorem_figure(FOUND).data if list(t.y) == averages)
        for averages in ([None, 4.0, 2.0], [None, 40.0])
    )
    assert weak < strong


def test_words_say_where_the_averages_end():
    assert theorem_words(FOUND) == (
        "EB’s average ends at 2 at rate 0.1 after 2 restarts, and at 40 at rate 10 after 1 "
        "restart; IB’s average ends at 1 at rate 0.1 after 2 restarts."
    )
    assert "Nothing" in theorem_words(FOUND.model_copy(update={"lines": []}))
