"""The page of a monitor: its numbers are the monitor's, names stay text, nothing is missing."""

from __future__ import annotations

import pytest
from markupsafe import escape
from tests.report.conftest import HOSTILE
from tests.report.test_html import Page

import hetcal
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.report import MonitorReport
from hetcal.report.html.filters import visible
from hetcal.report.html.frames import over_time
from hetcal.similarity import ForestProximity


@pytest.fixture(scope="module")
def text(watched):
    return watched.to_html()


def test_all_sections_are_there(text):
    found = [given["id"] for tag, given in Page(text).tags if tag == "section"]
    assert found == ["verdict", "support", "labels", "expected", "changes", "groups", "settings"]


def test_nothing_comes_from_outside_and_names_stay_text(text):
    page = Page(text)
    assert not any("src" in given or given.get("href", "#")[0] != "#" for _, given in page.tags)
    assert sum(tag == "script" for tag, _ in page.tags) == 2
    assert not any(name.startswith("on") for _, given in page.tags for name in given)
    for name in (HOSTILE["x0"], HOSTILE["x1"], HOSTILE["x3"]):
        assert str(escape(visible(name))) in text


def test_both_kinds_of_alarm_are_told_with_their_time(watched, text):
    assert watched.headline == "Alarm of support and labels"
    assert len(watched.sentences) == 2
    page = Page(text)
    for alarm in watched.alarms:
        assert str(alarm["time"]) in page.tables["alarms-table"]
    assert all(str(escape(sentence)) in text for sentence in watched.sentences)


def test_pictures_show_the_history(watched):
    flagged, evidence, _ = watched.support_pictures()
    rows = watched.history
    assert [x for x, _, _ in flagged.curves[0].points] == [row["seen"] for row in rows]
    shares = [row["flagged"] / row["items"] for row in rows]
    assert [y for _, y, _ in flagged.curves[0].points] == shares
    assert evidence.level == watched.log10_bound
    assert evidence.curves[0].points[-1][1] > watched.log10_bound
    assert flagged.alarms == [row["seen"] for row in rows if row["alarms"]] != []
    accuracy = watched.label_pictures()[1]
    expected, observed = accuracy.curves
    assert len(expected.points) == len(observed.points) == 9  # the first update has no labels
    assert observed.points[0][1] > 0.6 > observed.points[-1][1]
    assert all(0 <= accuracy.frame.y(y) <= 280 for _, y, _ in observed.points)


def test_a_long_history_is_thinned_and_keeps_its_end(watched):
    from hetcal.report.html.history_pictures import support_pictures

    rows = [watched.history[0] | {"seen": 60 * k} for k in range(1, 2001)]
    points = support_pictures(rows, 0.01, 2.0)[0].curves[0].points
    assert 200 <= len(points) <= 300
    assert points[-1][0] == 60 * 2000


def test_a_monitor_that_has_seen_nothing_has_a_page():
    data = make_hidden_heterogeneity(60, heterogeneity=1.0, random_state=0)
    swc = hetcal.SimilarityCalibrator("rbf").fit(data.X, data.y, y_proba=data.y_proba)
    page = Page(MonitorReport.of(hetcal.SupportMonitor(swc)).to_html())
    found = [given["id"] for tag, given in page.tags if tag == "section"]
    assert found == ["verdict", "settings"]
    assert "No alarm: nothing says that the items have changed." in page.sections["verdict"]


def test_one_update_is_one():
    """And the title of an axis stands clear of its numbers."""
    data = make_hidden_heterogeneity(60, random_state=0)
    swc = hetcal.SimilarityCalibrator(ForestProximity(10)).fit(data.X, data.y, y_proba=data.y_proba)
    monitor = hetcal.SupportMonitor(swc).fit(data.X, y_proba=data.y_proba)
    monitor.update(data.X[:1], y_proba=data.y_proba[:1])
    page = MonitorReport.of(monitor, name="m").to_html()
    assert "1 item · 1 update · 0 labels" in " ".join(page.split())
    assert over_time([0, 300], [0.0, 0.01]).left >= 8 + 7 * len("0.75 %") + 20
