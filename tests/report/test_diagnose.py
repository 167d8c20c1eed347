"""What diagnose finds: the right verdict, figures by two routes, errors that say what to do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import hetcal
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.diagnosis.predictions import forward_splits
from hetcal.diagnosis.render import how_sure
from hetcal.diagnosis.verdicts import State
from hetcal.metrics import accuracy, brier_score, expected_calibration_error, expected_cost


@pytest.fixture(scope="module")
def data():
    return make_hidden_heterogeneity(500, heterogeneity=1.0, miscalibration=1.0, random_state=0)


def test_scores_of_the_probabilities_as_they_are(report, data):
    scores = report.method("uncalibrated").scores
    assert scores["brier"].value == pytest.approx(brier_score(data.y, data.y_proba))
    assert scores["accuracy"].value == pytest.approx(accuracy(data.y, data.y_proba))
    error = expected_calibration_error(data.y, data.y_proba)
    assert scores["ece"].value == pytest.approx(error)
    assert report.reliability[0].ece == pytest.approx(error)


def test_hidden_heterogeneity_is_found(report):
    assert report.verdict.verdict == "go local"
    assert report.verdict.recommended == "hybrid"
    assert report.comparison[0].scope in ("local", "retrained")
    assert report.hidden.p_value < 0.01
    assert report.hidden.local_part > 2 * abs(report.hidden.global_part)


def test_every_kind_of_method_is_compared(report):
    assert {row.scope for row in report.comparison} == {
        "uncalibrated",
        "global",
        "local",
        "retrained",
    }
    briers = [row.scores["brier"] for row in report.comparison]
    assert [s.value for s in briers] == sorted(s.value for s in briers)
    assert [s.best for s in briers] == [True] + [False] * (len(briers) - 1)
    assert all(s.difference == pytest.approx(s.value - briers[0].value) for s in briers)


def test_reliability_counts_every_item(report):
    for curve in report.reliability:
        assert sum(b.count for b in curve.bins) == report.data.n_items == sum(curve.counts)
        assert all(b.low <= b.observed <= b.high for b in curve.bins)


def test_expected_cost_by_another_route(report, data):
    as_it_is = next(row for row in report.cost.rows if row.method == "uncalibrated")
    assert as_it_is.cost == pytest.approx(expected_cost(data.y, data.y_proba, [[0, 1], [5, 0]]))
    assert report.cost.threshold == pytest.approx(1 / 6)
    assert as_it_is.low < as_it_is.cost < as_it_is.high


def test_net_benefit_by_a_loop(report, data):
    curve = report.cost.curves[0].net_benefit
    happened = data.y == data.classes[1]
    for t, value in list(zip(report.cost.thresholds, curve, strict=True))[::17]:
        act = data.y_proba[:, 1] >= t
        n = len(happened)
        hits, needless = (act & happened).sum() / n, (act & ~happened).sum() / n
        assert value == pytest.approx(hits - needless * t / (1 - t))


def test_groups_that_were_asked_for(report):
    assert sum(group.count for group in report.by) == report.data.n_items
    assert all("<script>" in group.rule for group in report.by)


def test_support_of_both_tables(report):
    own, new = report.support.histograms
    assert sum(own.counts) == report.data.n_items
    assert sum(new.counts) == 60 == report.data.n_test
    assert own.share_low == pytest.approx(0.05, abs=0.01)
    assert [i.support for i in report.weakest] == sorted(i.support for i in report.weakest)


def test_scores_on_the_labels_of_the_test_table(report, data):
    new = data.sample(60, random_state=1)
    rows = {row.method: row for row in report.test}
    assert report.data.n_test_scored == 50
    assert rows["uncalibrated"].scores["brier"].value == pytest.approx(
        brier_score(new.y[:50], new.y_proba[:50], classes=data.classes)
    )
    best_map = report.verdict.best_map
    fitted = hetcal.get_calibrator(best_map, classes=data.classes)
    fitted.fit(None, data.y, y_proba=data.y_proba)
    Q = fitted.predict_proba(y_proba=new.y_proba[:50])
    assert rows[best_map].scores["brier"].value == pytest.approx(
        brier_score(new.y[:50], Q, classes=data.classes)
    )
    assert sum(b.count for b in report.test_reliability[0].bins) == 50
    assert "On 50 labelled rows" in report.text()


def test_more_classes_are_shown_by_class_and_confidence(many_classes):
    assert many_classes.data.positive is None
    assert many_classes.hidden.kind == "by class"
    shown = {cell.name for cell in many_classes.hidden.cells}
    assert shown <= set(many_classes.data.classes)


def test_too_few_items_say_so(tiny):
    assert tiny.verdict.verdict == "collect more data"
    assert tiny.hidden is None
    assert tiny.comparison == []
    assert "too few" in tiny.warnings[0]


def test_text_is_readable_on_eighty_columns(report):
    lines = report.text(width=80).splitlines()
    assert lines[0] == "Verdict: go local"
    assert max(map(len, lines)) <= 80


def test_in_order_of_time_nothing_is_learned_from_later_items(data):
    time = pd.date_range("2024-01-01", periods=120, freq="h").astype(str)
    report = hetcal.diagnose(
        data.frame()[:120], data.y[:120], y_proba=data.y_proba[:120], time=time
    )
    assert report.data.order == "forward in time"
    assert report.data.n_scored == 96
    rows = np.arange(24, 120)
    assert report.method("uncalibrated").scores["brier"].value == pytest.approx(
        brier_score(data.y[rows], data.y_proba[rows])
    )
    told = {figure.name: figure.value for figure in report.verdict.evidence}
    best_map = report.method(report.verdict.best_map).scores["brier"].value
    assert told["reference_brier"] == pytest.approx(best_map)
    gain = best_map - report.method("hybrid").scores["brier"].value
    assert told["local_gain"] == pytest.approx(gain)


def test_given_a_time_the_page_says_one_thing_about_what_is_hidden(data):
    """What the test finds within the period is not denied where later items gain nothing by it."""
    report = hetcal.diagnose(
        data.X[:200], data.y[:200], y_proba=data.y_proba[:200], time=np.arange(200)
    )
    told = {figure.name: figure for figure in report.verdict.evidence}
    sure = report.verdict.certainty
    assert sure.p_value == told["hh_local"].p_value == report.hidden.p_value <= 0.02
    assert sure.state == "real"
    assert f"on {report.data.n_scored} later items" in report.verdict.reasons[0]
    gain = told["local_gain"]  # and the gain on later items has a p-value of its own
    error = (gain.high - gain.low) / (2 * 1.96)
    assert gain.p_value == pytest.approx(norm.sf(gain.value / error))


def test_what_helps_no_later_item_is_not_put_down_to_few_items(data):
    said = hetcal.advise(data.X[:120], data.y[:120], y_proba=data.y_proba[:120])
    certainty = replace(said.certainty, state=State.REAL)
    said = replace(said, recommended="global", certainty=certainty)
    later = replace(said, evidence=replace(said.known_evidence, n_later=96))
    assert "From so few items" in how_sure(said)
    assert "does not improve later ones enough" in how_sure(later)


def test_columns_may_have_numbers_for_names(data):
    """The first table that anybody makes of an array has the columns 0, 1, ..."""
    table = pd.DataFrame(data.X[:100])
    numbered = hetcal.diagnose(table, data.y[:100], y_proba=data.y_proba[:100])
    named = hetcal.diagnose(table.add_prefix("x"), data.y[:100], y_proba=data.y_proba[:100])
    assert numbered.data.features == [str(j) for j in range(table.shape[1])]
    assert numbered.verdict.headline == named.verdict.headline
    assert [row.features for row in numbered.weakest] == [
        {name.removeprefix("x"): value for name, value in row.features.items()}
        for row in named.weakest
    ]
    assert len(numbered.weakest) > 0


@pytest.mark.parametrize("groups", [None, np.arange(60) // 7])
def test_forward_splits_look_back_only(groups):
    moment = np.random.default_rng(0).integers(0, 25, 60)
    tested = []
    for train, test in forward_splits(moment, groups):
        assert moment[train].max() < moment[test].min()
        if groups is not None:
            assert not set(groups[train]) & set(groups[test])
        tested += test.tolist()
    assert len(tested) == len(set(tested))
    assert len(tested) > 30


def test_weights_of_zero_are_left_out(data):
    weight = np.r_[np.ones(120), np.zeros(380)]
    report = hetcal.diagnose(
        data.X, data.y, y_proba=data.y_proba, sample_weight=weight, feature_names=list("abcdef")
    )
    assert report.data.n_items == 120
    assert report.data.features == list("abcdef")
    assert max(item.row for item in report.weakest) < 120


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"X": None}, "X is None"),
        ({"time": [1, 2]}, "time has 2 values for 500 items"),
        ({"time": [None] * 500}, "time is missing in row 0"),
        ({"time": [1] * 500}, "too few different values"),
        ({"costs": [[0, 1]]}, "cost_matrix must have one row per class"),
        ({"y_proba_test": np.full((3, 2), 0.5)}, "y_proba_test without X_test"),
        ({"y_test": [0, 1]}, "y_test without y_proba_test"),
        ({"feature_names": ["a"]}, "feature_names has 1 names"),
    ],
)
def test_errors_say_what_to_do(arguments, words, data):
    given = {"X": data.X, "y": data.y, "y_proba": data.y_proba} | arguments
    with pytest.raises(ValueError, match=words):
        hetcal.diagnose(given.pop("X"), given.pop("y"), **given)


def test_progress_ends_at_the_end(data):
    seen = []
    hetcal.diagnose(
        data.X[:60],
        data.y[:60],
        y_proba=data.y_proba[:60],
        progress=lambda *step: seen.append(step),
    )
    assert [done for done, _, _ in seen] == sorted(done for done, _, _ in seen)
    assert seen[-1] == (seen[-1][1], seen[-1][1], "done")


def test_the_text_shows_control_characters_of_names(report):
    text = replace(report, warnings=["Look at \x1b[2J\u202e first."]).text()
    assert "".join(text.split("\n")).isprintable()
    assert r"Look at \x1b[2J\u202e first." in text
