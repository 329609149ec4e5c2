"""A team in real browsers: in by the first link, a study, a colleague, and out again."""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.backend.accounts import PASSWORD, SECRET
from tests.e2e.browser import patient, settled, watch
from tests.e2e.installation import SHIPPED, Installation, installation
from tests.servers import wait_for


@pytest.fixture(scope="module")
def team(tmp_path_factory) -> Iterator[Installation]:
    """Run `etascope up` with accounts on."""
    with installation(tmp_path_factory.mktemp("team"), AUTH="on", SECRET=SECRET) as team:
        yield team


def etascope(team: Installation, *words: str) -> str:
    """Run a command on the team's machine."""
    command = [sys.executable, "-P", "-m", "backend.cli", *words]
    done = subprocess.run(command, env=team.environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@contextmanager
def visit(browser: Browser, team: Installation, width: int = 1280) -> Iterator[Page]:
    """Open a browser of one's own; whatever its pages complained about fails the test."""
    context = patient(browser.new_context(viewport={"width": width, "height": 900}))
    page = context.new_page()
    seen = watch(page, team.url)
    yield page
    context.close()
    assert seen.foreign == []
    # Requests under way when somebody is locked out are refused or cut; of an answer that was cut
    # while it was read, Dash wants to show the text, and finds that it has been read.
    expected = ("401", "Failed to fetch", "ERR_ABORTED", "body stream already read")
    assert [w for w in seen.complaints if not any(part in w for part in expected)] == []


def log_in(page: Page, name: str, password: str = PASSWORD) -> None:
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()


def test_from_the_first_link_to_a_shared_study_and_out_again(browser, team):
    with visit(browser, team) as page:
        link = wait_for(lambda: _link(team), what="the first admin's link")
        page.goto(link)
        assert "#" not in page.url
        page.get_by_label("Name").fill("ada")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Create the account").click()
        expect(page.get_by_role("heading", name="How far can the learning rate")).to_be_visible()
        expect(page.get_by_role("link", name="ada")).to_be_visible()

        page.goto(f"{team.url}/history")
        page.get_by_role("button", name="Load the reproduction").click()
        expect(page.get_by_text("about ten seconds")).to_be_visible()
        fold = page.get_by_role("button", name="The paper's reproduction")
        expect(fold).to_contain_text(f"{SHIPPED} studies")
        expect(page.locator(".history-name")).to_have_count(0)
        fold.click()
        expect(page.locator(".history-name")).to_have_count(SHIPPED)
        page.goto(f"{team.url}/paper")
        counts = page.locator(".verdict-counts")
        expect(counts).to_have_count(2)  # a line a profile
        experiments = page.request.get(f"{team.url}/api/paper").json()["experiments"]
        for line, profile in enumerate(("authors", "text")):
            told = Counter(one[profile]["word"] for one in experiments)
            assert told["not tested"] == 0
            for word, count in told.items():
                expect(counts.nth(line)).to_contain_text(f"{word} {count} of {len(experiments)}")

        page.goto(f"{team.url}/new?task=digits_mlp&methods=eb&lrs=0.05,0.5&seeds=1")
        page.get_by_label("Name of the study").fill("Ours")
        page.get_by_role("button", name="Run", exact=True).click()
        page.wait_for_url("**/studies/*")
        page.get_by_label("Add a note").fill("Look at <b>0.5</b>.")
        page.get_by_role("button", name="Add", exact=True).click()
        expect(page.get_by_text("Look at <b>0.5</b>.")).to_be_visible()
        shared = f"{page.url}?split=test"

        page.goto(f"{team.url}/admin")
        expect(page.get_by_text("that is you")).to_be_visible()
        links = "links => links.map(one => one.offsetHeight)"
        assert max(page.eval_on_selector_all(".navigation-link", links)) < 48  # a line each
        etascope(team, "user", "create", "bob", "--generate")
        expect(page.get_by_role("textbox", name="Role of bob")).to_be_visible()  # without a reload
        password = etascope(team, "user", "password", "bob", "--generate").split()[-1]
        with visit(browser, team, width=390) as other:
            other.goto(shared)
            assert "/login?next=" in other.url
            log_in(other, "bob", "not the password")
            expect(other.get_by_role("alert")).to_contain_text("wrong")
            log_in(other, "bob", password)
            other.wait_for_url("**/studies/*?split=test")
            expect(other.get_by_role("heading", name="Ours", level=1)).to_be_visible()
            expect(other.get_by_text("Look at <b>0.5</b>.")).to_be_visible()
            expect(other.get_by_role("button", name="Edit")).to_have_count(0)
            wide, room = other.evaluate("[document.documentElement.scrollWidth, innerWidth]")
            assert wide <= room
            etascope(team, "user", "disable", "bob")
            expect(other).to_have_url(re.compile(r"/login\?next="))  # the next thing asked shows it

        page.goto(team.url)
        settled(page)
        page.get_by_role("button", name="Log out").click()
        page.wait_for_url("**/login")
        page.go_back()
        page.wait_for_url("**/login*")
        page.goto(shared)
        assert "/login?next=" in page.url


def _link(team: Installation) -> str | None:
    words = team.log.read_text().split()
    return next((word for word in words if "/welcome#" in word), None)
