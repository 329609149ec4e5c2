"""Runs coroutines, and callbacks the way a browser would: over HTTP, with a context."""

import json
from typing import Any

import httpx
from dash.development.base_component import Component

from tests.coroutines import run


def names(component: Any) -> list[Component]:
    """Return a component and everything in it."""
    found: list[Component] = []
    queue = [component]
    while queue:
        one = queue.pop(0)
        if isinstance(one, list | tuple):
            queue[:0] = list(one)
        elif isinstance(one, Component):
            found.append(one)
            for prop in ("children", "label", "title"):
                queue.append(getattr(one, prop, None))
    return found


def text_of(component: Any) -> str:
    """Return all words of a component."""
    if isinstance(component, list | tuple):
        return " ".join(filter(None, (text_of(one) for one in component)))
    if isinstance(component, Component):
        return text_of(getattr(component, "children", None))
    return "" if component is None or isinstance(component, bool | dict) else str(component)


def by_id(component: Any, id: Any) -> Component:
    return next(one for one in names(component) if getattr(one, "id", None) == id)


def trigger(app: Any, output: str, pressed: tuple[Any, str, Any], **values: Any) -> Any:
    """Run the callback that has an output, as if a component's property had just changed.

    Args:
        app: The dashboard.
        output: `id.property`, as one of the callback's outputs.
        pressed: Id, property and new value of what changed.
        values: Of the other inputs and states, by id; anything else is None.
    """
    entry = next(one for one in app._callback_list if output in one["output"])
    id, prop, value = pressed
    key = id if isinstance(id, str) else json.dumps(id, sort_keys=True, separators=(",", ":"))

    def filled(wanted: list[dict[str, Any]]) -> list[Any]:
        return [_argument(one, id, prop, value, values) for one in wanted]

    body = {
        "output": entry["output"],
        "outputs": _outputs(entry["output"]),
        "inputs": filled(entry["inputs"]),
        "state": filled(entry["state"]),
        "changedPropIds": [f"{key}.{prop}"],
    }

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app=app.server)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.post("/_dash-update-component", json=body)

    answer = run(send())
    assert answer.status_code == 200, answer.text
    return answer.json()


def _argument(one: dict[str, Any], id: Any, prop: str, value: Any, values: dict[str, Any]) -> Any:
    own = one["id"]
    if own.startswith("{"):
        pattern = json.loads(own)
        same = isinstance(id, dict) and id["kind"] == pattern["kind"]
        return [{"id": id, "property": one["property"], "value": value}] if same else []
    known = value if (own, one["property"]) == (id, prop) else values.get(own)
    return {"id": own, "property": one["property"], "value": known}


def _outputs(output: str) -> Any:
    if not output.startswith(".."):
        id, _, prop = output.rpartition(".")
        return {"id": id, "property": prop.partition("@")[0]}
    parts = output.removeprefix("..").removesuffix("..").split("...")
    return [{"id": part.rpartition(".")[0], "property": part.rpartition(".")[2]} for part in parts]
