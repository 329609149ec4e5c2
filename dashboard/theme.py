"""How things look and how numbers are written, the same on every page and in every figure."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import plotly.graph_objects as go
import plotly.io as pio

from ib_core.methods import (
    IMPORTED_LOOK,
    METHODS,
    OTHER_LOOKS,
    method_look,
    series_look,
    split_name,
)

Scheme = Literal["light", "dark"]

FONT = (
    'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Helvetica Neue", Arial, sans-serif'
)


@dataclass(frozen=True, slots=True)
class MethodStyle:
    """A method's names and its look, as `ib_core.methods` lists them."""

    title: str
    short: str
    colour: str
    dash: str
    marker: str
    ink_light: str
    ink_dark: str

    def ink(self, scheme: Scheme) -> str:
        """Return the shade for text and thin outlines."""
        return self.ink_dark if scheme == "dark" else self.ink_light


METHOD_STYLE: dict[str, MethodStyle] = {
    name: MethodStyle(method.title, method.short, **asdict(method.look))
    for name, method in METHODS.items()
}

METHOD_COLOUR: dict[str, str] = {name: style.colour for name, style in METHOD_STYLE.items()}

#: Runs made elsewhere, by any method we have no style for.
IMPORTED_STYLE = MethodStyle("Imported", "Imported", **asdict(IMPORTED_LOOK))


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours of everything that is not a method."""

    text: str
    muted: str
    paper: str
    grid: str
    axis: str
    rail: str
    reference: str
    accent: str
    good: str
    bad: str


PALETTE: dict[Scheme, Palette] = {
    "light": Palette(
        text="#1A1D21",
        muted="#545B64",
        paper="#FFFFFF",
        grid="#E9ECEF",
        axis="#868E96",
        rail="#F4F5F7",
        reference="#868E96",
        accent="#3B5BDB",
        good="#2B8A3E",
        bad="#C92A2A",
    ),
    "dark": Palette(
        text="#E6E8EB",
        muted="#A6ADB5",
        paper="#17191C",
        grid="#2B2F34",
        axis="#6C757D",
        rail="#1F2226",
        reference="#868E96",
        accent="#91A7FF",
        good="#69DB7C",
        bad="#FF8787",
    ),
}


#: What every colour of the dark scheme is in the light one; colours that are in both stay.
LIGHT_TWINS: dict[str, str] = {
    **dict(zip(*(asdict(PALETTE[scheme]).values() for scheme in ("dark", "light")), strict=True)),
    **{look.ink_dark: look.ink_light for look in OTHER_LOOKS},
    **{style.ink_dark: style.ink_light for style in (*METHOD_STYLE.values(), IMPORTED_STYLE)},
}

#: What broke, on a map as in the strip.
BROKEN = "#D9480F"


@dataclass(frozen=True, slots=True)
class SeriesStyle:
    """What one curve looks like."""

    colour: str
    ink: str
    dash: str
    width: float
    marker: str
    size: float


#: Colours of what is neither a method nor in any order (Okabe and Ito's, then three of Tol's).
CATEGORY_COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"),
    *("#AA3377", "#998800", "#777777"),
)


def method_style(method: str, *, imported: bool = False) -> MethodStyle:
    """Return a method's style; imported runs are grey.

    Options in a name change nothing about its look; a method that is not in the list keeps one of
    the spare looks wherever it is drawn.
    """
    if imported:
        return IMPORTED_STYLE
    base = method.partition("(")[0]
    if base in METHOD_STYLE:
        known = METHOD_STYLE[base]
        return known if base == method else replace(known, title=method, short=method)
    short = base.rpartition(":")[2].rpartition(".")[2]
    return MethodStyle(method, short, **asdict(method_look(method)))


def told_method(method: str, settings: Mapping[str, Any]) -> str:
    """Return a method's name without the options that its series' settings tell anyway."""
    base, said = split_name(method)
    return base if said.keys() <= settings.keys() else method


def series_style(
    method: str,
    scheme: Scheme = "light",
    *,
    clipped: bool = False,
    imported: bool = False,
    variant: int = 0,
    tone: str | None = None,
) -> SeriesStyle:
    """Return the style of a curve.

    Args:
        method: Whose curve.
        scheme: Of the page.
        clipped: Clipped curves are thinner, with open markers.
        imported: Runs made elsewhere are grey; marker and dash still tell the method.
        variant: 0 for a method's first curve in a picture, 1 for its second, ...
        tone: Its colour where colours tell something other than the method.
    """
    look = series_look(method, clipped=clipped, imported=imported, variant=variant)
    return SeriesStyle(
        colour=tone or look.colour,
        ink=tone or (look.ink_dark if scheme == "dark" else look.ink_light),
        dash=look.dash,
        width=1.4 if clipped else 2.6,
        marker=look.marker,
        size=9 if clipped else 9.5,
    )


def faint(colour: str, opacity: float) -> str:
    """Return a hex colour with an opacity, as plotly wants it."""
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity:g})"


def _template(palette: Palette) -> go.layout.Template:
    axis = {
        "gridcolor": palette.grid,
        "linecolor": palette.axis,
        "tickcolor": palette.axis,
        "zerolinecolor": palette.grid,
        "showline": True,
        "ticks": "outside",
        "ticklen": 5,
        "automargin": True,
        "title": {"standoff": 10, "font": {"size": 14}},
    }
    return go.layout.Template(
        layout={
            "font": {"family": FONT, "size": 13, "color": palette.text},
            "paper_bgcolor": palette.paper,
            "plot_bgcolor": palette.paper,
            "xaxis": axis,
            "yaxis": axis,
            "colorway": [style.colour for style in METHOD_STYLE.values()],
            "hoverlabel": {
                "bgcolor": palette.rail,
                "bordercolor": palette.axis,
                "font": {"family": FONT, "size": 13, "color": palette.text},
                "align": "left",
            },
            # Every series is a group of its own: so a row has the height that pictures count with,
            # who give a legend all the room it needs.
            "legend": {"bgcolor": "rgba(0,0,0,0)", "font": {"size": 13}, "tracegroupgap": 4}
            | {"maxheight": 1},
            "margin": {"l": 64, "r": 16, "t": 48, "b": 48},
            "modebar": {
                "bgcolor": "rgba(0,0,0,0)",
                "color": palette.muted,
                "activecolor": palette.accent,
            },
            "title": {"font": {"size": 16}, "x": 0, "xanchor": "left"},
        }
    )


for _scheme, _palette in PALETTE.items():
    pio.templates[f"etascope_{_scheme}"] = _template(_palette)


def template(scheme: Scheme) -> go.layout.Template:
    """Return the plotly template of a colour scheme."""
    return pio.templates[f"etascope_{scheme}"]


def scheme_of(value: object) -> Scheme:
    """Return the colour scheme a browser told us; light until it has."""
    return "dark" if value == "dark" else "light"


#: The logarithmic axis of learning rates: one tick a decade, never "1k" or "1e3" where 1000 does.
RATE_AXIS: dict[str, Any] = {
    "type": "log",
    "dtick": 1,
    "tickformat": "~g",
    "minor": {"dtick": "D1", "ticks": "outside", "ticklen": 2, "showgrid": False},
}


def graph_config(filename: str = "etascope", *, own_zoom: bool = False) -> dict[str, Any]:
    """Return a graph's settings.

    Plotly's mode bar would offer to send the data to Plotly's servers; ours must not, and no
    address it could be sent to is left in.

    Args:
        filename: Of a picture that is saved from the mode bar.
        own_zoom: Whether the page itself shows everything again after a zoom (`draw_from`);
            plotly would show every exploded run instead of the scale that was chosen.
    """
    return {
        **({"doubleClick": False} if own_zoom else {}),
        "displaylogo": False,
        "showSendToCloud": False,
        "plotlyServerURL": "",
        "topojsonURL": "",
        "responsive": True,
        "scrollZoom": False,
        "doubleClickDelay": 400,
        "modeBarButtonsToRemove": [
            "sendChartToCloud",
            "select2d",
            "lasso2d",
            "autoScale2d",
            "zoomIn2d",
            "zoomOut2d",
            *(["resetScale2d"] if own_zoom else []),
        ],
        "toImageButtonOptions": {"format": "svg", "filename": filename, "scale": 2},
    }


# --- Numbers in words a person reads: three significant digits, units always


_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_UNITS = ("B", "kB", "MB", "GB", "TB")
NONE = "–"


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with so many significant digits.

    Scientific notation only below .001 and above 9999; what is not a number is a dash.
    """
    if value is None or not math.isfinite(value):
        return NONE
    if value == 0:
        return "0"
    text = f"{value:.{digits - 1}e}"
    mantissa, exponent = text.split("e")
    power = int(exponent)
    if -3 <= power <= 3 or 0.001 <= abs(value) < 10_000:
        return _trimmed(f"{float(text):.{max(0, digits - 1 - power)}f}")
    return f"{_trimmed(mantissa)}×10{str(power).translate(_SUPERSCRIPT)}".replace("-", "−")


def _trimmed(text: str) -> str:
    short = text.rstrip("0").rstrip(".") if "." in text else text
    return short.replace("-", "−")


def signed(value: float | None) -> str:
    """Return a difference, with its sign."""
    text = number(value)
    return f"+{text}" if value is not None and math.isfinite(value) and value > 0 else text


def count(value: int | None) -> str:
    """Return a whole number with its thousands set apart, as sentences of the core write it."""
    return NONE if value is None else f"{value:,}"


def percent(share: float | None) -> str:
    """Return a share of one as a percentage."""
    return NONE if share is None else f"{number(100 * share)} %"


def duration(seconds: float | None) -> str:
    """Return a length of time in its two largest units."""
    if seconds is None or not math.isfinite(seconds):
        return NONE
    if seconds < 0.9995:
        return f"{number(1000 * seconds)} ms"
    if seconds < 10:
        return f"{number(seconds)} s"
    whole = round(seconds)
    for name, size, part, smaller in (("d", 86400, "h", 3600), ("h", 3600, "min", 60)):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size} {name}" + (f" {rest} {part}" if rest else "")
    if whole >= 60:
        return f"{whole // 60} min" + (f" {whole % 60} s" if whole % 60 else "")
    return f"{whole} s"


def rough(seconds: float) -> str:
    """Return an estimated length of time, no finer than an estimate is: it would only flicker."""
    if seconds < 7.5:
        return "a few seconds"
    if seconds < 55:
        return f"{round(seconds) if seconds < 20 else 5 * round(seconds / 5)} s"
    if seconds < 225:
        return duration(30 * round(seconds / 30))
    minutes = round(seconds / 60)
    if minutes < 58:
        return f"{minutes if minutes < 10 else 5 * round(minutes / 5)} min"
    return duration(600 * round(seconds / 600))


def about(seconds: float) -> str:
    """Return an estimated length of time as it stands in a sentence."""
    takes = rough(seconds)
    return takes if takes.startswith("a ") else f"about {takes}"


def size(count_of_bytes: float | None) -> str:
    """Return an amount of memory."""
    if count_of_bytes is None:
        return NONE
    amount, unit = float(count_of_bytes), 0
    while amount >= 999.5 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1000, unit + 1
    return f"{number(amount)} {_UNITS[unit]}"


def counted(amount: int, noun: str, plural: str | None = None) -> str:
    """Return "1 seed" or "3 seeds"."""
    return f"{count(amount)} {noun if amount == 1 else plural or noun + 's'}"


def looks() -> dict[str, Any]:
    """Return every method's style, and palette and template in light and dark."""
    by_scheme: dict[str, Any] = {
        scheme: {"palette": asdict(palette), "template": template(scheme).to_plotly_json()}
        for scheme, palette in PALETTE.items()
    }
    methods = {name: asdict(METHOD_STYLE[name]) for name in ("eb", "ib", "isgd")}
    return {"methods": methods, **by_scheme}
