"""Figures of a diagnosis by two routes: weights as repeated rows, places, and sentences."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from hetcal.data import CalibrationSet
from hetcal.diagnosis import certainty, measurements, summaries, support_summary
from hetcal.diagnosis.checks import (
    check_class_balance,
    check_errors,
    check_groups_balance,
    check_training_rows,
    check_unseen_classes,
)
from hetcal.diagnosis.dependence import Cluster, _Forests, find_dependence
from hetcal.diagnosis.extrapolation import gain_of_more_data
from hetcal.diagnosis.learning_curves import _learning_chance
from hetcal.diagnosis.prior_shift import PriorShift, measure_prior_shift
from hetcal.diagnosis.verdicts import AS_IT_IS, COLLECT_MORE, LEAVE_IT, State, decide
from hetcal.metrics.scores import brier_losses


def items_of(y, P, X=None, **named):
    X = np.zeros((len(y), 1)) if X is None else X
    return CalibrationSet.check(X, y, y_proba=P, caller="test", **named)


def draw(n=60, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.05, 0.95, n)
    return (rng.random(n) < p).astype(int), np.column_stack([1 - p, p]), rng


def test_costs_and_decision_curves_count_weights():
    """Weight two is a row twice."""
    y, P, rng = draw()
    weight = rng.integers(1, 4, 60)
    rows = np.repeat(np.arange(60), weight)

    def shown(items, P):
        compared = SimpleNamespace(rows=np.arange(items.n_items), proba=lambda name: P)
        found = summaries.cost(items, np.array([[0.0, 1.0], [4.0, 0.0]]), compared, ["hybrid"])
        return found.rows[0].cost, [curve.net_benefit for curve in found.curves]

    once = shown(items_of(y, P, sample_weight=weight.astype(float)), P)
    often = shown(items_of(y[rows], P[rows]), P[rows])
    assert once[0] == pytest.approx(often[0])
    np.testing.assert_allclose(once[1], often[1])


def test_means_of_the_advice_count_weights():
    y, P, rng = draw()
    weight = rng.integers(1, 4, 60).astype(float)
    loss = rng.random(60)
    items = items_of(y, P, sample_weight=weight)
    rows = np.repeat(np.arange(60), weight.astype(int))
    assert measurements._mean(loss, items) == pytest.approx(loss[rows].mean())


def test_the_weakest_items_have_their_places_classes_and_probabilities():
    _, P, rng = draw(30)
    Q, support = P[::-1], rng.permutation(30) + 1.0
    X = pd.DataFrame({"a": np.arange(30), "b": ["u"] * 30})
    rows = 100 + np.arange(30)
    found = support_summary.weakest("test table", X, support, P, Q, np.array(["n", "y"]), rows)
    assert [item.support for item in found] == list(range(1, 11))
    for item in found:
        i = item.row - 100
        assert (item.support, item.label, item.table) == (support[i], "y", "test table")
        assert (item.predicted, item.calibrated) == (P[i, 1], Q[i, 1])
        assert item.features == {"a": str(i), "b": "u"}
    P = np.random.default_rng(0).dirichlet(np.ones(3), 30)
    (first, *_) = support_summary.weakest("t", X, support, P, P, np.array(list("xyz")), rows)
    i = first.row - 100
    assert first.label == "xyz"[P[i].argmax()]


def test_low_support_is_that_of_the_calibration_items():
    own, new = np.linspace(1, 101, 101), np.linspace(0.1, 3, 50)
    found = support_summary.support(own, new)
    alone = support_summary.support(own, None)
    assert found.typical_low == alone.typical_low == pytest.approx(6)
    assert [h.share_low for h in found.histograms] == pytest.approx([5 / 101, 1.0])


def test_cells_of_few_items_have_no_values():
    P = np.repeat([[0.8, 0.1, 0.1], [0.1, 0.6, 0.3]], [19, 25], axis=0)
    columns = ["hh", "hh_global", "hh_local", "standard_error"]
    found = SimpleNamespace(frame=lambda P: pd.DataFrame(np.ones((44, 4)), columns=columns))
    few, many = sorted(summaries._by_class(found, P, np.array([1, 2, 3])), key=lambda c: c.count)
    assert (few.count, few.hh, few.standard_error, few.name) == (19, None, None, "1")
    assert (many.count, many.hh, many.standard_error, many.name) == (25, 1.0, 1.0, "2")


def test_a_dominant_group_and_an_unseen_class_are_weighed():
    y, _, rng = draw(40)
    P = rng.dirichlet(np.ones(3), 40)
    P[:4] = [0.05, 0.05, 0.9]
    groups, weight = np.arange(40) // 4, np.where(np.arange(40) < 4, 30.0, 1.0)
    items = items_of(y, P, classes=[0, 1, 2], groups=groups, sample_weight=weight)
    assert "77% of the items (10 groups)" in check_groups_balance(items).text
    share = np.average(P[:, 2], weights=weight)
    assert f"announced ({share:.1%} of the probability)" in check_unseen_classes(items).text
    plain = items_of(y, P, classes=[0, 1, 2], groups=groups)
    assert check_groups_balance(plain) is None


def test_the_class_that_surely_shifted_is_named():
    """A class may differ by more, and not surely."""
    old, new = np.array([0.3, 0.3, 0.4]), np.array([0.55, 0.2, 0.25])
    low, high = np.array([-0.1, -0.15, -0.3]), np.array([0.6, -0.05, 0.05])
    items = items_of([0, 1, 2] * 10, np.full((30, 3), 1 / 3))
    text = check_class_balance(PriorShift(old, new, low, high), items).text
    assert "class 1 makes up 30.0%" in text
    assert "difference -10.0%, 95 % interval -15.0% to -5.0%" in text


def test_few_errors_are_those_of_the_model_or_of_the_largest_class():
    y = np.repeat([0, 1], [36, 4])
    wrong = np.column_stack([1 - y, y]) * 0.2 + 0.4
    assert "Only 4 items outside the largest class" in check_errors(items_of(y, wrong[::-1])).text
    p = np.where(np.arange(40) < 3, 0.9, 0.1)
    y = np.where(np.arange(40) < 20, 0, 1)
    P = np.column_stack([1 - p, p])
    P[20:] = P[20:, ::-1]
    assert "Only 3 errors of the model" in check_errors(items_of(y, P)).text


@pytest.mark.parametrize(("n_wrong", "few"), [(9, True), (10, False)])
def test_nine_errors_are_few_and_ten_are_not(n_wrong, few):
    y, p = np.arange(60) % 2, np.where(np.arange(60) < n_wrong, 0.1, 0.9)
    P = np.where(y[:, None] == [0, 1], p[:, None], 1 - p[:, None])
    assert (check_errors(items_of(y, P)) is not None) == few


@pytest.mark.parametrize(("n_wrong", "too_good"), [(0, True), (10, False), (20, False)])
def test_rows_with_surprisingly_few_errors_look_like_training_rows(n_wrong, too_good):
    """The model announces ten errors of a hundred, three standard errors away from none."""
    y, p = np.arange(100) % 2, np.where(np.arange(100) < n_wrong, 0.1, 0.9)
    P = np.where(y[:, None] == [0, 1], p[:, None], 1 - p[:, None])
    retrained = np.full((100, 2), 0.5)  # as good as guessing; behind a map the model is not
    found = check_training_rows(items_of(y, P), 0.01, retrained)
    assert (found is not None) == too_good


def test_what_is_open_and_hopeless_is_left():
    assert decide(AS_IT_IS, State.OPEN, retraining_wins=False, more_would_help=False) == LEAVE_IT
    assert (
        decide(AS_IT_IS, State.REAL, retraining_wins=False, more_would_help=False) == COLLECT_MORE
    )


def test_what_many_items_would_show_is_scaled_from_a_part(monkeypatch):
    monkeypatch.setattr(certainty, "_SIMULATED_ITEMS", 50)
    y, P, _ = draw(200)
    asked = []
    monkeypatch.setattr(
        certainty, "detectable_size", lambda items, **_: asked.append(items.n_items) or 0.4
    )
    assert certainty.simulated_detectable(items_of(y, P), 0) == pytest.approx(0.4 * 50 / 200)
    assert asked == [50]


def panel(n_events=40, n_days=6):
    """Rows of events: the same outcome and nearly the same features on all days, in any order."""
    rng = np.random.default_rng(0)
    event = rng.permutation(np.repeat(np.arange(n_events), n_days))
    x, y = rng.normal(size=n_events)[event], rng.integers(0, 2, n_events)[event]
    X = np.column_stack([x + 0.01 * rng.normal(size=len(x)), rng.normal(size=len(x))])
    return X, y, np.full((len(y), 2), 0.5), event


def test_items_without_weight_do_not_shift_what_rows_depend_by():
    X, y, P, event = panel()
    weight = np.where(np.arange(len(y)) < 60, 0.0, 1.0)
    found = find_dependence(items_of(y, P, X, sample_weight=weight), {"event": event})
    part = find_dependence(items_of(y[60:], P[60:], X[60:]), {"event": event[60:]})
    assert found.columns == part.columns == ("event",)
    # Trees draw events in another order; of two pairs of forests the one that loses less counts.
    assert found.gain == pytest.approx(part.gain, rel=0.01)
    assert found.lost == pytest.approx(part.lost, rel=0.3)


def test_a_loss_by_clusters_has_the_error_of_clusters():
    """Copies of the rows of a cluster make its loss no surer."""
    X, y, P, event = panel()
    errors = []
    for times in (1, 9):
        rows = np.repeat(np.arange(len(y)), times)
        forests = _Forests(items_of(y[rows], P[rows], X[rows], groups=rows), 0, None)
        apart = np.random.default_rng(1).normal(0.1, 1, len(y))[rows]
        forests.by_row = forests.stated = np.zeros(len(rows))
        forests._out_of_bag = lambda groups, P=P[rows]: P
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("hetcal.diagnosis.dependence.brier_losses", lambda *_, a=apart: a)
            cluster = Cluster(("event",), event[rows])
            errors.append(forests.compare(cluster).lost_errors)
    assert errors[1] == pytest.approx(errors[0])


def test_gains_of_forests_count_weights():
    X, y, P, event = panel()
    weight = np.where(np.arange(len(y)) % 2, 1e-9, 1.0)
    forests = _Forests(items_of(y, P, X, sample_weight=weight), 0, None)
    forests.stated = np.where(np.arange(len(y)) % 2, 5.0, 0.5)
    forests.by_row = np.where(np.arange(len(y)) % 2, 0.0, 0.3)
    found = forests.compare(Cluster(("event",), event))
    assert found.gain == pytest.approx(0.2, abs=1e-6)


def test_copies_in_one_group_are_one_item_of_a_shift():
    """Of what labels would show, and of a class that no item has."""
    y, P, _ = draw(40)
    new = np.column_stack([P, np.full(40, 0.001)]) / 1.001
    rows = np.repeat(np.arange(40), 9)
    once, often = (
        items_of(
            y[take],
            np.column_stack([P[take], np.full(len(take), 0.001)]) / 1.001,
            classes=[0, 1, 2],
            groups=take,
        )
        for take in (np.arange(40), rows)
    )
    one, many = measure_prior_shift(once, new), measure_prior_shift(often, new)
    assert many.labels_half_width == pytest.approx(one.labels_half_width)
    assert many.high[2] == one.high[2] == 3 / 40


def test_what_was_learned_varies_no_more_for_copies_in_one_group():
    """The tested items explain as much of the spread of the splits as their rows do."""
    y, P, rng = draw(60)
    noise = rng.normal(size=(60, 2))

    def chance(take):
        items = items_of(y[take], P[take], groups=take)
        parts = [np.flatnonzero(take % 5 == fold) for fold in range(5)]
        splits = [(np.flatnonzero(take % 5 != fold), test) for fold, test in enumerate(parts)]
        given = [brier_losses(items.proba[test], items.codes[test]) for test in parts]
        curve = []
        for k in range(2):
            losses = [g + noise[take[test], k] for g, test in zip(given, parts, strict=True)]
            out = SimpleNamespace(items=items, splits=splits)
            out.split_losses = lambda *_, losses=losses: losses
            curve.append(out)
        return _learning_chance(curve, "any", "brier")

    np.testing.assert_allclose(chance(np.repeat(np.arange(60), 9)), chance(np.arange(60)))


def test_more_data_help_only_where_the_last_doubling_is_sure():
    """The law may be plain from smaller sizes; the last gain itself is one and a half errors."""
    sizes = np.array([50, 100, 200, 400, 800])
    values = 0.2 + 1.5 * sizes**-0.5
    gain = values[3] - values[4]
    for errors, verdict in ((1.5, "unclear"), (2.5, "yes")):
        spread = np.diag([1e-10, 1e-10, 1e-10, *[(gain / errors) ** 2 / 2] * 2])
        more = gain_of_more_data(sizes, values, spread, n_items=800, method="m", metric="brier")
        assert more.expected_low > 0
        assert more.verdict == verdict
