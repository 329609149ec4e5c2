"""Names, notes, tags and imported tasks that would run if a page took them for more than text."""

import httpx
import pytest
from playwright.sync_api import expect

from tests.e2e.browser import settled

pytestmark = pytest.mark.usefixtures("first_study")

MARK = "window.pwned=1"
NAME = f"<img src=x onerror={MARK}><b>Evil</b>"
NOTES = f"""<script>{MARK}</script> <img src=x onerror={MARK}>

[click](javascript:{MARK}) ![picture](x" onerror="{MARK})

<a href="javascript:{MARK}">here</a> <iframe srcdoc="<script>parent.{MARK}</script>"></iframe>
"""
#: What the library that draws markdown makes of an address it does not trust.
NOWHERE = "javascript:void(0)"
TASK = f"<svg onload={MARK}>"
#: Loss of one method at one rate, under names that are none.
RUNS = f'task,method,lr,seed,train_loss\n"{TASK}","<i>m</i>",1,1,0.5\n"{TASK}",eb,1,1,0.4\n'


@pytest.fixture
def evil(site: str):
    """A study all of whose texts are hostile; archived afterwards, so that others do not see it."""
    with httpx.Client(base_url=site, trust_env=False, timeout=30) as http:
        made = http.post("/api/import", content=RUNS, params={"name": NAME, "filename": NAME})
        study = made.raise_for_status().json()["study_id"]
        change = {"notes": NOTES, "tags": [TASK]}
        http.patch(f"/api/studies/{study}", json=change).raise_for_status()
        yield study
        http.delete(f"/api/studies/{study}").raise_for_status()


def test_hostile_texts_are_shown_and_do_nothing(visit, evil):
    page = visit.page
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    for path, ready in {
        "/history?q=Evil": ".history-name",
        f"/studies/{evil}": "#study-graph .js-plotly-plot",
        f"/compare?studies=1&studies={evil}": "#compare-graph .js-plotly-plot",
        f"/new?task={TASK}&methods=<b>": "main",
    }.items():
        visit.open(path)
        expect(page.locator(ready).first).to_be_visible()
        settled(page)
        assert page.evaluate("window.pwned") is None, path
        assert page.locator("img[src='x'], iframe, svg[onload]").count() == 0, path
        links = page.locator("a[href^='javascript']")
        found = {link.get_attribute("href") for link in links.all()}
        assert found <= {NOWHERE}, path
    visit.open(f"/studies/{evil}")
    expect(page.get_by_text("<b>Evil</b>").first).to_be_visible()
