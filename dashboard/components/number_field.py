"""The one field for numbers; `assets/number_field.js` draws it."""

from typing import Any, ClassVar

from dash.development.base_component import Component

from ib_core.written import NumberKind


class NumberField(Component):  # type: ignore[misc]  # Dash's classes are untyped
    """A text field that says what number it understood, or why it understood none.

    Mantine's own drops what it does not like while one types: `1e-4` became 14.
    """

    _namespace = "etascope_fields"
    _type = "NumberField"
    _prop_names: ClassVar[list[str]] = [
        "id", "label", "text", "value", "kind", "placeholder", "small", "error", "understood",
    ]  # fmt: skip
    _children_props: ClassVar[list[str]] = []
    _base_nodes: ClassVar[list[str]] = []
    _valid_wildcard_attributes: ClassVar[list[str]] = []
    available_properties = _prop_names
    available_wildcard_properties: ClassVar[list[str]] = []


def number_field(
    id: str,
    kind: NumberKind | None,
    *,
    text: str,
    label: str = "",
    value: float | None = None,
    hint: str = "",
    small: bool = False,
) -> Component:
    """Return a field.

    Args:
        id: Its `text` is what was typed, right or wrong.
        kind: Which numbers it takes; None: a list, which the server reads and answers with
            `error` or `understood`.
        text: What it shows at first.
        label: Above it; without one, a label elsewhere must name it.
        value: If given, its `value` is the last number that was right.
        hint: What stands in it while it is empty.
        small: As high as the other small controls.
    """
    given: dict[str, Any] = {
        "label": label or None,
        "value": value,
        "kind": kind.as_props() if kind else None,
        "placeholder": hint or None,
        "small": small or None,
    }
    set_ones = {name: one for name, one in given.items() if one is not None}
    return NumberField(id=id, text=text, **set_ones)
