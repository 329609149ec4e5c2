"""Every number field, typed and pasted into as people do: understood, or refused aloud."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from dashboard.api_client import CATALOG
from dashboard.components.browser_drawn import FONTS, WIDTHS
from dashboard.pages.new_sweep.body import FIELDS, KINDS, TYPED
from dashboard.pages.toy import SLIDERS as TOY
from dashboard.pages.updates import SLIDERS as UPDATES
from ib_core.written import NumberKind, Unreadable, read_number
from tests.dashboard.number_cases import CASES, WRITTEN
from tests.dashboard.own_answers import own_catalog
from tests.e2e.accessibility import barriers
from tests.e2e.browser import insist, patient, settled, watch
from tests.e2e.conftest import FakeSite, Visit
from tests.e2e.test_new_sweep import show_more_options

HOSTILE = ("1,5", "abc", "-500000", "16, 64", "nan", "1e999", "1e-1x", "2.5.1")
LISTS = {
    "rate_list": ("abc", "0.1, -1", "1:2"),
    "seeds": ("1-5", "2.5", "-5"),
    "clip": ("hard", "-1"),
    "epochs": ("2.5", "1, 2.5", "abc"),
    "width": ("-5", "16, x"),
    "batch_size": ("0", "8, 2.5"),
    "mu": ("0,5", "-1"),
    "warmup": ("2.5", "0, -1"),
    "depth": ("0", "two"),
    "inner_steps": ("0", "1; 2.5"),
    "momentum": ("0,9", "1.5"),
    "validation": ("0,2", "1"),
}
#: Texts for the options of a task of one's own, a whole number and a fraction.
OWN_TEXTS = {
    "width": ("abc", "2.5", "16, -64", "1e999", "true"),
    "dropout": ("0,5", ",5", "1.5", "nan", "0.1 x"),
}
#: Fields that only a search for the edge has.
OF_A_SEARCH = ("rate_within", "rate_most")
RUN = "#new-submit"


def at(id: str) -> str:
    """Return the selector of an id; that of one of many alike fields is JSON."""
    return f"[id='{id}']"


@dataclass(frozen=True)
class Fields:
    """A page's number fields, and how they are worked."""

    page: Page

    def clear(self, id: str) -> None:
        self.page.focus(at(id))
        self.page.keyboard.press("Control+A")
        self.page.keyboard.press("Delete")

    def type(self, id: str, text: str) -> None:
        self.clear(id)
        self.page.keyboard.type(text)

    def paste(self, id: str, text: str) -> None:
        self.clear(id)
        self.page.evaluate("text => navigator.clipboard.writeText(text)", text)
        self.page.keyboard.press("Control+V")

    def shown(self, id: str) -> str:
        return self.page.input_value(at(id))

    def said(self, id: str) -> str:
        """Return what stands beneath a field, as a screen reader is told to find it."""
        described = self.page.get_attribute(at(id), "aria-describedby")
        return self.page.inner_text(at(described or ""))

    def wrong(self, id: str) -> bool:
        return self.page.get_attribute(at(id), "aria-invalid") == "true"

    def value(self, id: str) -> object:
        """Return the number other parts of the page are told."""
        return self.page.evaluate("id => window.dash_component_api.getLayout(id).props.value", id)


@pytest.fixture
def fake_fields(fake_site: FakeSite, browser: Browser) -> Iterator[Fields]:
    """Pages of a dashboard whose API knows a task of somebody's own."""
    fake_site.api.catalog = own_catalog()
    CATALOG.forget("catalog")
    looks = {"viewport": {"width": 1280, "height": 900}}
    context = patient(browser.new_context(base_url=fake_site.url, **looks))
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=fake_site.url)
    page = context.new_page()
    seen = watch(page, fake_site.url)
    yield Fields(page)
    context.close()
    CATALOG.forget("catalog")
    assert seen.complaints == []


@pytest.fixture
def fields(visit: Visit, window: BrowserContext) -> Fields:
    window.grant_permissions(["clipboard-read", "clipboard-write"], origin=visit.url)
    return Fields(visit.page)


def sentence(text: str, kind: NumberKind) -> str | None:
    try:
        read_number(text, kind)
    except Unreadable as error:
        return str(error)
    return None


def refuses(fields: Fields, id: str, kind: NumberKind, place: int) -> None:
    """Check that whatever is no number of this kind stays as it was typed and is answered.

    One half of the texts is typed and the other pasted, the other way round in the next field.
    """
    for number, text in enumerate(HOSTILE):
        expected = sentence(text, kind)
        assert expected is not None, (id, text)
        enter = fields.paste if (number + place) % 2 else fields.type
        enter(id, text)
        assert (fields.shown(id), fields.said(id)) == (text, expected), (id, enter)
        assert fields.wrong(id)


def understands(fields: Fields, id: str, text: str, number: str) -> None:
    for enter in (fields.type, fields.paste):
        enter(id, text)
        assert (fields.shown(id), fields.said(id)) == (text, f"= {number}"), (id, enter)
        assert not fields.wrong(id)


def test_the_browser_reads_every_text_as_python_does(visit: Visit) -> None:
    page = visit.open("/guide")
    page.wait_for_function("() => window.etascope && window.etascope.readNumber")
    read = page.evaluate(
        "cases => cases.map(([kind, text]) => window.etascope.readNumber(text, kind))",
        [[kind.as_props(), text] for kind, text, _ in CASES],
    )
    said = [one.get("wrong", one.get("value")) for one in read]
    assert said == [expected for _, _, expected in CASES]
    numbers = [value for value, _ in WRITTEN]
    texts = page.evaluate("all => all.map(window.etascope.writeNumber)", numbers)
    assert texts == [text for _, text in WRITTEN]


@pytest.mark.parametrize(("path", "sliders"), [("/toy", TOY), ("/updates", UPDATES)])
def test_a_field_with_a_slider_keeps_its_number_while_its_text_is_wrong(
    visit: Visit, fields: Fields, path, sliders
) -> None:
    page = visit.open(path)
    expect(page.locator(".number-field-input")).to_have_count(len(sliders))
    for place, slider in enumerate(sliders.values()):
        thumb = page.locator(f"#{slider.slider_id} [role=slider]")
        expect(thumb).to_be_visible()
        refuses(fields, slider.id, slider.kind, place)
        understands(fields, slider.id, "1e0", "1")
        expect(thumb).to_have_attribute("aria-valuenow", "1")
        for text in HOSTILE[place % 2 :: 2]:  # typed, it would be a number on the way
            fields.paste(slider.id, text)
            assert fields.value(slider.id) == 1, text
    assert barriers(page) == []
    if path == "/toy":
        understands(fields, "toy-rate", "1e-1", "0.1")


def test_a_button_that_sets_the_last_right_number_again_clears_a_wrong_text(
    visit: Visit, fields: Fields
) -> None:
    visit.open("/toy").wait_for_selector("#toy-rate")
    fields.type("toy-rate", "abc")
    assert fields.value("toy-rate") == 1.75
    visit.page.click("#toy-paper")
    expect(visit.page.locator("#toy-rate")).to_have_value("1.75")
    assert not fields.wrong("toy-rate")


def test_no_field_of_a_sweep_lets_a_wrong_text_run(visit: Visit, fields: Fields) -> None:
    page = visit.open("/new")
    run = page.locator(RUN)
    show_more_options(page)
    expect(page.locator(".number-field-input")).to_have_count(len(TYPED))
    assert LISTS.keys() | KINDS.keys() == set(TYPED)
    for place, (name, kind) in enumerate(KINDS.items()):
        id = FIELDS[name]
        searched = "Find the edge" if name in OF_A_SEARCH else "Log-spaced grid"
        page.get_by_text(searched, exact=True).click()
        expect(page.locator(f"#{id}")).to_be_visible()
        before = fields.shown(id)
        expect(run).to_be_enabled()
        refuses(fields, id, kind, place)
        expect(page.locator("#new-forecast")).to_contain_text("Not ready")
        expect(run).to_be_disabled()
        fields.type(id, before)
    expect(run).to_be_enabled()
    understands(fields, FIELDS["rate_from"], "1e-4", "0.0001")
    expect(page.get_by_alt_text("Rates 1×10⁻⁴")).to_be_visible()
    page.get_by_text("List", exact=True).click()
    expect(page.locator(f"#{FIELDS['rate_list']}")).to_be_visible()
    fields.type(FIELDS["rate_list"], "1e-1, 1")
    for name, texts in LISTS.items():
        id, before = FIELDS[name], fields.shown(FIELDS[name])
        for text, enter in zip(texts, (fields.type, fields.paste, fields.type), strict=False):
            expect(run).to_be_enabled()
            enter(id, text)
            expect(page.locator(f"#{id}")).to_have_attribute("aria-invalid", "true")
            expect(run).to_be_disabled()
            assert fields.shown(id) == text
            fields.type(id, before)
    expect(run).to_be_enabled()
    fields.type(FIELDS["rate_list"], "abc")
    expect(page.locator("#new-forecast")).to_contain_text("Not ready")
    assert barriers(page) == []


def test_a_column_of_a_table_is_pasted_as_a_list(visit: Visit, fields: Fields) -> None:
    page = visit.open("/new?rates_mode=list&rate_list=1")
    expect(page.locator(RUN)).to_be_enabled()
    fields.paste(FIELDS["epochs"], "16\n64\n")
    assert fields.shown(FIELDS["epochs"]) == "16, 64"
    assert not fields.wrong(FIELDS["epochs"])
    fields.clear(FIELDS["epochs"])
    expect(page.locator("#new-epochs-note")).to_have_text("")
    expect(page.locator(RUN)).to_be_enabled()
    assert fields.shown(FIELDS["epochs"]) == ""
    fields.paste(FIELDS["epochs"], "16\n")
    assert not fields.wrong(FIELDS["epochs"])
    fields.paste(FIELDS["rate_list"], "0.1\r\n1\r\n10")
    expect(page.get_by_alt_text("Rates 0.1, 1, 10")).to_be_visible()


def test_what_a_list_was_understood_as_is_never_said_of_another_text(
    visit: Visit, fields: Fields
) -> None:
    page = visit.open("/new?clip=1e-4")
    show_more_options(page)
    note = page.locator(f"#{FIELDS['clip']}-note")
    expect(note).to_have_text("= 0.0001")
    page.focus(f"#{FIELDS['clip']}")
    page.keyboard.press("End")
    page.keyboard.type("1")
    late = {"understood": "0.0001", "answers": "1e-4", "error": None}
    page.evaluate(
        "([id, late]) => window.dash_clientside.set_props(id, late)", [FIELDS["clip"], late]
    )
    assert note.inner_text() == ""
    fields.type(FIELDS["rate_from"], "1e-4")
    late = {"error": "A learning rate is needed.", "answers": ""}
    page.evaluate(
        "([id, late]) => window.dash_clientside.set_props(id, late)", [FIELDS["rate_from"], late]
    )
    assert fields.said(FIELDS["rate_from"]) == "= 0.0001"


def test_no_option_of_a_task_of_one_s_own_lets_a_wrong_text_run(fake_fields: Fields) -> None:
    fields, page = fake_fields, fake_fields.page
    page.goto("/new?task=my_file.py:task&methods=eb")
    run = page.locator(RUN)
    expect(run).to_be_enabled()
    for place, (name, texts) in enumerate(OWN_TEXTS.items()):
        id = f'{{"key":"{name}","kind":"own-number"}}'
        for number, text in enumerate(texts):
            enter = fields.paste if (number + place) % 2 else fields.type
            enter(id, text)
            expect(page.locator(at(id))).to_have_attribute("aria-invalid", "true")
            expect(run).to_be_disabled()
            expect(page.locator("#new-forecast")).to_have_text(f"Not ready: see {name}.")
            assert fields.shown(id) == text
            assert fields.said(id).endswith((f"got {text.split()[-1]}.", "for two."))
            assert page.inner_text("#new-error") == ""
            fields.clear(id)
            expect(run).to_be_enabled()
            assert fields.said(id) == ""
    fields.type('{"key":"width","kind":"own-number"}', "1_6 64")
    expect(page.locator(at('{"key":"width","kind":"own-number"}-note'))).to_have_text(
        "= 2 values: 16 and 64"
    )
    expect(run).to_be_enabled()
    assert barriers(page) == []


def open_dialog(page: Page, name: str) -> None:
    """Open the dialog that makes a page's picture ready for a paper."""
    page.wait_for_function(
        "id => document.querySelector(`#${id} .js-plotly-plot`)?._fullData?.length > 3",
        arg=f"{name}-graph",
    )
    settled(page)
    if name == "study":
        item = page.get_by_role("menuitem", name="For a paper…")
        insist(page.get_by_role("button", name="Export").click, item.is_visible, what="the menu")
        item.click()
    else:
        page.get_by_role("button", name="Figure for a paper").click()
    expect(page.get_by_role("dialog", name="Figure for a paper")).to_be_visible()


@pytest.mark.parametrize(
    ("name", "path"), [("study", "/studies/1"), ("compare", "/compare?studies=1,2")]
)
def test_no_figure_for_a_paper_is_made_while_a_number_of_it_is_wrong(
    fake_fields: Fields, name: str, path: str
) -> None:
    fields, page = fake_fields, fake_fields.page
    page.goto(path)
    open_dialog(page, name)
    buttons = [page.locator(f"#{name}-paper-{kind}") for kind in ("pdf", "svg", "png")]
    for place, (part, kind) in enumerate({"width": WIDTHS, "font": FONTS}.items()):
        id = f"{name}-paper-{part}"
        before = fields.shown(id)
        refuses(fields, id, kind, place)
        for text in ("12,5", ""):
            fields.type(id, text)
            assert fields.said(id) == sentence(text, kind)
            for button in buttons:
                expect(button).to_be_disabled()
        fields.type(id, before)
        for button in buttons:
            expect(button).to_be_enabled()
    fields.type(f"{name}-paper-width", "12.5")
    with page.expect_download() as download:
        buttons[1].click()
    svg = Path(download.value.path()).read_text("utf-8")
    size = re.search(r'width="([\d.]+)pt"', svg)
    assert size is not None
    assert float(size.group(1)) == pytest.approx(12.5 / 2.54 * 72, abs=0.01)
