"""Every page and every callback x every role, from one table."""

import ast
import inspect
import json
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text

import dashboard.pages
from backend.db import Base, transaction
from backend.schemas import CSRF_HEADER
from dashboard.dash_blocks import REGISTERED
from tests.backend.matrix.page_table import PAGES, READS, WRITES
from tests.backend.matrix.world import AGENT, KNOWN, ROLES, STRANGERS, World

HTML = {"Accept": "text/html"}


def declared() -> list[Any]:
    """Return every callback's declaration in the order the app has them; None: the router's."""
    return [None, *REGISTERED]


def name_of(entry: Any) -> str:
    if entry is None:
        return "router.show"
    module = entry.function.__module__.removeprefix("dashboard.").removeprefix("pages.")
    return f"{module}.{entry.function.__name__}"


@pytest.fixture(scope="module")
def callbacks(pages: Any) -> dict[str, dict[str, Any]]:
    """Every callback that runs on the server, by name."""
    together = zip(declared(), pages._callback_list, strict=True)
    return {
        name_of(entry): known
        for entry, known in together
        if entry is None or not isinstance(entry.function, str)
    }


def test_every_page_and_every_callback_is_in_the_table(callbacks: dict[str, Any]) -> None:
    assert {page.path for page in dashboard.pages.PAGES} == set(PAGES)
    assert set(callbacks) - READS - set(WRITES) == set(), "say what these may do"
    assert (READS | set(WRITES)) - set(callbacks) == set(), "these are gone"


WRITING = {
    "create_study", "update_study", "delete_study", "submit", "cancel", "retry", "import_runs",
    "change_password", "create_token", "revoke_token", "create_user", "update_user",
    "delete_user", "reset_password", "add_note", "delete_note", "save_view", "delete_view",
    "load_bundle",
}  # fmt: skip


def test_callbacks_said_to_read_make_no_call_that_writes() -> None:
    wrong = [
        name_of(entry)
        for entry in REGISTERED
        if not isinstance(entry.function, str)
        and name_of(entry) in READS
        and WRITING & _calls(entry.function)
    ]
    assert wrong == []


def _calls(function: Any) -> set[str]:
    tree = ast.parse(inspect.getsource(function))
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in ("calls", "team_calls")
    }


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_for_whom_it_should_be(
    client: TestClient, world: World, callbacks: dict[str, Any], path: str
) -> None:
    address = world.fill(path.replace("<", "{").replace(">", "}"))
    for role in STRANGERS:
        answer = client.get(address, headers=HTML | world.headers[role])
        assert answer.status_code == 303, role
        assert answer.headers["location"].startswith("/login"), role
    seen = {}
    for role in KNOWN:
        page = client.get(address, headers=HTML | world.headers[role])
        assert page.status_code == 200, role
        assert "<title>Etascope</title>" in page.text
        shown = press(
            client,
            callbacks["router.show"],
            ("location", "pathname", address),
            {"recoveries": 0, "location": address},
            world.headers[role],
        )
        assert shown.status_code == 200
        seen[role] = "Only admins may do this." not in shown.text
        assert "cannot be shown" not in shown.text or not seen[role]
    assert seen == {role: role in PAGES[path] for role in KNOWN}


@pytest.mark.parametrize("name", sorted(READS | set(WRITES)))
def test_no_callback_answers_strangers_or_other_sites(
    client: TestClient, world: World, callbacks: dict[str, Any], name: str
) -> None:
    pressed, values = ("location", "pathname", "/"), {}
    for role in STRANGERS:
        answer = press(client, callbacks[name], pressed, values, world.headers[role])
        assert answer.status_code == 401, role
    forged = world.headers["admin"] | {CSRF_HEADER: "0" * 64}
    assert press(client, callbacks[name], pressed, values, forged).status_code == 403


@pytest.mark.parametrize("name", WRITES)
def test_a_writing_callback_has_an_effect_only_for_whom_it_should(
    client: TestClient, world: World, callbacks: dict[str, Any], name: str
) -> None:
    rule, changed = WRITES[name], {}
    for role in KNOWN:
        pressed, values = rule.pressed(world), rule.values(world)
        before = everything()
        answer = press(client, callbacks[name], pressed, values, world.headers[role])
        assert answer.status_code in (200, 204), answer.text
        changed[role] = everything() != before
        if role not in rule.allowed:
            refusals = ("may read only", "may change", "Only admins", "There is no", "cannot")
            assert any(words in answer.text for words in refusals), (role, answer.text)
    assert changed == {role: role in rule.allowed for role in KNOWN}


def everything() -> dict[str, list[Any]]:
    """Return all rows of what people write."""
    ignored = {"login_attempts", "workers"}
    with transaction() as session:
        return {
            table: _rows(session, table) for table in Base.metadata.tables if table not in ignored
        }


def _rows(session: Any, table: str) -> list[Any]:
    columns = [
        column.name
        for column in Base.metadata.tables[table].columns
        if column.name != "last_used_at"
    ]
    return session.execute(text(f"SELECT {', '.join(columns)} FROM {table}")).all()


def press(
    client: TestClient,
    known: dict[str, Any],
    pressed: tuple[Any, str, Any],
    values: dict[str, Any],
    headers: dict[str, str],
) -> Any:
    """Run a callback the way a browser would."""
    id, prop, value = pressed
    key = id if isinstance(id, str) else json.dumps(id, sort_keys=True, separators=(",", ":"))

    def argument(one: dict[str, Any]) -> Any:
        own = one["id"]
        if own.startswith("{"):
            same = isinstance(id, dict) and id["kind"] == json.loads(own)["kind"]
            return [{"id": id, "property": one["property"], "value": value}] if same else []
        mine = (own, one["property"]) == (id, prop)
        return {
            "id": own, "property": one["property"], "value": value if mine else values.get(own),
        }  # fmt: skip

    body = {
        "output": known["output"],
        "outputs": outputs(known["output"]),
        "inputs": [argument(one) for one in known["inputs"]],
        "state": [argument(one) for one in known["state"]],
        "changedPropIds": [f"{key}.{prop}"],
    }
    client.cookies.clear()
    return client.post("/_dash-update-component", json=body, headers=headers)


def outputs(output: str) -> Any:
    if not output.startswith(".."):
        id, _, prop = output.rpartition(".")
        return {"id": id, "property": prop}
    parts = output.removeprefix("..").removesuffix("..").split("...")
    return [{"id": part.rpartition(".")[0], "property": part.rpartition(".")[2]} for part in parts]


def test_roles_of_the_table_are_all_of_them() -> None:
    assert set(ROLES) == {*KNOWN, *STRANGERS, AGENT}


#: What may stand in an address, by hand or by somebody's malice; an address has 64 KB.
NASTY = (
    "", "0", "-1", "nan", "1e999", "٣", "9" * 19, "9" * 5000, "1," * 5000, "x" * 20_000,
    "\x00", "\ud800", "a%00b", "../..", "[1", '{"a":1}', "<b>", "eb(warmup=1)", "1:2:3", "'", "😀",
)  # fmt: skip
#: Parameters that a page reads by hand, besides those of its controls.
BY_HAND = ("study", "sweep", "preset", "task", "lrs", "profile", "name", "lr", "experiment")


@pytest.mark.parametrize("path", PAGES)
def test_no_address_breaks_a_page(
    client: TestClient,
    world: World,
    callbacks: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
    path: str,
) -> None:
    layout = next(page.layout for page in dashboard.pages.PAGES if page.path == path)
    controls = getattr(inspect.getmodule(layout), "CONTROLS", ())
    names = dict.fromkeys([*(control.name for control in controls), *BY_HAND])
    good = world.fill(path.replace("<", "{").replace(">", "}"))
    addresses = [
        (good, "?" + "&".join(f"{name}={quote(one, errors='replace')}" for name in names))
        for one in NASTY
    ]
    if "<" in path:
        start = path.partition("<")[0]
        addresses += [(start + quote(one, safe="", errors="replace"), "") for one in NASTY if one]
    for pathname, search in addresses:
        shown = press(
            client,
            callbacks["router.show"],
            ("location", "pathname", pathname),
            {"recoveries": 0, "location": search},
            world.headers["admin"],
        )
        assert shown.status_code == 200, (pathname[:80], search[:80])
        assert "response" in shown.json(), (pathname[:80], search[:80])
        assert not caplog.records, (pathname[:80], search[:80], caplog.text[-2000:])
