"""A page with sliders and plots, as a person works with it."""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Page

from tests.e2e.browser import PATIENCE_MS, insist
from tests.servers import wait_for

#: How long a picture may take to follow a slider, in the best tenth of the tries: 50 ms on a quiet
#: machine, which only the full run is given.
FOLLOWS_MS = 50 if os.environ.get("ETASCOPE_TEST_FULL") else 1000

DRAWN_AFTER = """async ([slider, graph, times]) => {
  const thumb = document.querySelector(`#${slider} [role=slider]`);
  const found = [];
  for (let i = 0; i < times; i += 1) {
    const drawn = new Promise((done) => {
      const watch = new MutationObserver(() => { watch.disconnect(); done(performance.now()); });
      watch.observe(document.getElementById(graph), { childList: true });
    });
    const start = performance.now();
    const key = i % 10 < 5 ? "ArrowRight" : "ArrowLeft";
    thumb.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    const late = new Promise((done) => setTimeout(() => done(Infinity), 10000));
    found.push((await Promise.race([drawn, late])) - start);
    await new Promise((done) => setTimeout(done, 150));
  }
  return found;
}"""


@dataclass(frozen=True)
class Illustration:
    """An open illustrated page.

    Attributes:
        page: It.
        url: Of the server.
    """

    page: Page
    url: str

    def open(self, path: str, graph: str) -> None:
        """Go to an address and wait until a graph has been drawn."""
        self.page.goto(self.url + path)
        self.page.wait_for_function(
            "id => { const node = document.getElementById(id); return node && node.figure; }",
            arg=graph,
        )

    def insist(self, act: Callable[[], object], true: Callable[[], bool], what: str) -> None:
        """Touch until it is followed by what should follow."""
        insist(act, true, what=what)

    def until(self, true: Callable[[], bool], what: str) -> None:
        """Wait for what follows from a touch."""
        wait_for(true, seconds=PATIENCE_MS / 1000, every=0.05, what=what)

    def press(self, field: str, key: str, times: int = 1) -> float:
        """Move a slider by the keyboard; return the number its field then rests at."""
        thumb = self.page.locator(f"#{field}-slider [role=slider]")
        before = float(thumb.get_attribute("aria-valuenow") or 0)

        def pressed() -> None:
            thumb.focus()
            for _ in range(times):
                self.page.keyboard.press(key)

        def moved() -> bool:
            return float(thumb.get_attribute("aria-valuenow") or 0) != before

        insist(pressed, moved, what=f"{field} to move")

        def followed() -> bool:
            shown = float(thumb.get_attribute("aria-valuenow") or 0)
            return shown != before and math.isclose(self.number(field), shown, rel_tol=1e-6)

        # Presses are taken in one after another, and the last of several is sent a moment later.
        number = None
        while number != self.number(field):
            self.until(followed, f"{field} to move")
            number = self.number(field)
            self.page.wait_for_timeout(400)
        return number

    def milliseconds_to_draw(self, field: str, graph: str, times: int) -> list[float]:
        """Press keys on a slider; return how long a picture takes to be drawn after each."""
        found: list[float] = self.page.evaluate(DRAWN_AFTER, [f"{field}-slider", graph, times])
        return found

    def resting(self, place: str, milliseconds: int) -> str:
        """Return what is written somewhere once it has not changed for so long."""
        shown = ""
        while shown != self.words(place):
            shown = self.words(place)
            self.page.wait_for_timeout(milliseconds)
        return shown

    def address(self) -> str:
        """Return where the browser is; playwright's own `url` stands still while one waits."""
        return str(self.page.evaluate("() => window.location.href"))

    def number(self, field: str) -> float:
        """Return what a number field shows."""
        return float(self.page.input_value(f"#{field}"))

    def words(self, place: str) -> str:
        """Return what is written somewhere."""
        return self.page.inner_text(f"#{place}")

    def trace(self, graph: str, name: str) -> dict[str, Any]:
        """Return a trace as it is drawn now."""
        found: dict[str, Any] = self.page.evaluate(
            "([id, name]) => { const t = document.getElementById(id).figure"
            ".data.find(t => t.name === name); return {x: t.x, y: t.y, text: t.text}; }",
            [graph, name],
        )
        return found

    def layout(self, graph: str) -> dict[str, Any]:
        """Return a plot's axes, notes and colours."""
        found: dict[str, Any] = self.page.evaluate(
            "id => { const l = document.getElementById(id).figure.layout;"
            " return {x: l.xaxis.range, up: l.yaxis.type, title: l.yaxis.title.text,"
            " notes: (l.annotations || []).map(a => [a.text, a.x]),"
            " paper: l.template.layout.paper_bgcolor}; }",
            graph,
        )
        return found
