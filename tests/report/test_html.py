"""The page as text: one file, nothing from outside, names stay text, numbers are the report's."""

from __future__ import annotations

import json
import re
from dataclasses import fields, is_dataclass, replace
from html import escape
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from hetcal.diagnosis import findings
from hetcal.diagnosis.support_summary import _features as features_of
from hetcal.report.html import frames
from hetcal.report.html.page import _environment
from hetcal.report.html.summary import summary

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
        self.section = ""
        self.sections: dict[str, str] = {}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append((tag, given))
        self.open.append(tag)
        if tag == "section":
            self.section = given["id"]
        if given.get("class") == "scroll":
            self.key = given.get("id") or ""
        if tag in ("td", "th") and given.get("data-value"):
            self.tables.setdefault(self.key, []).append(given["data-value"])

    def handle_data(self, data):
        self.sections[self.section] = self.sections.get(self.section, "") + data
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


def rewritten(value, text, field=""):
    """Return a report with the same text everywhere, except where methods are looked up by name."""
    if isinstance(value, str):
        return value if field in ("method", "recommended", "kind") else text
    if isinstance(value, list):
        return [rewritten(v, text) for v in value]
    if isinstance(value, dict):
        names = [key if field == "scores" else f"{text}{k}" for k, key in enumerate(value)]
        return {name: rewritten(v, text) for name, v in zip(names, value.values(), strict=True)}
    if is_dataclass(value):
        found = {f.name: getattr(value, f.name) for f in fields(value)}
        return replace(value, **{name: rewritten(v, text, name) for name, v in found.items()})
    return value


def with_every_section(report):
    point = findings.CurvePoint(100, 0.2, 0.01)
    group = findings.Subgroup("rule", "label", 9, 0.4, 0.7, 0.6, 0.8, 0.3, 0.1, 0.01, 0.2, False)
    return replace(
        report,
        subgroups=[group],
        warnings=["first", "second"],
        notes=["note"],
        command="hetcal diagnose",
        verdict=replace(report.verdict, command="hetcal fit"),
        learning_curve=[findings.MethodCurve("hybrid", "hybrid", [point], "more")],
    )


@pytest.mark.parametrize("which", ["report", "many_classes", "tiny"])
def test_no_text_of_a_report_becomes_markup_in_any_section(which, request):
    whole = with_every_section(request.getfixturevalue(which))
    evil = "\"'><script>{{ 7 * 7 }}{method}</script></style>&\u202e\x00"
    text = rewritten(whole, evil).to_html()
    found, tame = Page(text), Page(rewritten(whole, "tame").to_html())
    assert [(tag, list(given)) for tag, given in found.tags] == [
        (tag, list(given)) for tag, given in tame.tags
    ]
    assert not {"\u202e", "\x00"} & set(text)
    if which == "report":  # the one that has something to say everywhere
        assert set(found.sections) == {"", *_SECTIONS, "warnings", "learning"}
        assert all("\"'><script>{{ 7 * 7 }}" in shown for shown in found.sections.values())


def test_templates_escape_everything_and_mark_nothing_as_safe():
    environment = _environment()
    assert environment.autoescape is True
    for name in environment.list_templates():
        source = environment.loader.get_source(environment, name)[0]
        assert not re.search(r"\bsafe\b|autoescape", source), name


def test_hostile_names_are_text(text, report):
    name = next(feature for feature in report.data.features if "<script>" in feature)
    assert name not in text
    assert str(escape(name)) in text
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
    from hetcal.plotting import style
    from hetcal.report.html.page import _asset

    sheet = _asset("style.css").lower()
    for color in (style.METHOD_STYLES["hybrid"].color, style.BLUE, style.GREEN):
        assert color.lower() in sheet


def test_the_summary_says_how_far_off_for_whom_and_how_sure(report):
    worst = replace(report.subgroups[0], predicted=0.2, observed=0.6, low=0.5, high=0.7)
    said = summary(replace(report, subgroups=[worst]))
    before = report.reliability[0]
    assert before.ece_debiased < before.ece  # less what chance adds
    assert f"off by about {100 * before.ece_debiased:.1f} percentage" in said["How far off"]
    assert worst.rule in said["For whom"]
    assert said["How sure"] == f"Real. {report.verdict.certainty.meaning}"
    after = report.method(report.verdict.recommended).scores["brier"].value
    assert f"{after:.4f}" in report.verdict.meaning


def test_a_calibration_error_that_may_be_chance_is_not_stated_as_a_fact(report):
    figures = [
        replace(figure, p_value=0.64) if figure.name == "global_gain" else figure
        for figure in report.verdict.evidence
    ]
    said = summary(replace(report, verdict=replace(report.verdict, evidence=figures)))
    assert "off by" not in said["How far off"].split(".")[0]
    assert "may be chance (p = 0.64)" in said["How far off"]


def test_the_summary_names_whom_no_global_map_helps_also_where_others_are_worse(report):
    """The terminal names these; a page that names only the others says something else."""
    one = replace(report.subgroups[0], predicted=0.9, observed=0.1, low=0.05, high=0.15)
    helped = replace(one, rule="age > 41", global_map_repairs=True)
    hidden = replace(one, rule="area = 7", predicted=0.5, global_map_repairs=False)
    said = summary(replace(report, subgroups=[helped, hidden]))["For whom"]
    assert "age > 41: predicted 90" in said
    assert "repairs it, but not the" in said
    assert "with area = 7: predicted 50" in said
    assert summary(replace(report, subgroups=[helped]))["For whom"].endswith("repairs it.")


def test_the_summary_says_how_far_is_called_wrong(report):
    before = report.reliability[0]
    right = [
        replace(b, observed=b.predicted, low=b.predicted - 0.1, high=b.predicted + 0.1)
        for b in before.bins
    ]
    calm = replace(report, reliability=[replace(before, bins=right)], subgroups=[])
    said = summary(calm)
    assert "in no range of values by more than three standard errors" in said["How far off"]
    assert "by more than three standard errors" in said["For whom"]


def test_the_summary_of_too_few_items_claims_nothing(tiny):
    assert list(summary(tiny)) == ["How sure"]
    wanted = tiny.verdict.certainty.items_to_settle
    assert f"About {wanted:,} items would settle it" in summary(tiny)["How sure"]


@pytest.mark.parametrize(
    ("recommended", "meanwhile"), [("hybrid", "calibrate"), ("uncalibrated", "change nothing")]
)
def test_who_retrains_is_told_what_is_recommended_until_then(report, recommended, meanwhile):
    verdict = replace(report.verdict, verdict="retrain instead", recommended=recommended)
    shown = Page(replace(report, verdict=verdict).to_html()).sections["verdict"]
    assert f"Retrain; until then, {meanwhile}" in shown


def test_a_void_advice_claims_nothing(report):
    settle = "group the rows that belong together first"
    given = replace(report.verdict, verdict="collect more data", headline=settle, void=True)
    void = replace(report, verdict=given)
    assert list(summary(void)) == ["How sure"]
    assert settle.capitalize() in Page(void.to_html()).sections["verdict"]
    assert void.text().startswith(f"Verdict: {settle}")
    assert '<span class="chip">recommended</span>' in report.to_html()
    assert '<span class="chip">recommended</span>' not in void.to_html()
    assert "within one standard error of the best" in report.text()
    assert "X: the features, P: the model's probabilities" in report.text()
    assert "within one standard error of the best" not in void.text()


def test_a_warning_is_what_the_page_begins_with(tiny):
    shown = Page(tiny.to_html()).sections["verdict"]
    assert " ".join(shown.split()).startswith(f"Warning: {tiny.warnings[0]} What to do now")


def test_no_line_is_drawn_where_nothing_was_measured(report):
    cells = [replace(report.hidden.cells[0], at=p) for p in (0.0, 0.02, 0.05, 0.97, 1.0)]
    cells[1:1] = [replace(cells[0], at=0.01, hh_local=None)]
    assert [[c.at for c in run] for run in frames.runs(cells)] == [[0.0, 0.02, 0.05], [0.97, 1.0]]
    assert frames.runs([]) == []
    text = replace(report, hidden=replace(report.hidden, cells=cells)).to_html()
    assert "The curve is interrupted" in text


def test_least_support_shows_numbers_as_tables_do():
    frame = pd.DataFrame({"income": [106_250.0, 1234.56], "rate": [0.123456, np.nan]})
    shown = features_of(frame, np.array([0, 1]))
    assert shown == [
        {"income": "106250", "rate": "0.1235"},
        {"income": "1234.6", "rate": "missing"},
    ]
