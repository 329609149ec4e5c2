"""Methods by name: the catalogue's, torch's own as `torch.optim.NAME`, and those of one's files.

A name may say options, as in `torch.optim.AdamW(weight_decay=0.1,schedule=cosine)`. The canonical
form says only what differs from the defaults, in the order of the alphabet, so that one method has
one name and one trial one address.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from typing import Any

from ib_core.errors import IBError, InvalidSpec, UnknownName
from ib_core.methods.base import OF_EVERY_METHOD, OWN_METHODS, Method, split_schedule
from ib_core.methods.catalogue import METHODS
from ib_core.options import Option, Value, choice, number, read_options, whole
from ib_core.written import written

#: Arguments of torch's optimizers that do not change what is computed, or not for us.
NO_OPTIONS = frozenset(["params", "lr", "foreach", "maximize", "capturable", "differentiable"])
#: Options of the catalogue's methods that are settings of a sweep, said beside its methods.
OF_A_SWEEP = frozenset(["momentum", "isgd_form", "inner_steps"])
#: Names of the largest sweep, as said and as they are then called, are read several times in a row.
MOST_KEPT = 50_000
#: How large a number of an optimizer may be.
LARGEST = 1e12
_SAID = re.compile(r"(?P<base>[^()\s]+)(?:\((?P<options>[^()]*)\))?")


def find_method(name: str) -> Method:
    """Return the method a name says, with the options it says; its `name` is the canonical one.

    Raises:
        UnknownName: If there is no such method or option.
        InvalidSpec: If an option's value is not taken, or torch's optimizer cannot be used.
    """
    return _found(name, len(OWN_METHODS), OWN_METHODS.get(name.partition("(")[0]))


@lru_cache(maxsize=MOST_KEPT)
def _found(name: str, _count: int, _own: Method | None) -> Method:
    match = _SAID.fullmatch(name.strip())
    if match is None:
        raise InvalidSpec(
            f"A method is a name, perhaps with options as in eb(schedule=cosine); got {name!r}.",
            field="methods",
        )
    method = _base(match["base"])
    if match["options"] is None:
        return method
    taken = {**sayable(method), **OF_EVERY_METHOD}
    given = _pairs(match["options"], name)
    for option in given.keys() & method.options.keys() - taken.keys():
        raise InvalidSpec(
            f"{option} is a setting of the whole sweep, not of a method's name: say --"
            f"{option.replace('_', '-')} {given[option]}, or {option} among the sweep's options.",
            field="methods",
        )
    try:
        values = read_options(taken, given, match["base"], typed=True)
    except (InvalidSpec, UnknownName) as error:
        error.field = "methods"
        raise
    said = {name: value for name, value in values.items() if value != taken[name].default}
    schedule, rest = split_schedule(values)
    found = method.saying(rest, schedule, canonical_name(match["base"], said))
    _refuse_unmakable(found)
    return found


def _refuse_unmakable(method: Method) -> None:
    """Refuse options with which its optimizer cannot be made, in the optimizer's own words.

    One that cannot be made of two small parameters with its defaults either may want others: that
    is found out where it trains.
    """
    if method.factory is None or not method.here or (sentence := _unmakable(method)) is None:
        return
    if _unmakable(method.saying({}, method.schedule, method.name)) is None:
        raise InvalidSpec(sentence, field="methods")


def _unmakable(method: Method) -> str | None:
    """Return why a method's optimizer cannot be made of a matrix and a vector; None if it can."""
    from ib_core.methods.own_stacks import make_optimizer

    assert method.factory is not None
    sentence: str | None = None
    matrix, vector = _small_parameters()
    for params in ((matrix, vector), (matrix,)):  # some move matrices only
        try:
            make_optimizer(method.factory, params, 1e-3, method.values, method.name)
        except IBError as error:
            sentence = sentence or f"{error.message.rstrip('.')}."
        else:
            return None
    return sentence


@cache
def _small_parameters() -> tuple[Any, Any]:
    """Return a matrix and a vector; to make some for every name keeps other threads waiting."""
    import torch  # here, because whoever only names methods need not carry it

    return torch.nn.Parameter(torch.zeros(2, 2)), torch.nn.Parameter(torch.zeros(2))


def sayable(method: Method) -> dict[str, Option]:
    """Return the options of its own that a method's name may say."""
    hidden = OF_A_SWEEP if method.factory is None else ()
    return {name: option for name, option in method.options.items() if name not in hidden}


def split_name(name: str) -> tuple[str, dict[str, Value]]:
    """Return a name's method and the options it says, numbers as numbers; knows no method."""
    base, _, options = name.partition("(")
    said: dict[str, Value] = {}
    for part in filter(None, options.removesuffix(")").split(",")):
        option, _, text = part.partition("=")
        said[option] = _value(text)
    return base, said


def _value(text: str) -> Value:
    """Return what `_text` wrote."""
    words: dict[str, Value] = {"true": True, "false": False, "none": None}
    if text in words:
        return words[text]
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def canonical_name(base: str, said: Mapping[str, Value]) -> str:
    """Return a method's name with what is said about it."""
    if not said:
        return base
    texts = (f"{name}={_text(value)}" for name, value in sorted(said.items()))
    return f"{base}({','.join(texts)})"


def _text(value: Value) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return written(value) if isinstance(value, int | float) else str(value)


def _pairs(text: str, name: str) -> dict[str, str]:
    found = {}
    for part in filter(None, (one.strip() for one in re.split("[,;]", text))):
        key, equals, value = part.partition("=")
        if not equals:
            raise InvalidSpec(
                f"Options are said as name=value; got {part!r} in {name!r}.", field="methods"
            )
        found[key.strip()] = value.strip()
    return found


def _base(name: str) -> Method:
    if name in METHODS:
        return METHODS[name]
    if name in OWN_METHODS:
        return OWN_METHODS[name]
    if name.startswith("torch.optim."):
        return _of_torch(name.removeprefix("torch.optim."))
    raise UnknownName(
        "method", name, [*METHODS, *OWN_METHODS, "torch.optim.<name>"], field="methods"
    )


@lru_cache(maxsize=64)
def _of_torch(name: str) -> Method:
    """Return a class of `torch.optim` as a method."""
    import torch  # here, because whoever only names the catalogue's methods need not carry it

    known = torch_optimizers()
    if name not in known:
        raise UnknownName("optimizer in torch.optim", name, known, field="methods")
    kind = getattr(torch.optim, name)
    method = method_of_class(kind, f"torch.optim.{name}")
    method.summary = f"Torch's {name}, with its defaults."
    return method


@lru_cache(maxsize=1)
def torch_optimizers() -> tuple[str, ...]:
    """Return the names of torch's optimizers that can train a stack."""
    import torch

    return tuple(
        sorted(
            name
            for name, kind in vars(torch.optim).items()
            if inspect.isclass(kind)
            and issubclass(kind, torch.optim.Optimizer)
            and kind is not torch.optim.Optimizer
        )
    )


def method_of_class(kind: Callable[..., Any], name: str) -> Method:
    """Return an optimizer class as a method, its options read from its signature.

    Raises:
        InvalidSpec: If its steps need a closure.
    """
    refuse_closures(kind, name)
    options, spread = _options_of(kind)
    tuples = {name: inspect.signature(kind).parameters[name].default for name, _ in spread.values()}

    def build(params: Any, lr: float, **values: Any) -> Any:
        return kind(params, lr=lr, **_gathered(values, spread, tuples))

    method = Method(build, options, name=name, title=name)
    method.short = name.rpartition(".")[2]
    return method


def optimizer_method(kind: Any, name: str) -> Method:
    """Return what somebody named as a method.

    Raises:
        InvalidSpec: If no optimizer can be made with it.
    """
    from torch.optim import Optimizer  # here, because whoever only names methods need not carry it

    if inspect.isclass(kind) and not issubclass(kind, Optimizer):
        why = "it is a class of another kind"
    elif not callable(kind):
        why = f"it is a {type(kind).__name__}"
    else:
        try:
            method = method_of_class(kind, name)
        except (TypeError, ValueError):
            why = "nobody can tell what it takes"
        else:
            if (said := _unmakable(method)) is None:
                return method
            why = said.removesuffix(".")
    raise InvalidSpec(
        f"{name} is no method: {why}. A method is an optimizer class of torch's kind, or a "
        "function (params, lr, **options) that returns one.",
        field="methods",
    )


def refuse_closures(kind: Any, name: str) -> None:
    """Refuse an optimizer whose step evaluates the loss again by itself."""
    step = getattr(kind, "step", None)
    try:
        closure = inspect.signature(step).parameters.get("closure") if step else None
    except (TypeError, ValueError):
        return
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise InvalidSpec(
            f"{name} evaluates the loss several times a step (a closure), which a sweep's trials "
            "cannot give it; use an optimizer that steps from gradients.",
            field="methods",
        )


def _options_of(kind: Callable[..., Any]) -> tuple[dict[str, Option], dict[str, tuple[str, int]]]:
    """Return options for a signature's numbers and switches, and where parts of tuples belong."""
    options: dict[str, Option] = {}
    spread: dict[str, tuple[str, int]] = {}
    for name, parameter in inspect.signature(kind).parameters.items():
        if name in NO_OPTIONS:
            continue
        default = parameter.default
        if name == "fused":
            options[name] = choice(False, True, default=False)
        elif isinstance(default, tuple):
            for place, one in enumerate(default):
                if isinstance(one, int | float):
                    part = f"{name.removesuffix('s')}{place + 1}"
                    options[part] = number(-LARGEST, LARGEST, float(one))
                    spread[part] = (name, place)
        elif (option := _option(default)) is not None:
            options[name] = option
    return options, spread


def _option(default: Any) -> Option | None:
    if isinstance(default, bool):
        return choice(False, True, default=default)
    if isinstance(default, int) and default > 1:
        return whole(0, 10**9, default)
    if isinstance(default, int | float) and abs(default) <= LARGEST:  # some mean "none" by infinity
        return number(-LARGEST, LARGEST, float(default))
    return None


def _gathered(
    values: Mapping[str, Any],
    spread: Mapping[str, tuple[str, int]],
    tuples: Mapping[str, tuple[Any, ...]],
) -> dict[str, Any]:
    """Return arguments, parts of tuples put where they stand in the signature's defaults."""
    plain = {name: value for name, value in values.items() if name not in spread}
    parts: dict[str, list[Any]] = {}
    for name, value in values.items():
        if name in spread:
            whole_name, place = spread[name]
            parts.setdefault(whole_name, list(tuples[whole_name]))[place] = value
    return {**plain, **{name: tuple(found) for name, found in parts.items()}}
