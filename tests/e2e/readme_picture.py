"""The README's first picture, drawn from the bundle that comes with the project: `make picture`."""

import sys
import tempfile
from base64 import b64decode
from pathlib import Path

from backend.cli.paper import dashboard_look
from backend.paper.report import write_report
from ib_core.reproduction.bundle import Bundle, shipped_folder
from tests.e2e.browser import open_browser

FILE = Path(__file__).parents[2] / "dashboard" / "assets" / "jsb_chorales.png"
FIGURE = '[data-figure="05_jsb_chorales-text"]'
SIZE = {"format": "png", "width": 1120, "height": 600, "scale": 2}


def main() -> int:
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
    return 0


if __name__ == "__main__":
    sys.exit(main())
