"""What can be taken along from a study, opened as whoever gets it would."""

import re
import zlib
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import insist, settled

PLOT = "#study-graph .js-plotly-plot"
STREAM = re.compile(rb"stream\r?\n(.*?)\r?\nendstream", re.DOTALL)
pytestmark = pytest.mark.usefixtures("first_study")


def drawn(page: Page) -> Page:
    page.wait_for_function(f"() => document.querySelector('{PLOT}')?._fullData?.length > 3")
    settled(page)
    return page


def open_menu(page: Page) -> None:
    offered = page.get_by_role("menuitem").first
    insist(page.get_by_role("button", name="Export").click, offered.is_visible, what="the menu")


def taken(page: Page, kind: str) -> bytes:
    """Take the picture along; return the file."""
    open_menu(page)
    with page.expect_download() as download:
        page.get_by_role("menuitem", name=kind, exact=True).click()
    assert download.value.suggested_filename == f"etascope-study-1.{kind.lower()}"
    return Path(download.value.path()).read_bytes()


def streams(pdf: bytes) -> list[bytes]:
    return [zlib.decompress(found) for found in STREAM.findall(pdf)]


def texts(pdf: bytes) -> set[str]:
    """Return every text as it could be selected: letters by the file's own table of them."""
    found, letters = streams(pdf), {}
    for table in found:
        pairs = re.findall(rb"<([0-9a-f]{4})><([0-9a-f]{4})>", table)
        letters |= {code.lower(): chr(int(letter, 16)) for code, letter in pairs}
    shown = [one for page in found for one in re.findall(rb"<([0-9a-fA-F]+)> Tj", page)]
    codes = [re.findall(rb"....", one.lower()) for one in shown]
    return {"".join(letters.get(code, "?") for code in one) for one in codes}


def test_a_pdf_has_lines_and_letters_and_no_pixels(visit):
    page = drawn(visit.open("/studies/1"))
    open_menu(page)
    expect(page.get_by_role("menuitem").first).to_have_text("PDF")
    page.get_by_role("button", name="Export").click()
    expect(page.get_by_role("menuitem").first).to_be_hidden()
    pdf = taken(page, "PDF")
    assert b"/Subtype /Image" not in pdf
    assert pdf.count(b"/FontFile2") == 2
    assert {"learning rate", "training loss after 10 epochs", "Explicit (EB)"} <= texts(pdf)
    assert "?" not in "".join(texts(pdf))
    curves = max(streams(pdf), key=lambda one: one.count(b" l"))
    assert curves.count(b" l") > 100
    assert page.locator(".mantine-Notification-root").count() == 0


def test_a_pdf_keeps_what_it_cannot_spell_readable(visit):
    """The font has no raised digits, and dropping one would print another number."""
    page = drawn(visit.open("/studies/1"))
    page.evaluate(
        f"() => window.Plotly.relayout(document.querySelector('{PLOT}'),"
        " {'title.text': 'about 3.75×10⁻¹⁴ or 数'})"
    )
    shown = texts(taken(page, "PDF"))
    assert {"about 3.75×10", "−14"} <= shown
    expect(page.get_by_text("The PDF's font lacks 数.")).to_be_visible()


def test_the_picture_can_be_taken_along_exactly_as_shown(visit):
    page = drawn(visit.open("/studies/1?y=log"))
    for kind, start in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
        assert taken(page, kind).startswith(start)
    page.evaluate(
        """() => {
            const append = document.body.appendChild.bind(document.body);
            document.body.appendChild = (node) => {
                const added = append(node);
                if (node.tagName === "IFRAME") {
                    const shown = () => node.contentDocument.body.innerHTML;
                    node.contentWindow.print = () => { window.printed = shown(); };
                }
                return added;
            };
        }"""
    )
    open_menu(page)
    page.get_by_role("menuitem", name="Print…").click()
    page.wait_for_function("() => typeof window.printed === 'string'")
    assert "<svg" in page.evaluate("window.printed")


def test_every_trial_can_be_exported(visit):
    page = visit.open("/studies/1")
    open_menu(page)

    def exported(name: str) -> httpx.Response:
        href = page.get_by_role("menuitem", name=name, exact=True).get_attribute("href")
        return httpx.get(f"{visit.url}{href}", trust_env=False, timeout=60).raise_for_status()

    assert len(exported("CSV").text.splitlines()) == 1 + 165
    assert '"digits_mlp"' in exported("JSON").text
    assert exported("Parquet").content.startswith(b"PAR1")
