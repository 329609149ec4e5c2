"""The one list of methods.

Whatever lists methods takes them from `METHODS`, in its order: legends, tables, forms, the
catalogue. Nothing here needs torch, so that a page may look a colour up.
"""

import zlib
from dataclasses import replace

from ib_core.methods.base import OTHER_LOOKS, Look, Method
from ib_core.options import choice, number, whole

#: What Polyak's step and its kin take for the lowest value of a loss.
_LOWEST = number(-1e12, 1e12, 0.0, help="f*: a value that the loss never falls below.")

METHODS: dict[str, Method] = {
    "eb": Method(
        None,
        title="Explicit (EB)",
        short="EB",
        summary="Backpropagation with plain gradient steps.",
        further=("The yardstick: headroom and threshold are measured against it."),
        look=Look("#D55E00", "dot", "diamond", ink_light="#A84A00", ink_dark="#FF8A3D"),
        step="plain",
    ),
    "ib": Method(
        None,
        title="Implicit (IB)",
        short="IB",
        summary="Every layer's step solves its own proximal problem, eq. (8); the rest is EB.",
        further=(
            "A step takes half as long again as EB's in a small network, hardly longer in a large "
            "one; as the rate goes to 0 it becomes EB. The paper's convolutions are trained "
            "explicitly."
        ),
        look=Look("#0072B2", "solid", "circle", ink_light="#00639B", ink_dark="#58B2E8"),
        implicit=True,
        step="plain",
    ),
    "ib_plus": Method(
        None,
        title="Implicit + output (IB+)",
        short="IB+",
        summary="IB whose linear output layer is solved exactly under its loss.",
        further=(
            "IB linearises the loss above every layer, so its last layer still takes steps of "
            "explicit size; IB+ solves that layer with its loss. Only for a linear last layer "
            "under squared error or softmax cross-entropy. A step takes up to a quarter longer "
            "than IB's."
        ),
        look=Look("#009E73", "solid", "square", ink_light="#00704F", ink_dark="#2FCB9E"),
        implicit=True,
        implicit_output=True,
        step="plain",
    ),
    "isgd": Method(
        None,
        title="Exact ISGD",
        short="ISGD",
        summary="The implicit step of the whole network, eq. (1), by an inner optimisation.",
        further=(
            "By default 100 inner gradient steps at a tenth of the rate, so a step costs a hundred "
            "times EB's. `text` pulls back with weight 1/rate, as the paper writes; `authors` with "
            "weight 1, as its runs did."
        ),
        look=Look("#CC79A7", "dashdot", "triangle-up", ink_light="#9A3F70", ink_dark="#E3A3C6"),
        exact=True,
        copies=2,
        options={"isgd_form": choice("text", "authors"), "inner_steps": whole(1, 10_000, 100)},
        step="plain",
    ),
    "momentum": Method(
        None,
        title="SGD + momentum",
        short="Mom.",
        summary="Explicit steps with heavy-ball momentum.",
        further=(
            "For comparison; torch's own. It remembers one number a weight, and its step costs up "
            "to a third more than EB's. Its best rates lie some ten times below EB's."
        ),
        look=Look("#E69F00", "dash", "cross", ink_light="#8A5F00", ink_dark="#F2B840"),
        step="mover.Momentum",
        copies=1,
        options={"momentum": number(0, 0.9999, 0.9)},
    ),
    "adam": Method(
        None,
        title="Adam",
        short="Adam",
        summary="Explicit steps with per-weight rates (torch's defaults).",
        further=(
            "For comparison; torch's own. It remembers two numbers a weight, and its step costs up "
            "to twice EB's. Steps have the rate's size whatever the gradient's, so it needs rates "
            "far below EB's."
        ),
        look=Look("#56B4E9", "longdash", "x", ink_light="#1B6FA0", ink_dark="#7CC8F2"),
        step="adam.Adam",
        copies=2,
    ),
    "sps": Method(
        None,
        title="Polyak step (SPS)",
        short="SPS",
        summary="EB whose rate is cut to loss/|gradient|^2: no step aims below a loss of 0.",
        further=(
            "SPSmax: the learning rate is its ceiling. It costs one norm more than EB. It needs "
            "losses whose lowest value f* is near 0, or told: `sps(f_star=-3)`. Where the loss "
            "ends far above f*, its steps are too long; a loss that falls below it ends the trial."
        ),
        look=Look("#B4446C", "solid", "hexagon", ink_light="#96305A", ink_dark="#E285A8"),
        step="proximal.PolyakStep",
        options={"f_star": _LOWEST},
    ),
    "ngn": Method(
        None,
        title="Gauss-Newton rate (NGN)",
        short="NGN",
        summary="EB whose rate shrinks to lr/(1 + lr |gradient|^2/(2 loss)).",
        further=(
            "A Gauss-Newton step on the root of the loss. It costs one norm more than EB, and "
            "needs losses that come near 0 from above, or `ngn(f_star=-3)`: then it reads the loss "
            "above f*."
        ),
        look=Look("#8A7F00", "solid", "star", ink_light="#6E6500", ink_dark="#CFC23A"),
        step="proximal.NGN",
        options={"f_star": _LOWEST},
    ),
    "ngn_m": Method(
        None,
        title="NGN + momentum (NGN-M)",
        short="NGN-M",
        summary="NGN with heavy-ball momentum.",
        further=(
            "It remembers one number a weight, as momentum does, and costs one norm more than that."
        ),
        look=Look("#B8A838", "dash", "star-diamond", ink_light="#5F7000", ink_dark="#E0D56A"),
        step="proximal.NGNMomentum",
        copies=1,
        options={"momentum": number(0, 0.9999, 0.9), "f_star": _LOWEST},
    ),
    "momo": Method(
        None,
        title="Model-based momentum (MoMo)",
        short="MoMo",
        summary="SPS on averages of gradients and losses: momentum whose rate is cut likewise.",
        further=(
            "It remembers one number a weight, and costs two inner products more than momentum."
        ),
        look=Look("#D9707A", "dash", "hexagon2", ink_light="#A8323C", ink_dark="#F0A0A6"),
        step="proximal.MoMo",
        copies=1,
        options={"momentum": number(0, 0.9999, 0.9), "f_star": _LOWEST},
    ),
    "ib_momentum": Method(
        None,
        title="Implicit + momentum",
        short="IB mom.",
        summary="IB's step from a point ahead: theta + m (theta - theta_old).",
        further=("It costs what IB and momentum do together, and remembers one number a weight."),
        look=Look("#3D5FA8", "dash", "circle-open", ink_light="#34508E", ink_dark="#8FA9E3"),
        implicit=True,
        step="proximal.ImplicitMomentum",
        copies=1,
        options={"momentum": number(0, 0.9999, 0.9)},
    ),
    "ib_conv": Method(
        None,
        title="Implicit filters (IB conv)",
        short="IB conv",
        summary="IB whose convolutions take the implicit step, too: every place is a row (App. B).",
        further=(
            "The paper says it is possible and trains its filters explicitly, as `ib` does here. "
            "The patch under a filter is the row's z, and a batch rule shares all places of all "
            "rows. With `own` each place answers as if the loss were its alone, and training "
            "breaks far below IB's rates; with `share` it holds as IB does. Unfolding the patches "
            "costs next to nothing on images of 8 x 8, and up to five times EB's step on 28 x 28."
        ),
        look=Look("#00567A", "dashdot", "hexagon-open", ink_light="#00567A", ink_dark="#6DB9DD"),
        implicit=True,
        implicit_filters=True,
        step="plain",
    ),
    "proxprop": Method(
        None,
        title="ProxProp",
        short="Prox",
        summary="Hidden layers solve for the outputs that a gradient step asks of them.",
        further=(
            "IB's direct rival: it solves for all rows at once and linearises the activation. "
            "Every layer solves a linear system of its inputs or rows, whichever are fewer, which "
            "costs up to three times EB's step; the last layer steps explicitly."
        ),
        look=Look("#7A5C9E", "dashdot", "pentagon", ink_light="#65498A", ink_dark="#B79BD8"),
        step="proximal.ProxProp",
        solves_layers=True,
    ),
    "adamw": Method(
        None,
        title="AdamW",
        short="AdamW",
        summary="Adam whose weights decay beside the step (torch's defaults).",
        further=(
            "It costs what Adam does, in time and in two numbers a weight. The decay multiplies "
            "by 1 - rate x 0.01, so it breaks by itself at rates above 200; "
            "`adamw(weight_decay=0)` is Adam."
        ),
        look=Look("#2F8FBF", "longdash", "x-open", ink_light="#1D6A91", ink_dark="#6FC3EC"),
        step="adam.AdamW",
        copies=2,
        options={"weight_decay": number(0, 10, 0.01)},
    ),
    "nadam": Method(
        None,
        title="NAdam",
        short="NAdam",
        summary="Adam with Nesterov's momentum (torch's defaults).",
        further=("It costs what Adam does, in time and in two numbers a weight."),
        look=Look("#7FA7D9", "longdash", "cross-open", ink_light="#41699C", ink_dark="#9DBFEA"),
        step="adam.NAdam",
        copies=2,
    ),
    "rmsprop": Method(
        None,
        title="RMSprop",
        short="RMSp.",
        summary="The gradient over the root of its running square (torch's defaults).",
        further=("A little cheaper than Adam, with one number a weight and no momentum."),
        look=Look("#4FA3A5", "longdash", "diamond-open", ink_light="#2E7072", ink_dark="#7BCBCD"),
        step="adam.RMSprop",
        copies=1,
    ),
    "lion": Method(
        None,
        title="Lion",
        short="Lion",
        summary="Every weight moves by the rate, up or down: the sign of a running mean.",
        further=(
            "Cheaper than Adam, with one number a weight. Its steps never shrink with the "
            "gradient, so it needs rates three to ten times below Adam's, and a schedule to settle."
        ),
        look=Look("#C8832B", "dashdot", "triangle-left", ink_light="#8C5716", ink_dark="#EBAA56"),
        step="adam.Lion",
        copies=1,
        options={"weight_decay": number(0, 10, 0)},
    ),
    "muon": Method(
        None,
        title="Muon",
        short="Muon",
        summary="Matrices move by their momentum made orthogonal; the rest by AdamW.",
        further=(
            "Five rounds of matrix products a step, which wide layers pay for by several times "
            "EB's step where batches are small; two numbers a weight, of a matrix one of them only "
            "while it steps. Steps are of Adam's size, and do not shrink with the gradient."
        ),
        look=Look("#5B4FA0", "dashdot", "square-open", ink_light="#54489A", ink_dark="#A79BE8"),
        step="adam.Muon",
        copies=2,
        options={"weight_decay": number(0, 10, 0)},
    ),
    "schedule_free": Method(
        None,
        title="Schedule-free AdamW",
        short="SF-AdamW",
        summary="AdamW on a point between its steps and their average, which is what is kept.",
        further=(
            "It needs no schedule, and costs a little more than AdamW with three numbers a weight. "
            "A network with BatchNorm must see data at the average before it is evaluated."
        ),
        look=Look("#3E9B5F", "dash", "triangle-right", ink_light="#2B7245", ink_dark="#6FCF92"),
        step="adam.ScheduleFree",
        copies=3,
        options={"weight_decay": number(0, 10, 0)},
    ),
    "prodigy": Method(
        None,
        title="Prodigy",
        short="Prodigy",
        summary="Adam that finds its own rate; the learning rate multiplies it, 1 is meant.",
        further=(
            "It remembers four numbers a weight and costs a third more than Adam. It begins with "
            "tiny steps that grow, so short trainings end before it has found its rate."
        ),
        look=Look("#9C6B4E", "dot", "star-square", ink_light="#7C5138", ink_dark="#D2A283"),
        step="adam.Prodigy",
        copies=4,
    ),
}


for _name, _method in METHODS.items():
    _method.name = _name


def steps_plainly(method: str) -> bool:
    """Return whether a method, given by name, steps by its rate times a gradient, solved or not.

    Only then is 2/rate the sharpness above which explicit steps grow: to others the rate is a
    ceiling or a scale, momentum moves the bound, and of anybody's own optimizer nothing is known.
    """
    base = method.partition("(")[0]
    return base in METHODS and METHODS[base].step == "plain"


#: Of torch's optimizers, those whose steps have a size of their own, and those whose have not.
_SIZED = ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop", "Adagrad", "Rprop")
_UNSIZED = ("SGD",)


def mup_of(method: str) -> str | None:
    """Return the muP scaling that is for a method, given by name; None: for none or any.

    `mup` is for steps that are the rate times a gradient, or its average; `mup_adam` for those
    whose size does not follow the gradient's. See `ib_core.tasks.networks`.
    """
    base = method.partition("(")[0]
    torchs = base.removeprefix("torch.optim.") if base.startswith("torch.optim.") else ""
    if base in ("eb", "momentum") or torchs in _UNSIZED:
        return "mup"
    if torchs in _SIZED or (base in METHODS and METHODS[base].step.startswith("adam.")):
        return "mup_adam"
    return None


#: Options that belong to one method; EB has none of them and is compared with all the same.
OF_A_METHOD = frozenset(
    {"method_code", *(name for method in METHODS.values() for name in method.options)}
)


def place(method: str) -> int:
    """Return a method's place in legends and tables; those that nobody knows come last."""
    return list(METHODS).index(method) if method in METHODS else len(METHODS)


# --- What curves look like: one method, one colour, dash and marker, wherever it is drawn


#: Runs made elsewhere are grey; the rest is for methods without a look.
IMPORTED_LOOK = Look("#868E96", "dash", "pentagon", ink_light="#5C636A", ink_dark="#ADB5BD")
#: Symbols and dashes of further curves of one method in one picture (other studies, other rules).
VARIANTS: tuple[tuple[str | None, str | None], ...] = (
    (None, None),
    ("triangle-up", "longdash"),
    ("star", "dashdot"),
    ("hexagon", "longdashdot"),
    ("triangle-down", "dash"),
    ("bowtie", "dot"),
)


def method_look(method: str) -> Look:
    """Return a method's look; its options change nothing about it.

    A method that is not in the list keeps one of the spare looks wherever it is drawn.
    """
    base = method.partition("(")[0]
    if base in METHODS:
        return METHODS[base].look
    return OTHER_LOOKS[zlib.crc32(base.encode()) % len(OTHER_LOOKS)]


def series_look(
    method: str, *, clipped: bool = False, imported: bool = False, variant: int = 0
) -> Look:
    """Return the look of one curve among several.

    Args:
        method: Whose curve.
        clipped: Clipped curves have open markers.
        imported: Runs made elsewhere are grey; marker and dash still tell a known method.
        variant: 0 for a method's first curve in a picture, 1 for its second, ...
    """
    own = method_look(method)
    if imported:
        known = method.partition("(")[0] in METHODS
        shape = own if known else IMPORTED_LOOK
        own = replace(IMPORTED_LOOK, dash=shape.dash, marker=shape.marker)
    marker, dash = VARIANTS[variant % len(VARIANTS)]
    marker = marker or own.marker
    opened = f"{marker.removesuffix('-open')}-open" if clipped else marker
    return replace(own, dash=dash or own.dash, marker=opened)
