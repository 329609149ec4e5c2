"""Pictures of every page: `python -m tests.e2e.screenshots http://127.0.0.1:8050 folder`.

Light and dark, 1280 and 390 pixels wide. Ends with an error if a page complained, asked another
host, or can be scrolled sideways.
"""

import argparse
import sys
from pathlib import Path

import httpx
from playwright.sync_api import Browser

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


def picture(
    browser: Browser, url: str, path: str, file: Path, *, width: int, scheme: str
) -> list[str]:
    """Save one page; return what is wrong with it."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    seen = watch(page, url)
    try:
        page.goto(url + path)
        settled(page, 700)
        page.screenshot(path=str(file), full_page=True)
        wide = page.evaluate("document.documentElement.scrollWidth")
    finally:
        page.close()
    sideways = [f"is {wide} px wide"] if wide > width else []
    return [*seen.complaints, *(f"asked {address}" for address in seen.foreign), *sideways]


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
    with open_browser() as browser:
        for name, path in pages_of(given.url).items():
            for width in WIDTHS if not wanted or name in wanted else ():
                for scheme in SCHEMES:
                    file = given.folder / f"{name}-{scheme}-{width}.png"
                    wrong = picture(browser, given.url, path, file, width=width, scheme=scheme)
                    faults += len(wrong)
                    for words in wrong:
                        sys.stderr.write(f"{file.name}: {words}\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
