"""The page in a real browser: it renders, sorts, prints, fits a phone, and runs nothing hostile.

Needs playwright (``pip install 'hetcal[browser]'``) and Debian's chromium; nothing is downloaded.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from tests.patience import PATIENCE
from tests.report.conftest import HOSTILE

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="needs playwright: pip install 'hetcal[browser]'"
)
CHROMIUM = os.environ.get("HETCAL_CHROMIUM") or shutil.which("chromium")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="needs chromium: apt-get install chromium, or set HETCAL_CHROMIUM"
)

_MILLISECONDS = 1000 * PATIENCE

# WCAG's contrast of each text with the nearest background behind it; returns what falls short.
_CONTRAST = """() => {
  const parse = (c) => {
    const m = c.match(/[\\d.]+/g).map(Number);
    return m.length > 3 ? m : [...m, 1];
  };
  const channel = (v) => {
    v /= 255;
    return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  };
  const light = (c) => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const text = getComputedStyle(e).backgroundColor;
      if (!text.startsWith("rgb")) continue;
      const c = parse(text);
      if (c[3] > 0.99) return c;
    }
    return [255, 255, 255, 1];
  };
  const poor = [];
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    const box = e.getBoundingClientRect();
    if (!own || !box.width || ["SCRIPT", "STYLE", "TITLE", "title"].includes(e.tagName)) continue;
    const style = getComputedStyle(e);
    if (style.visibility === "hidden" || box.width <= 1) continue;
    const color = parse(e instanceof SVGElement ? style.fill : style.color);
    const [a, b] = [light(color), light(behind(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5)) poor.push([e.tagName, ratio, e.textContent.slice(0, 30)]);
  }
  return poor;
}"""


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"], timeout=_MILLISECONDS
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def address(report, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    report.to_html(path)
    return path.as_uri()


@pytest.fixture
def opened(browser, address):
    """Open the page; afterwards nothing may have been complained about or fetched."""
    contexts, complaints, fetched = [], [], []

    def open_page(where: str = address, **options):
        context = browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | options))
        contexts.append(context)
        context.set_default_timeout(_MILLISECONDS)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: fetched.append(request.url))
        page.goto(where)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    assert all(url.startswith(("file:", "blob:")) for url in fetched)
    assert len(fetched) <= 2 * len(contexts)


def column(page, table: str, number: int) -> list[str]:
    return page.eval_on_selector_all(
        f"#{table} tbody tr", f"rows => rows.map(r => r.cells[{number}].dataset.value)"
    )


def test_it_renders(opened, report):
    page = opened()
    assert page.title() == report.title
    assert page.locator("section").count() == 10
    assert page.locator("svg.chart").count() >= 6
    for picture in page.locator("svg.chart").all():
        box = picture.bounding_box()
        assert box["width"] > 200
        assert box["height"] > 150


def test_hostile_names_stay_text(opened, report):
    page = opened()
    assert page.evaluate("window.hit") is None
    assert page.locator("section img, section script, main h1").count() == 0
    rule = report.by[0].rule
    assert "<script>" in rule
    assert page.locator("#by-table tbody th").first.text_content() == rule


def test_a_click_sorts_and_a_second_one_turns_around(opened):
    page = opened()
    button = page.locator("#comparison-table thead button", has_text="accuracy")
    place = page.evaluate("b => b.closest('th').cellIndex", button.element_handle())
    button.click()
    found = [float(v) for v in column(page, "comparison-table", place)]
    assert found == sorted(found)
    button.click()
    found = [float(v) for v in column(page, "comparison-table", place)]
    assert found == sorted(found, reverse=True)
    head = page.locator("#comparison-table thead th").nth(place)
    assert head.get_attribute("aria-sort") == "descending"


def test_it_sorts_by_keyboard(opened):
    page = opened()
    page.locator("#comparison-table thead button").first.focus()
    page.keyboard.press("Enter")
    found = column(page, "comparison-table", 0)
    assert found == sorted(found, key=str.casefold)
    page.keyboard.press("Space")
    assert column(page, "comparison-table", 0) == found[::-1]


def test_everything_can_be_reached_by_keyboard(opened):
    page = opened()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    reached = set()
    for _ in range(90):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement === document.body"):
            break  # past the last one
        reached.add(page.evaluate("document.activeElement.outerHTML.slice(0, 60)"))
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none"
    for words in ('id="theme"', "copy", "sort", "summary"):
        assert any(words in element for element in reached), words


def test_hover_says_the_numbers(opened, report):
    page = opened()
    page.locator("svg.chart circle.hot").first.hover()
    first = report.reliability[0].bins[0]
    assert f"observed {first.observed:.3f}" in page.locator("#tip").text_content()
    page.keyboard.press("Escape")
    assert page.locator("#tip").is_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_is_readable(opened, scheme):
    page = opened(color_scheme=scheme)
    assert page.evaluate(_CONTRAST) == []


def test_dark_by_itself_and_by_hand(opened):
    page = opened(color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    page.locator("#theme").click()
    light = page.evaluate(background)
    assert dark != light
    assert page.evaluate(_CONTRAST) == []
    assert page.locator("#theme").text_content() == "Dark"


@pytest.mark.parametrize("width", [320, 390, 768])
def test_a_phone_needs_no_sideways_scrolling(opened, width):
    page = opened(viewport={"width": width, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_it_prints(opened, tmp_path):
    page = opened()
    target = tmp_path / "report.pdf"
    page.pdf(path=target, format="A4")
    assert target.read_bytes().startswith(b"%PDF")
    assert target.stat().st_size > 20_000
    page.emulate_media(media="print")
    assert page.locator("nav").is_hidden()
    # What is wider than the paper would be cut off.
    page.set_viewport_size({"width": 720, "height": 1000})
    assert page.evaluate("document.documentElement.scrollWidth") <= 720


def test_copy_and_save(opened, report):
    page = opened()
    page.evaluate("window.setTimeout = () => 0")  # what the button says then stays
    button = page.locator("button.copy").first
    button.click()
    # The clipboard answers a moment later; raises where it never does.
    button.filter(has_text=re.compile("^(Copied|Selected)$")).wait_for()
    with page.expect_download() as download:
        page.locator("#save").click()
    saved = download.value.path()
    from hetcal import Report

    assert Report.from_json(saved) == report


def test_the_page_of_a_monitor(opened, watched, tmp_path):
    path = tmp_path / "monitor.html"
    watched.to_html(path)
    page = opened(path.as_uri())
    assert page.title() == watched.title
    assert page.evaluate("window.hit") is None
    assert page.locator("section img, section script, main h1").count() == 0
    assert page.locator("svg.chart").count() == 6
    assert page.locator("#changes-table tbody th").first.text_content() == HOSTILE["x1"]
    page.locator("svg.chart circle.hot").first.hover()
    assert "flagged" in page.locator("#tip").text_content()
    button = page.locator("#groups-table thead button", has_text="flagged")
    button.click()
    found = [float(v) for v in column(page, "groups-table", 3)]
    assert found == sorted(found)
    with page.expect_download() as download:
        page.locator("#save").click()
    saved = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert saved == watched.to_dict()


@pytest.mark.parametrize("which", ["many_classes", "tiny", "watched"])
def test_other_reports(opened, which, request, tmp_path):
    path = tmp_path / "other.html"
    request.getfixturevalue(which).to_html(path)
    page = opened(path.as_uri(), viewport={"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate(_CONTRAST) == []
