"""Pictures of every page: `make screenshots`, or `python -m tests.e2e.screenshots FOLDER`.

Light and dark, 1280 and 390 pixels wide, of an installation started for the purpose; `--url` takes
one that runs already. Ends with an error if a page complained, asked another
host, can be scrolled sideways, or if axe-core finds a serious barrier on it.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import product
from pathlib import Path

import httpx
from playwright.sync_api import Browser, BrowserContext

from tests.e2e.accessibility import barriers
from tests.e2e.browser import open_browser, patient, settled, watch
from tests.e2e.installation import begin_first_study, installation, submit, wait_for_study

WIDTHS = (1280, 390)
SCHEMES = ("light", "dark")


def pages_of(url: str) -> dict[str, str]:
    """Return every page's address, by name; studies are the newest that ended, and the first."""
    found = {
        "start": "/",
        "start-broken": "/?lr=2",
        "history": "/history",
        "new": "/new",
        "new-preset": "/new?preset=paper/05_jsb_chorales",
        "paper": "/paper",
        "methods": "/methods",
        "your-model": "/your-model",
        "toy": "/toy",
        "updates": "/updates",
        "workers": "/workers",
        "guide": "/guide",
        "guide-numbers": "/guide/numbers",
        "not-found": "/nowhere",
    }
    answer = httpx.get(f"{url}/api/studies", params={"limit": 50}, trust_env=False)
    studies = answer.json()["items"] if answer.is_success else [{"id": 1, "state": "completed"}]
    ids = [study["id"] for study in studies if study["state"] == "completed"]
    if ids:
        found["study"] = f"/studies/{ids[-1]}"
        found["study-log"] = f"/studies/{ids[-1]}?y=log&band=quantile"
        found["study-difference"] = f"/studies/{ids[-1]}?view=method"
        for view in ("map", "against", "learning", "box"):
            found[f"study-{view}"] = f"/studies/{ids[0]}?view={view}"
        found["study-clipping"] = f"/studies/{ids[0]}?view=clip"
        found["compare"] = f"/compare?studies={','.join(map(str, ids[:3]))}"
        found["trial"] = "/trials/1"
        found["study-drawer"] = f"/studies/{ids[-1]}?trials=1,2,3"
    return found


@contextmanager
def window(browser: Browser, *, width: int, scheme: str) -> Iterator[BrowserContext]:
    """Open a window whose pages share a cache."""
    context = patient(
        browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    )
    yield context
    context.close()


def examine(context: BrowserContext, url: str, path: str, picture: Path | None = None) -> list[str]:
    """Open one page, save its picture if asked to, and return what is wrong with it."""
    page = context.new_page()
    seen = watch(page, url)
    try:
        page.goto(url + path)
        settled(page)
        # Grids draw their rows when they come into view.
        page.evaluate("window.scrollTo(0, document.documentElement.scrollHeight)")
        settled(page)
        page.evaluate("window.scrollTo(0, 0)")
        if picture:
            page.screenshot(path=str(picture), full_page=True)
        wide, room = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
        found = barriers(page)
        if found:  # a grid that is just being made has an empty head for a moment
            page.wait_for_timeout(2000)
            found = barriers(page)
    finally:
        page.close()
    sideways = [f"is {wide} px wide"] if wide > room else []
    foreign = [f"asked {address}" for address in seen.foreign]
    return [*seen.complaints, *foreign, *sideways, *found]


#: Beside the first study: one whose pictures of clipping have something to show.
CLIPPED = {
    "task": "digits_mlp",
    "methods": ["eb", "ib"],
    "learning_rates": {"from": 0.01, "to": 100, "count": 9},
    "seeds": 4,
    "clip": [None, 1.0],
}


@contextmanager
def fresh_site() -> Iterator[str]:
    """Start an installation with two finished studies."""
    with tempfile.TemporaryDirectory() as home, installation(Path(home), "--no-paper") as started:
        url = started.url
        begin_first_study(url)
        wait_for_study(url)
        name = "Digits with and without clipping"
        wait_for_study(url, submit(url, name, CLIPPED, tags=["clipping"]))
        yield url


def take(url: str, folder: Path, wanted: Sequence[str]) -> int:
    """Save pages of a site; return how many things are wrong with them."""
    folder.mkdir(parents=True, exist_ok=True)
    faults = 0
    found = {name: path for name, path in pages_of(url).items() if not wanted or name in wanted}
    with open_browser() as browser:
        for width, scheme in product(WIDTHS, SCHEMES):
            with window(browser, width=width, scheme=scheme) as context:
                for name, path in found.items():
                    file = folder / f"{name}-{scheme}-{width}.png"
                    wrong = examine(context, url, path, file)
                    faults += len(wrong)
                    sys.stderr.writelines(f"{file.name}: {words}\n" for words in wrong)
    return faults


def main(arguments: list[str] | None = None) -> int:
    """Save all pages; return 1 if any has something wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--url", help="of an installation that runs already")
    parser.add_argument("--only", default="", help="names of pages, with commas")
    given = parser.parse_args(arguments)
    wanted = [name for name in given.only.split(",") if name]
    with nullcontext(given.url) if given.url else fresh_site() as url:
        return 1 if take(url, given.folder, wanted) else 0


if __name__ == "__main__":
    sys.exit(main())
