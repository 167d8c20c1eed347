"""The page as text: one file, nothing from outside, names stay text, numbers are the report's."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from hetcal.report.html.markup import el, plain

_SECTIONS = [
    "verdict",
    "comparison",
    "reliability",
    "test",
    "hidden",
    "subgroups",
    "support",
    "weakest",
    "cost",
    "settings",
]


class Page(HTMLParser):
    """Everything that a browser would see as markup."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.open: list[str] = []
        self.tables: dict[str, list[float]] = {}
        self.key = ""
        self.texts: dict[str, list[str]] = {}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append((tag, given))
        self.open.append(tag)
        if given.get("class") == "scroll":
            self.key = given.get("id") or ""
        if tag in ("td", "th") and given.get("data-value"):
            self.tables.setdefault(self.key, []).append(given["data-value"])

    def handle_data(self, data):
        self.texts.setdefault(self.open[-1] if self.open else "", []).append(data)


@pytest.fixture(scope="module")
def text(report):
    return report.to_html()


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def test_sections_stand_in_reading_order(page):
    found = [given["id"] for tag, given in page.tags if tag == "section"]
    assert found == _SECTIONS


def test_nothing_comes_from_outside(page, text):
    for tag, given in page.tags:
        assert tag not in {"link", "iframe", "object", "embed", "img", "base", "form"}
        for name in ("src", "srcset", "action"):
            assert name not in given
        assert given.get("href", "#").startswith("#")
        assert not any(name.startswith("on") or name == "style" for name in given)
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL).group(1)
    assert "url(" not in style
    assert "@import" not in style


def test_the_policy_allows_nothing_else(page):
    policy = next(
        given["content"]
        for tag, given in page.tags
        if given.get("http-equiv") == "Content-Security-Policy"
    )
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_scripts_are_ours(page):
    scripts = [given for tag, given in page.tags if tag == "script"]
    assert [given.get("type") for given in scripts] == ["application/json", None]


def test_hostile_names_are_text(text, report):
    name = next(feature for feature in report.data.features if "<script>" in feature)
    assert name not in text
    assert plain(name) in text
    assert "\u202e" not in text
    assert "\x00" not in text


def test_the_numbers_are_those_of_the_report(page, report):
    embedded = json.loads(next(data for data in page.texts["script"] if data.startswith("{")))
    assert embedded == report.to_dict()
    shown = page.tables["comparison-table"]
    for row in report.comparison:
        for score in row.scores.values():
            assert repr(score.value) in shown
    for group in report.subgroups:
        assert repr(group.observed) in page.tables["subgroups-table"]
    for row in report.cost.rows:
        assert repr(row.cost) in page.tables["cost-table"]


def test_tables_and_pictures_have_words(page):
    for tag, given in page.tags:
        if tag == "svg":
            assert given["role"] == "img"
            assert given["aria-label"]
        if tag == "th":
            assert given["scope"] in ("col", "row")
    assert ("html", {"lang": "en"}) in page.tags
    assert sum(tag == "h1" for tag, _ in page.tags) == 1
    ids = [given["id"] for _, given in page.tags if given.get("id")]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("which", ["many_classes", "tiny"])
def test_other_reports_render_too(which, request):
    assert "<h1>" in request.getfixturevalue(which).to_html()


def test_in_a_notebook_the_page_has_a_frame_of_its_own(report):
    shown = report._repr_html_()
    frame = Page(shown)
    (tag, given), *rest = frame.tags
    assert tag == "iframe"
    assert not rest
    assert given["sandbox"] == "allow-scripts allow-modals"
    assert given["srcdoc"].startswith("<!doctype html>")


def test_colours_are_those_of_the_displays():
    from hetcal.plotting import _style
    from hetcal.report.html.page import _asset

    style = _asset("style.css").lower()
    for color in (_style.METHOD_STYLES["hybrid"].color, _style.BLUE, _style.GREEN):
        assert color.lower() in style


def test_markup_escapes_children_and_attributes():
    assert el("p", "<i>", title='"') == '<p title="&quot;">&lt;i&gt;</p>'
    assert el("p", [el("b", "x"), None], class_=None) == "<p><b>x</b></p>"
