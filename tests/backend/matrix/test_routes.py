"""Every route x every role, from one table."""

import re

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tests.backend.matrix.route_table import OTHER_RULES, RULES, Rule
from tests.backend.matrix.world import ROLES, World

ALL = RULES | OTHER_RULES
#: Reading a study, as a collaborator who may not change it would.
UNKNOWN = 10**12


def test_every_documented_route_is_in_the_table(site: FastAPI) -> None:
    documented = {
        (method.upper(), path)
        for path, operations in site.openapi()["paths"].items()
        for method in operations
    }
    assert documented - set(RULES) == set(), "say who may use these"
    assert set(RULES) - documented == set(), "these are gone"


def test_everything_else_that_is_served_is_in_the_table(site: FastAPI) -> None:
    from tests.backend.matrix.page_table import PAGES

    known = {path.split("{")[0].rstrip("/") or "/" for _, path in ALL} | set(PAGES)
    known |= {"/_dash-update-component", "/_dash-component-suites", "/api", "/assets"}
    served = {
        str(route.path).split("{")[0].rstrip("/") or "/"
        for route in site.router.routes
        if getattr(route, "path", None)
    }
    assert served - known == set()


@pytest.mark.parametrize("route", ALL, ids=lambda route: " ".join(route))
def test_a_route_lets_in_whom_it_should(
    client: TestClient, world: World, route: tuple[str, str]
) -> None:
    rule = ALL[route]
    world.study_id()  # there is a study with the id 1
    got = {role: status(client, world, route, rule, role) for role in ROLES}
    assert got == {role: rule.expected(role) for role in ROLES}


def status(client: TestClient, world: World, route: tuple[str, str], rule: Rule, role: str) -> int:
    client.cookies.clear()
    method, path = route
    answer = client.request(
        method,
        world.fill(path),
        json=rule.body,
        content=rule.content,
        params=rule.query,
        headers=world.headers[role],
    )
    client.cookies.clear()
    if answer.status_code >= 400 and path.startswith("/api") and answer.status_code != 503:
        assert set(answer.json()["error"]) == {"code", "message", "field", "hint"}
    return answer.status_code


@pytest.mark.parametrize(
    "route", [route for route in RULES if "{" in route[1]], ids=lambda route: " ".join(route)
)
def test_what_does_not_exist_is_not_found_rather_than_forbidden(
    client: TestClient, world: World, route: tuple[str, str]
) -> None:
    rule, (method, path) = RULES[route], route
    unknown = re.sub(r"\{\w+\}", str(UNKNOWN), path)
    for role in rule.allowed:
        answer = client.request(
            method,
            unknown,
            json=rule.body,
            content=rule.content,
            headers=world.headers[role],
        )
        assert answer.status_code == 404, role
    stranger = client.request(method, unknown, json=rule.body, headers={})
    assert stranger.status_code == 401


def test_other_people_s_studies_cannot_be_imported_into(client: TestClient, world: World) -> None:
    rule = RULES["POST", "/api/import"]
    got = {}
    for role in ("other", "owner", "admin"):
        answer = client.post(
            "/api/import",
            params={"study_id": world.study_id()},
            content=rule.content,
            headers=world.headers[role],
        )
        got[role] = answer.status_code
    assert got == {"other": 403, "owner": 201, "admin": 201}


def test_what_happened_to_a_study_is_for_everybody_who_may_read_it(
    client: TestClient, world: World
) -> None:
    study = world.study_id()
    got = {
        role: client.get(
            "/api/audit", params={"study_id": study}, headers=world.headers[role]
        ).status_code
        for role in ROLES
    }
    assert got == {role: RULES["GET", "/api/me"].expected(role) for role in ROLES}
