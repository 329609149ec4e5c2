"""From the form to a finished study, watched while it runs."""

import re

import httpx
from playwright.sync_api import Page, TimeoutError, expect

from tests.e2e.browser import insist


def fill(page: Page, **fields: str) -> None:
    for label, value in fields.items():
        page.get_by_label(label.replace("_", " "), exact=True).fill(value)


def show_more_options(page: Page) -> None:
    width = page.get_by_label("Width", exact=True)
    more = page.get_by_role("button", name="More options")
    insist(more.click, width.is_visible, what="more options")


def test_errors_stand_at_their_fields_and_the_forecast_follows_the_form(visit):
    page = visit.open("/new")
    forecast = page.locator("#new-forecast")
    expect(forecast).to_contain_text("Trials")
    fill(page, From="0")
    expect(page.locator("#new-rate-from-note")).to_have_text(
        "A learning rate must be above 0; got 0."
    )
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_disabled()
    fill(page, From="0.01", To="100", Number_of_rates="5", Seeds="2")
    expect(forecast).to_contain_text(re.compile(r"Trials\s*20"))
    expect(page.get_by_alt_text(re.compile("Rates 0.01, 0.1, 1, 10, 100"))).to_be_visible()
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()


def test_a_sweep_runs_is_shown_live_and_is_reused_when_asked_for_again(visit):
    page = visit.open("/new?task=digits_mlp&methods=eb,ib&lrs=0.05,0.5,5&seeds=2")
    page.get_by_label("Name of the study").fill("Watched")
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_url("**/studies/*")
    expect(page.get_by_role("heading", name="Watched")).to_be_visible()
    expect(page.locator(".page-head .state").first).to_be_visible()
    page.wait_for_function(
        "() => document.querySelector('#study-graph .js-plotly-plot')?._fullData"
        "?.filter(trace => trace.meta === 'mean').length === 2",
        timeout=90_000,
    )
    expect(page.locator("#study-sweeps .state").first).to_have_text("completed", timeout=90_000)
    expect(page.get_by_text("“Watched” has ended: completed.")).to_be_visible()
    page.get_by_role("link", name="Change and run again").click()
    expect(page.locator("#new-forecast")).to_contain_text(re.compile(r"To train\s*0"))
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_url(re.compile(r"/studies/\d+$"))
    expect(page.locator("#study-sweeps")).to_contain_text("12 trials, 12 reused")


def confirm(page: Page, button: str) -> None:
    """Press a button of the sweep, and Yes; what stands around them is drawn anew all the time."""
    asked, yes = (page.get_by_role("button", name=name) for name in (re.compile(button), "Yes"))
    insist(asked.click, yes.is_visible, what=f"the question after {button}")
    yes.click()


def test_a_running_sweep_can_be_cancelled_and_retried(visit):
    page = visit.open("/new?task=digits_mlp&seeds=40")
    page.get_by_label("Epochs").fill("400")
    page.get_by_label("Name of the study").fill("Long")
    expect(page.locator("#new-forecast")).to_contain_text(re.compile(r"\d (min|h)"))
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_url("**/studies/*")
    expect(page.locator("#study-status")).to_contain_text("trials ended")
    confirm(page, "Cancel")
    expect(page.locator("#study-sweeps .state").first).to_have_text("cancelled")
    confirm(page, "Retry")
    expect(page.locator("#study-sweeps .state").first).to_have_text(re.compile("queued|running"))
    confirm(page, "Cancel")
    expect(page.locator("#study-sweeps .state").first).to_have_text("cancelled")


#: A person's type and click, faster than any answer: both within one task of the browser.
TYPE_AND_CLICK = """([field, text]) => {
  const input = document.getElementById(field);
  Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(input, text);
  input.dispatchEvent(new Event('input', { bubbles: true }));
  document.getElementById('new-submit').click();
}"""


def test_a_click_right_after_typing_never_runs_what_was_there_before(visit):
    page = visit.open("/new?task=digits_mlp&methods=eb&lrs=0.5&seeds=1&epochs=1")
    run = page.get_by_role("button", name="Run", exact=True)
    expect(run).to_be_enabled()
    page.evaluate(TYPE_AND_CLICK, ["new-epochs", "2.5"])
    expect(page.locator("#new-error")).to_contain_text("Epochs: Epochs must be a whole number")
    expect(run).to_be_disabled()
    page.get_by_label("Epochs").fill("1")
    expect(run).to_be_enabled()
    page.evaluate(TYPE_AND_CLICK, ["new-epochs", "2"])
    try:
        page.wait_for_url("**/studies/*", timeout=10_000)
    except TimeoutError:  # a click that came too early for the new number runs nothing
        run.click()
        page.wait_for_url("**/studies/*")
    study = page.url.rsplit("/", 1)[-1]
    with httpx.Client(base_url=visit.url, trust_env=False, timeout=30) as http:
        (sweep,) = http.get(f"/api/studies/{study}").json()["sweep_ids"]
        assert http.get(f"/api/sweeps/{sweep}").json()["spec"]["epochs"] == 2


def test_back_finds_the_form_as_it_was_and_it_can_be_run_again(visit):
    page = visit.open("/")
    page.get_by_role("link", name="New sweep").first.click()
    expect(page.locator("#new-forecast")).to_contain_text("Trials")
    show_more_options(page)
    typed = {
        "From": "5e-2", "To": "5", "Number of rates": "3", "Seeds": "1, 2", "Width": "1_6",
        "Note": "so it was", "Name of the study": "Back & forth",
    }  # fmt: skip
    for label, text in typed.items():
        page.get_by_label(label, exact=True).fill(text)
    page.get_by_label("Implicit (IB)").uncheck()
    run = page.get_by_role("button", name="Run", exact=True)
    run.click()
    page.wait_for_url("**/studies/*")
    first = page.url
    expect(page.get_by_role("heading", name="Back & forth")).to_be_visible()
    expect(page.locator("#study-sweeps .state").first).to_have_text("completed", timeout=90_000)
    page.go_back()
    for label, text in typed.items():
        expect(page.get_by_label(label, exact=True)).to_have_value(text)
    expect(page.get_by_label("Implicit (IB)")).not_to_be_checked()
    expect(page.locator("#new-forecast")).to_contain_text(re.compile(r"To train\s*0"))
    run.click()
    page.wait_for_url("**/studies/*")
    assert page.url != first
    expect(page.locator("#study-sweeps")).to_contain_text("6 trials, 6 reused")
    page.go_back()
    page.reload()
    expect(page.get_by_label("From", exact=True)).to_have_value("5e-2")
    page.get_by_role("link", name="History").first.click()
    page.get_by_role("link", name="New sweep").first.click()
    expect(page.get_by_label("From", exact=True)).not_to_have_value("5e-2")
