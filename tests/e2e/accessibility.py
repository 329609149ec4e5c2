"""What axe-core finds wrong with a page for people who do not see it, or not all of it."""

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

#: Lesser findings are matters of taste; these keep somebody from using the page.
GRAVE = ("serious", "critical")
#: What is right is not described: that takes longer than finding what is wrong.
ONLY_FAULTS = {"resultTypes": ["violations"]}


def barriers(page: Page) -> list[str]:
    """Return the serious and critical findings, each with the elements it is about."""
    found = Axe().run(page, options=ONLY_FAULTS).response["violations"]
    return [_words(one) for one in found if one["impact"] in GRAVE]


def _words(violation: dict[str, Any]) -> str:
    places = "; ".join(f"{node['target']} {node['html'][:160]}" for node in violation["nodes"][:4])
    return f"{violation['impact']} {violation['id']}: {violation['help']} at {places}"
