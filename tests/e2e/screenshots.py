"""Pictures of every page: `python -m tests.e2e.screenshots http://127.0.0.1:8050 folder`.

Light and dark, 1280 and 390 pixels wide. Ends with an error if a page complained, asked another
host, can be scrolled sideways, or if axe-core finds a serious barrier on it.
"""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import httpx
from playwright.sync_api import Browser, BrowserContext

from tests.e2e.accessibility import barriers
from tests.e2e.browser import open_browser, settled, watch

WIDTHS = (1280, 390)
SCHEMES = ("light", "dark")


def pages_of(url: str) -> dict[str, str]:
    """Return every page's address, by name; a study and a trial are the newest there are."""
    found = {
        "history": "/",
        "new": "/new",
        "new-preset": "/new?preset=paper/05_jsb_chorales",
        "paper": "/paper",
        "toy": "/toy",
        "updates": "/updates",
        "workers": "/workers",
        "guide": "/guide",
        "not-found": "/nowhere",
    }
    answer = httpx.get(f"{url}/api/studies", params={"limit": 5}, trust_env=False)
    studies = answer.json()["items"] if answer.is_success else [{"id": 1, "sweep_ids": []}]
    ids = [study["id"] for study in studies]
    if ids:
        found["study"] = f"/studies/{ids[-1]}"
        found["study-log"] = f"/studies/{ids[-1]}?y=log&band=quantile"
        found["study-difference"] = f"/studies/{ids[-1]}?view=method"
        found["study-clipping"] = f"/studies/{ids[-1]}?view=clip"
        found["compare"] = f"/compare?studies={','.join(map(str, ids[:3]))}"
        found["trial"] = "/trials/1"
        found["study-drawer"] = f"/studies/{ids[-1]}?trials=1,2,3"
    return found


@contextmanager
def window(browser: Browser, *, width: int, scheme: str) -> Iterator[BrowserContext]:
    """Open a window whose pages share a cache."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    yield context
    context.close()


def picture(context: BrowserContext, url: str, path: str, file: Path) -> list[str]:
    """Save one page; return what is wrong with it."""
    page = context.new_page()
    seen = watch(page, url)
    try:
        page.goto(url + path)
        settled(page, 700)
        # Grids draw their rows when they come into view.
        page.evaluate("window.scrollTo(0, document.documentElement.scrollHeight)")
        settled(page, 300)
        page.evaluate("window.scrollTo(0, 0)")
        page.screenshot(path=str(file), full_page=True)
        wide, room = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
        found = barriers(page)
    finally:
        page.close()
    sideways = [f"is {wide} px wide"] if wide > room else []
    foreign = [f"asked {address}" for address in seen.foreign]
    return [*seen.complaints, *foreign, *sideways, *found]


def main(arguments: list[str] | None = None) -> int:
    """Save all pages; return 1 if any has something wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="names of pages, with commas")
    given = parser.parse_args(arguments)
    given.folder.mkdir(parents=True, exist_ok=True)
    wanted = [name for name in given.only.split(",") if name]
    faults = 0
    found = {n: p for n, p in pages_of(given.url).items() if not wanted or n in wanted}
    with open_browser() as browser:
        for width, scheme in product(WIDTHS, SCHEMES):
            with window(browser, width=width, scheme=scheme) as context:
                for name, path in found.items():
                    file = given.folder / f"{name}-{scheme}-{width}.png"
                    wrong = picture(context, given.url, path, file)
                    faults += len(wrong)
                    sys.stderr.writelines(f"{file.name}: {words}\n" for words in wrong)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
