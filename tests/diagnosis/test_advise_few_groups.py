"""Few groups bound what any test of them can show, however many rows they have."""

import json

import numpy as np
import pytest

import hetcal
from hetcal.data import CalibrationSet
from hetcal.diagnosis import COLLECT_MORE
from hetcal.diagnosis.certainty import simulated_detectable
from hetcal.diagnosis.checks import check_few_groups
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
