"""The README's pictures: `make picture` draws the first from the bundle that the project has.

With `--pages URL` those of pages are taken, of an installation that runs and has its first study.
"""

import argparse
import sys
import tempfile
from base64 import b64decode
from pathlib import Path

import httpx

from backend.cli.paper import dashboard_look
from backend.paper.report import write_report
from ib_core.reproduction.bundle import Bundle, shipped_folder
from tests.e2e.browser import open_browser, patient, settled

ASSETS = Path(__file__).parents[2] / "dashboard" / "assets"
FILE = ASSETS / "jsb_chorales.png"
FIGURE = '[data-figure="05_jsb_chorales-text"]'
SIZE = {"format": "png", "width": 1120, "height": 600, "scale": 2}
#: Of pages: the file, the address, whether by day or night, and how much of it.
PAGES = (
    ("study_page.png", "/studies/{study}", "light", 1110),
    ("toy_page.png", "/toy?lr=2.5", "light", 960),
    ("updates_page.png", "/updates", "dark", 960),
)
#: The tag of the study that is shown.
SHOWN = "first-study"


def draw_first() -> None:
    """Write the report, open it, and save its picture of JSB Chorales."""
    with tempfile.TemporaryDirectory() as folder, open_browser() as browser:
        report = Path(folder) / "paper.html"
        write_report(Bundle(shipped_folder()), report, look=dashboard_look())
        page = browser.new_page(
            viewport={"width": 1280, "height": 900}, color_scheme="light", reduced_motion="reduce"
        )
        page.goto(report.as_uri())
        page.locator(FIGURE).scroll_into_view_if_needed()
        page.wait_for_selector(f"{FIGURE} .main-svg")
        address = page.evaluate(
            "([figure, size]) => Plotly.toImage(document.querySelector(figure), size)",
            [FIGURE, SIZE],
        )
    FILE.write_bytes(b64decode(address.partition(",")[2]))


def take_pages(url: str) -> None:
    """Save the upper ends of the pages that the README shows."""
    found = httpx.get(f"{url}/api/studies", params={"tag": SHOWN}, trust_env=False)
    study = found.raise_for_status().json()["items"][0]["id"]
    with open_browser() as browser:
        for file, path, scheme, height in PAGES:
            page = patient(
                browser.new_page(
                    viewport={"width": 1280, "height": height},
                    color_scheme=scheme,  # type: ignore[arg-type]
                    reduced_motion="reduce",
                )
            )
            page.goto(url + path.format(study=study))
            settled(page)
            page.wait_for_timeout(2000)  # the answer in words pushes the picture down
            settled(page)
            page.screenshot(path=str(ASSETS / file))
            page.close()


def main(arguments: list[str] | None = None) -> int:
    """Renew the README's first picture, or those of pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", metavar="URL", help="of an installation that runs already")
    given = parser.parse_args(arguments)
    if given.pages:
        take_pages(given.pages)
    else:
        draw_first()
    return 0


if __name__ == "__main__":
    sys.exit(main())
