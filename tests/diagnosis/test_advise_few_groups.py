"""Few groups bound what any test of them can show, however many rows they have."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

import hetcal
from hetcal.cli._diagnose import _when_to_ask_again
from hetcal.data import CalibrationSet
from hetcal.diagnosis import COLLECT_MORE
from hetcal.diagnosis.certainty import simulated_detectable
from hetcal.diagnosis.checks import check_few_groups
from hetcal.diagnosis.sample_size import groups_for_items
from hetcal.diagnosis.verdicts import LEVEL
from hetcal.heterogeneity.limits import groups_for, least_p_of

N = 600


def drawn(seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 3))
    p = 1 / (1 + np.exp(-X[:, 0]))
    return X, (rng.random(N) < p).astype(int), np.column_stack([1 - p, p])


def in_groups(n_groups):
    X, y, P = drawn()
    groups = None if n_groups is None else np.arange(N) % n_groups
    return CalibrationSet.check(X, y, y_proba=P, groups=groups, caller="test")


@pytest.fixture(scope="module", params=[2, 5])
def advice(request):
    X, y, P = drawn()
    hybrid = hetcal.HybridCalibrator("kernel", n_estimators=10)
    groups = np.arange(N) % request.param
    hybrid.fit(X, y, y_proba=P, groups=groups)
    return hetcal.advise(X, y, y_proba=P, groups=groups, hybrid=hybrid, n_jobs=1)


def said(advice):
    return " ".join(str(advice).split())


def test_few_groups_leave_it_open_and_ask_for_other_groups(advice):
    sure = advice.certainty
    assert (sure.state, sure.detectable, sure.items_to_settle) == ("open", np.inf, None)
    assert sure.groups_to_settle == 7
    assert advice.verdict == COLLECT_MORE
    text = said(advice)
    assert f"{advice.n_groups} groups are too few to tell, however many rows they have" in text
    assert "Collect items of other groups (at least 7 groups in all)" in text
    assert "would have been found" not in text
    assert "would settle it" not in text


def test_the_note_of_the_test_is_a_warning(advice):
    told = {warning.code: warning.text for warning in advice.warnings}["few-groups"]
    least = {2: "2 groups are too few to test", 5: "With 5 groups no p-value can be below 0.062"}
    assert least[advice.n_groups] in told
    assert told in said(advice)


def test_plain_values_say_it_too(advice):
    plain = json.loads(json.dumps(advice.to_dict(), allow_nan=False))
    assert plain["n_groups"] == advice.n_groups
    assert plain["certainty"]["groups_to_settle"] == 7
    assert plain["certainty"]["items_to_settle"] is None
    assert plain["certainty"]["detectable_share"] is None
    assert "too few to tell" in plain["certainty"]["meaning"]


def test_the_least_number_of_groups_is_that_of_the_level():
    least = groups_for(LEVEL)
    assert least_p_of(least) <= LEVEL < least_p_of(least - 1)
    assert simulated_detectable(in_groups(least - 1), 0) == np.inf
    assert simulated_detectable(in_groups(30), 0) < np.inf


@pytest.mark.parametrize(("n_groups", "warns"), [(None, False), (3, True), (9, True), (10, False)])
def test_who_is_warned(n_groups, warns):
    assert (check_few_groups(in_groups(n_groups)) is not None) is warns


def of_many_groups(rows_per_group=10):
    """Return advice on groups that are enough, but leave it open."""
    X, y, P = drawn()
    groups = np.arange(N) // rows_per_group
    hybrid = hetcal.HybridCalibrator("kernel", n_estimators=10)
    hybrid.fit(X, y, y_proba=P, groups=groups)
    return hetcal.advise(X, y, y_proba=P, groups=groups, hybrid=hybrid, n_jobs=1)


def test_with_groups_it_is_groups_that_are_asked_for():
    advice = of_many_groups()
    sure = advice.certainty
    assert (sure.state, advice.n_groups) == ("open", N // 10)
    assert sure.groups_to_settle == pytest.approx(sure.items_to_settle / 10, rel=0.02)
    more = sure.groups_to_settle - advice.n_groups
    words = f"About {more:,} more groups like these would settle it ({sure.items_to_settle:,} rows"
    assert words in said(advice)
    assert words in advice.to_dict()["certainty"]["meaning"]
    assert f"in {N:,} items of {advice.n_groups} groups" in said(advice)
    assert advice.to_dict()["certainty"]["groups_to_settle"] == sure.groups_to_settle


@pytest.mark.parametrize(("groups", "wanted"), [(None, None), (15, 3000 // 2), (3, 300)])
def test_the_groups_have_the_rows_that_are_asked_for(groups, wanted):
    numbers = None if groups is None else np.arange(30) % groups
    items = CalibrationSet.check(
        np.arange(30)[:, None],
        np.arange(30) % 2,
        y_proba=np.full(30, 0.5),
        groups=numbers,
        caller="test",
    )
    assert groups_for_items(items, 3000) == wanted
    assert groups_for_items(items, 40) in (None, 20, 7)


def test_too_few_rows_to_start_ask_for_groups_too():
    X, y, P = drawn()
    advice = hetcal.advise(X[:30], y[:30], y_proba=P[:30], groups=np.arange(30) // 2)
    assert advice.certainty.groups_to_settle > 15
    assert f"About {advice.certainty.groups_to_settle - 15:,} more groups" in said(advice)


def hidden_in(n_groups, n=240):
    """Return arguments of a large difference that p does not show, in a few groups."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 3))
    p = 1 / (1 + np.exp(-X[:, 0]))
    y = (rng.random(n) < 1 / (1 + np.exp(-X[:, 0] - 3 * np.sign(X[:, 1])))).astype(int)
    return (X, y), {"y_proba": np.column_stack([1 - p, p]), "groups": np.arange(n) % n_groups}


def test_a_diagnosis_says_why_what_gains_in_its_table_is_not_recommended():
    given, named = hidden_in(4)
    report = hetcal.diagnose(*given, **named, n_jobs=1)
    meaning = report.verdict.meaning
    assert report.verdict.recommended == "uncalibrated"
    assert "with only 4 groups no gain can be proved" in meaning
    assert "no repair promises" not in meaning
    assert meaning.count("Until then") + meaning.count("for now") == 1
    scores = {row.method: row.scores["brier"].value for row in report.comparison}
    best = min(
        (row for row in report.comparison if row.scope != "retrained"),
        key=lambda r: scores[r.method],
    )
    assert best.method != "uncalibrated"
    assert f"On these groups {best.label} would gain" in meaning
    assert f"{scores[best.method]:.4f} instead of {scores['uncalibrated']:.4f}" in meaning
    assert any("With 4 groups no p-value can be below 0.12" in text for text in report.warnings)
    assert " ".join(str(report).split()).count("no gain can be proved") == 1


@pytest.mark.parametrize(
    ("items", "groups", "when"),
    [
        (None, 7, "When there are labelled rows of other groups"),
        (3000, 40, "When there are more labelled rows"),
        (3000, None, "When there are more labelled rows"),
    ],
)
def test_the_command_asks_again_with_what_would_help(items, groups, when):
    certainty = SimpleNamespace(items_to_settle=items, groups_to_settle=groups)
    verdict = SimpleNamespace(
        verdict=COLLECT_MORE, belong_together=[], void=False, certainty=certainty
    )
    assert _when_to_ask_again(SimpleNamespace(verdict=verdict), []) == when
