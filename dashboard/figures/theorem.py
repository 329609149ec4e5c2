"""What the paper's theorem bounds, against steps: explicit and implicit, rate by rate."""

import math
from typing import Any

import plotly.graph_objects as go

from backend.schemas import TheoremLine, TheoremRead
from dashboard.figures.traces import scatter
from dashboard.formats import counted, number
from dashboard.theme import Scheme, method_style, template

#: From the top: the number, its axis, whether that is logarithmic, its place.
PANELS = (
    ("average", "average of |g|²", True, [0.62, 1.0]),
    ("theta", "|θ|", True, [0.31, 0.55]),
    ("restarts", "restarts", False, [0.0, 0.24]),
)
HEIGHT = 640


def theorem_figure(found: TheoremRead, scheme: Scheme = "light") -> go.Figure:
    """Return the theorem's average, |theta| and restarts; higher rates have stronger lines."""
    rates = sorted({line.lr for line in found.lines})
    figure = go.Figure(layout={"template": template(scheme)})
    told: set[str] = set()
    for line in found.lines:
        strength = 0.25 + 0.75 * (rates.index(line.lr) + 1) / len(rates)
        for index, (name, *_) in enumerate(PANELS):
            figure.add_trace(_trace(line, name, index, strength, legend=line.method not in told))
            told.add(line.method)
    axes: dict[str, Any] = {}
    for index, (_, title, log, domain) in enumerate(PANELS):
        end = "" if index == 0 else str(index + 1)
        axes[f"yaxis{end}"] = {
            "title": {"text": title},
            "domain": domain,
            "type": "log" if log else "linear",
            "exponentformat": "power",
        }
    axes["xaxis"] = {"title": {"text": "steps"}, "anchor": f"y{len(PANELS)}"}
    figure.update_layout(
        **axes,
        height=HEIGHT,
        margin={"l": 84, "r": 20, "t": 36, "b": 48},
        legend={"orientation": "h", "x": 0, "y": 1.01, "yanchor": "bottom"},
        hovermode="closest",
        meta={"label": theorem_words(found), "rates": False},
    )
    return figure


def _trace(line: TheoremLine, name: str, index: int, strength: float, *, legend: bool) -> Any:
    style = method_style(line.method)
    values = getattr(line, name)
    drawn = [value if name == "restarts" or (value or 0) > 0 else None for value in values]
    return scatter(
        x=line.step,
        y=drawn,
        mode="lines",
        line={"color": style.colour, "dash": style.dash, "width": 2},
        opacity=strength,
        name=style.short,
        legendgroup=line.method,
        showlegend=legend and index == 0,
        hovertext=[
            f"<b>{style.short}, rate {number(line.lr)}</b><br>step {step}: {name} "
            f"{'not finite' if value is None else number(value)}<br>|g| {_written(gradient)}, "
            f"|θ| {_written(theta)}, {number(restarts or 0)} restarts"
            for step, value, gradient, theta, restarts in zip(
                line.step, values, line.gradient, line.theta, line.restarts, strict=True
            )
        ],
        hoverinfo="text",
        yaxis="y" if index == 0 else f"y{index + 1}",
        meta=name,
    )


def _written(value: float | None) -> str:
    return "–" if value is None or not math.isfinite(value) else number(value)


def theorem_words(found: TheoremRead) -> str:
    """Return where every method's average ends, at its lowest and its highest rate."""
    parts = []
    for method in dict.fromkeys(line.method for line in found.lines):
        lines = sorted((one for one in found.lines if one.method == method), key=lambda o: o.lr)
        ends = [_end(one) for one in (lines[0], lines[-1])[: len(lines)]]
        parts.append(f"{method_style(method).short}’s average ends at {', and at '.join(ends)}")
    return f"{'; '.join(parts)}." if parts else "Nothing was recorded."


def _end(line: TheoremLine) -> str:
    average, restarts = (values[-1] if values else None for values in (line.average, line.restarts))
    again = counted(round(restarts or 0), "restart")
    return f"{_written(average)} at rate {number(line.lr)} after {again}"
