"""Verdicts, words, calls and warnings of `hetcal.advise`."""

import json
import textwrap
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB

import hetcal
from hetcal._exceptions import HetcalWarning
from hetcal.data import CalibrationSet
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.diagnosis import (
    COLLECT_MORE,
    GLOBAL_IS_ENOUGH,
    GO_LOCAL,
    LEAVE_IT,
    RETRAIN,
    VERDICTS,
    Advice,
    certainty,
)
from hetcal.diagnosis.advise import judged
from hetcal.diagnosis.checks import check_heavy_item
from hetcal.diagnosis.measurements import Gain

pytestmark = pytest.mark.usefixtures("with_small_hybrids")


def small_hybrid(data, P):
    """Return a hybrid with few trees, which takes most of the time otherwise."""
    hybrid = hetcal.HybridCalibrator(["forests", "proximity"], n_estimators=40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HetcalWarning)
        return hybrid.fit(data.X, data.y, y_proba=P)


def quick(data, y_proba=None, hybrid=None, **options) -> Advice:
    """Advise with a small hybrid."""
    P = data.y_proba if y_proba is None else y_proba
    hybrid = small_hybrid(data, P) if hybrid is None else hybrid
    return hetcal.advise(data.X, data.y, y_proba=P, hybrid=hybrid, **options)


@pytest.fixture(scope="module")
def calibrated():
    return make_hidden_heterogeneity(700, heterogeneity=0.0, random_state=3)


@pytest.fixture(scope="module")
def hidden():
    return make_hidden_heterogeneity(600, heterogeneity=1.0, miscalibration=1.0, random_state=1)


@pytest.fixture(scope="module")
def leave_it(calibrated):
    return quick(calibrated, worthwhile=0.1)


@pytest.fixture(scope="module")
def go_local(hidden):
    return quick(hidden)


@pytest.fixture(scope="module")
def retrain():
    data = make_hidden_heterogeneity(600, heterogeneity=0.0, random_state=2)
    noise = np.random.default_rng(0).uniform(0.4, 0.6, 600)
    return data, quick(data, y_proba=noise)


def run(call, data, **more):
    """Execute a recommended call with the names that it uses."""
    new = data.sample(20, random_state=9)
    names = {
        "X": data.X,
        "y": data.y,
        "y_proba": data.y_proba,
        "X_new": new.X,
        "y_proba_new": new.y_proba,
    }
    names |= more
    with warnings.catch_warnings():
        # The hybrid may say that the items do as well without the model; that is no failure.
        warnings.simplefilter("ignore", HetcalWarning)
        exec(compile(call, "the recommended call", "exec"), names)
    return names["q_new"]


def test_nothing_wrong(leave_it, calibrated):
    assert leave_it.verdict == LEAVE_IT
    assert leave_it.certainty.state == "not found"
    assert leave_it.certainty.detectable < leave_it.worthwhile
    assert leave_it.certainty.items_to_settle is None
    assert leave_it.expected_gain is None
    assert leave_it.expected_brier == leave_it.evidence.brier
    np.testing.assert_array_equal(
        run(leave_it.call, calibrated), calibrated.sample(20, random_state=9).y_proba
    )


def test_global_miscalibration():
    data = make_hidden_heterogeneity(700, heterogeneity=0.0, miscalibration=2.0, random_state=3)
    advice = quick(data)
    assert advice.verdict == GLOBAL_IS_ENOUGH
    q = run(advice.call, data)
    truth = data.sample(20, random_state=9)
    assert truth.expected_brier(q) < truth.expected_brier(truth.y_proba)


def test_both_kinds(go_local, hidden):
    assert go_local.verdict == GO_LOCAL
    assert go_local.certainty.state == "real"
    assert go_local.expected_gain == go_local.evidence.hybrid_gain
    gain = go_local.evidence.local_gain
    assert 0 < gain.low < gain.value < gain.high
    assert abs(gain.value - hidden.true_local_gain) < 0.05
    assert "x0" in go_local.subgroups["rule"][0]
    q = run(go_local.call, hidden)
    np.testing.assert_allclose(q.sum(axis=1), 1)


def test_a_useless_model(retrain):
    data, advice = retrain
    assert advice.verdict == RETRAIN
    new = data.sample(20, random_state=9)
    for call in (advice.call, advice.retraining_call):
        assert call in textwrap.dedent(str(advice).replace("\n    ", "\n"))
        q = run(call, data)
        assert new.expected_brier(q) < new.expected_brier(np.full((20, 2), 0.5))


def test_too_few_items_ask_for_more():
    data = make_hidden_heterogeneity(60, heterogeneity=0.5, random_state=0)
    advice = quick(data)
    assert (advice.verdict, advice.certainty.state) == (COLLECT_MORE, "open")
    assert advice.certainty.items_to_settle >= 5 * advice.n_items
    assert f"{advice.certainty.items_to_settle:,} items" in " ".join(str(advice).split())
    run(advice.call, data)


def test_hardly_any_items_are_not_measured():
    data = make_hidden_heterogeneity(20, random_state=0)
    advice = hetcal.advise(data.X, data.y, y_proba=data.y_proba)
    assert advice.verdict == COLLECT_MORE
    assert [warning.code for warning in advice.warnings] == ["few-items"]
    assert advice.evidence is None
    assert advice.frame().empty
    json.dumps(advice.to_dict())
    assert "too few" in str(advice)
    assert f"{advice.certainty.items_to_settle:,} items would settle it" in str(advice)


def test_what_would_have_been_found_shrinks_with_the_items(calibrated):
    few, many = (
        certainty.simulated_detectable(
            CalibrationSet.check(
                calibrated.X[:n], calibrated.y[:n], y_proba=calibrated.y_proba[:n], caller="test"
            ),
            0,
        )
        for n in (175, 700)
    )
    assert few == pytest.approx(4 * many, rel=0.5)


def test_large_tables_are_simulated_in_part(calibrated, monkeypatch):
    items = CalibrationSet.check(
        calibrated.X, calibrated.y, y_proba=calibrated.y_proba, caller="test"
    )
    whole = certainty.simulated_detectable(items, 0)
    monkeypatch.setattr(certainty, "_SIMULATED_ITEMS", 350)
    assert certainty.simulated_detectable(items, 0) == pytest.approx(whole, rel=0.4)


def test_nothing_is_ruled_out_that_was_not_tested(leave_it):
    text = " ".join(str(leave_it).split())
    assert "ruled out" not in text
    assert "would have been found with 80 % probability" in text


def test_a_small_gain_that_is_sure_is_recommended(go_local, hidden):
    """However much is called worthwhile."""
    items = CalibrationSet.check(hidden.X, hidden.y, y_proba=hidden.y_proba, caller="test")
    small = Gain(0.0008, 0.0006, 0.001)
    advice = changed(go_local, items, local_gain=small, hybrid_gain=small, local_p_value=0.4)
    assert (advice.verdict, advice.recommended) == (GO_LOCAL, "hybrid")
    assert advice.certainty.state == "real"
    text = " ".join(str(advice).split())
    assert "That is less than 2 %, but it is sure." in text
    assert "the test alone does not" in text


def test_the_text_names_every_number_of_the_verdict(go_local):
    text = str(go_local)
    e = go_local.evidence
    for number in (e.brier, e.local_gain.value, e.hh_local, e.hh_global, go_local.worthwhile):
        assert f"{number:.4f}" in text
    assert text.startswith("Verdict: go local\n")
    assert go_local.call.splitlines()[-1] in text
    assert max(map(len, text.splitlines())) <= 80
    assert "95\n" not in text  # a number and its sign stay together


def test_the_table_and_plain_values_agree(go_local):
    table = go_local.frame()
    plain = json.loads(json.dumps(go_local.to_dict()))
    assert plain["verdict"] in VERDICTS
    assert [row["evidence"] for row in plain["evidence"]] == list(table.index)
    assert plain["evidence"][0]["value"] == pytest.approx(table["value"].iloc[0])
    measured = table.dropna(subset=["low"])
    assert (measured["low"] <= measured["value"]).all()
    assert (measured["value"] <= measured["high"]).all()
    assert table["meaning"].str.len().min() > 10


def test_gains_are_differences_of_out_of_sample_scores(go_local, hidden):
    e = go_local.evidence
    predicted = e.hybrid.out_of_sample_proba_
    truth = np.eye(2)[hidden.y]
    brier = ((predicted - truth) ** 2).sum(axis=1).mean()
    assert e.reference_brier - e.local_gain.value == pytest.approx(brier)
    assert e.brier - e.hybrid_gain.value == pytest.approx(brier)
    assert e.brier - e.global_gain.value == pytest.approx(e.best_map_brier)
    assert go_local.expected_brier == pytest.approx(brier)
    assert e.brier - e.hybrid_gain.value == pytest.approx(brier)


def test_progress_and_repetition():
    data = make_hidden_heterogeneity(80, heterogeneity=1.0, random_state=1)
    steps = []
    once = quick(data, progress=lambda done, total, what: steps.append((done, total)))
    assert steps == [(k, 8) for k in range(9)]
    pd.testing.assert_frame_equal(quick(data).frame(), once.frame())


def test_tables_weights_groups_and_class_names():
    data = make_hidden_heterogeneity(160, heterogeneity=1.0, random_state=4)
    table = data.frame().assign(x2=lambda t: t["x2"].map({0: "a", 1: "b", 2: "c", 3: "d"}))
    y = np.array(["no", "yes"])[data.y]
    given = {
        "classes": ["no", "yes"],
        "groups": np.arange(160) // 2,
        "sample_weight": np.where(np.arange(160) < 20, 0.0, 1.5),
    }
    advice = hetcal.advise(table, y, y_proba=data.y_proba, **given)
    assert advice.n_items == 140
    new = {"X_new": table.head(5), "y_proba_new": data.y_proba[:5]}
    assert run(advice.call, data, X=table, y=y, **new, **given).shape == (5, 2)


def test_logits_give_what_their_probabilities_give(calibrated):
    X, y, P = calibrated.X[:80], calibrated.y[:80], calibrated.y_proba[:80]
    logits = np.log(P)
    a = hetcal.advise(X, y, logits=logits)
    b = hetcal.advise(X, y, y_proba=P)
    assert a.verdict == b.verdict
    assert a.evidence.brier == pytest.approx(b.evidence.brier)
    q = run(a.call, calibrated, X=X, y=y, logits=logits, logits_new=logits[:5])
    assert q.shape[1] == 2


def test_a_dominant_group_is_named(calibrated):
    groups = np.where(np.arange(80) < 54, 0, np.arange(80))
    advice = hetcal.advise(
        calibrated.X[:80], calibrated.y[:80], y_proba=calibrated.y_proba[:80], groups=groups
    )
    (warning,) = [w for w in advice.warnings if w.code == "dominant-group"]
    assert "68%" in warning.text
    assert warning.text[:30] in str(advice)


def test_a_heavy_item_is_named(calibrated):
    items = CalibrationSet.check(
        calibrated.X[:80],
        calibrated.y[:80],
        y_proba=calibrated.y_proba[:80],
        sample_weight=np.append(np.ones(79), 21),
        caller="test",
    )
    assert "One item has 21% of all weight" in check_heavy_item(items).text
    assert check_heavy_item(items.take(np.arange(79))) is None


def test_training_rows_are_noticed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    model = RandomForestClassifier(50, random_state=0).fit(X[:150], y[:150])

    def codes(rows):
        advice = hetcal.advise(X[rows], y[rows], y_proba=model.predict_proba(X[rows]))
        return [warning.code for warning in advice.warnings]

    assert "training-rows" in codes(slice(0, 150))
    assert "training-rows" not in codes(slice(150, 300))


def test_another_class_balance_is_noticed_and_corrected(calibrated, leave_it):
    new = calibrated.sample(3000, random_state=5)
    kept = (new.y == 0) | (np.random.default_rng(0).uniform(size=3000) < 0.2)
    hybrid = leave_it.evidence.hybrid
    advice = quick(calibrated, hybrid=hybrid, X_new=new.X[kept], y_proba_new=new.y_proba[kept])
    (warning,) = [w for w in advice.warnings if w.code == "class-balance"]
    assert "correct_prior" in warning.text
    assert "correct_prior" in advice.call
    assert abs(advice.prior_shift.new[1] - new.y[kept].mean()) < 0.03
    q = run(advice.call, calibrated, X_new=new.X[kept], y_proba_new=new.y_proba[kept])
    truth = np.eye(2)[new.y[kept]]
    assert ((q - truth) ** 2).mean() < ((new.y_proba[kept] - truth) ** 2).mean()


def test_the_same_class_balance_is_not(calibrated, leave_it):
    new = calibrated.sample(1000, random_state=6)
    advice = quick(calibrated, hybrid=leave_it.evidence.hybrid, y_proba_new=new.y_proba)
    assert not advice.prior_shift.shifted.any()
    assert "correct_prior" not in advice.call


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"X": None}, "X is None"),
        ({"worthwhile": 2}, "worthwhile must lie between"),
        ({"y_proba": None}, "advise needs the classifier's output"),
        ({"logits_new": [[0.0, 1.0]]}, "Pass y_proba_new"),
        ({"y_proba_new": [[0.2, 0.3, 0.5]]}, "y_proba_new has 3 columns"),
        ({"y_proba_new": [0.2, 0.3], "X_new": [[1.0]]}, "X_new has 1 rows"),
        ({"X_new": [[1.0]]}, "X_new without y_proba_new"),
        ({"hybrid": hetcal.HybridCalibrator()}, "one that is not fitted"),
    ],
)
def test_bad_input(change, text):
    data = make_hidden_heterogeneity(60, random_state=0)
    options = {"X": data.X, "y": data.y, "y_proba": data.y_proba} | change
    with pytest.raises(ValueError, match=text):
        hetcal.advise(options.pop("X"), options.pop("y"), **options)


def test_a_model_that_is_never_wrong_is_no_division_by_zero():
    data = make_hidden_heterogeneity(150, heterogeneity=0.0, random_state=0)
    advice = quick(data, y_proba=np.eye(2)[data.y])
    assert advice.evidence.brier == 0
    assert "0.0000 on 150 items; a gain matters from 0.0000" in " ".join(str(advice).split())
    json.dumps(advice.to_dict(), allow_nan=False)


def test_few_items_do_not_say_that_more_would_add_little():
    data = make_hidden_heterogeneity(60, random_state=3)
    assert "whether more rows would help it is open" in " ".join(str(quick(data)).split())


def test_two_groups_are_enough_unless_they_are_the_label():
    data = make_hidden_heterogeneity(80, random_state=0)
    given = {"y_proba": data.y_proba}
    advice = hetcal.advise(data.X, data.y, groups=np.arange(80) % 2, **given)
    assert advice.verdict in VERDICTS
    with pytest.raises(ValueError, match="only class . is left to learn from"):
        hetcal.advise(data.X, data.y, groups=data.y, **given)


def test_columns_and_classes_in_another_order_are_refused():
    data = make_hidden_heterogeneity(60, random_state=0)
    y = np.array(["no", "yes"])[data.y]
    P = pd.DataFrame(data.y_proba, columns=["no", "yes"])
    with pytest.raises(ValueError, match="columns of y_proba_new are named"):
        hetcal.advise(data.X, y, y_proba=P, y_proba_new=P[["yes", "no"]])
    hybrid = hetcal.HybridCalibrator("kernel", n_estimators=5, classes=["yes", "no"])
    hybrid.fit(data.X, y, y_proba=data.y_proba[:, ::-1])
    with pytest.raises(ValueError, match="hybrid was fitted with the classes"):
        hetcal.advise(data.X, y, y_proba=P, hybrid=hybrid)


def changed(advice, items, **evidence):
    """Judge other evidence about the same items."""
    e = replace(advice.evidence, **evidence)
    return judged(items, e, advice.certainty.detectable, None, 0.02, classes_given=False)


def test_retraining_is_an_addition_to_what_to_do_now(retrain):
    data, advice = retrain
    noise = np.random.default_rng(0).uniform(0.4, 0.6, 600)
    items = CalibrationSet.check(data.X, data.y, y_proba=noise, caller="test")
    e = advice.evidence
    better = e.retraining_gain.value + 0.02
    hybrid = changed(
        advice,
        items,
        local_gain=Gain(better, better - 0.01, better + 0.01),
        hybrid_gain=Gain(better, better - 0.01, better + 0.01),
        hybrid_over_retrained=Gain(0.02, -0.01, 0.05),
    )
    assert (hybrid.verdict, hybrid.recommended) == (RETRAIN, "hybrid")
    assert hybrid.expected_brier == pytest.approx(e.brier - better)
    text = " ".join(str(hybrid).split())
    assert "HybridCalibrator" in hybrid.call
    assert "hetcal" not in hybrid.retraining_call
    assert "Retrain when you can" in text
    assert f"{hybrid.expected_brier:.4f}" in text
    assert f"{e.best_retrained} on the features alone {e.retrained_brier:.4f}" in text
    assert "rows that the old model was trained on" in text
    q = run(hybrid.call, data, y_proba=noise, y_proba_new=noise[:20])
    new = data.sample(20, random_state=9)
    assert new.expected_brier(q) < new.expected_brier(np.full((20, 2), 0.5))


@pytest.mark.parametrize(
    ("low", "value", "verdict"),
    [(0.01, 0.03, GO_LOCAL), (-0.01, 0.03, RETRAIN), (0.0001, 0.0002, RETRAIN)],
)
def test_retraining_is_not_advised_where_the_hybrid_is_clearly_better(retrain, low, value, verdict):
    data, advice = retrain
    noise = np.random.default_rng(0).uniform(0.4, 0.6, 600)
    items = CalibrationSet.check(data.X, data.y, y_proba=noise, caller="test")
    better = advice.evidence.retraining_gain.value + value
    gain = Gain(better, better - 0.01, better + 0.01)
    said = changed(
        advice,
        items,
        local_gain=gain,
        hybrid_gain=gain,
        hybrid_over_retrained=Gain(value, low, 2 * value - low),
    )
    assert (said.verdict, said.recommended) == (verdict, "hybrid")
    assert (said.retraining_call is None) == (verdict == GO_LOCAL)


def test_the_gain_of_the_hybrid_over_retraining_is_paired(retrain):
    data, advice = retrain
    e = advice.evidence
    truth = np.eye(2)[data.y]
    of_hybrid = ((e.hybrid.out_of_sample_proba_ - truth) ** 2).sum(axis=1)
    of_model = ((e.retrained - truth) ** 2).sum(axis=1)
    gain = e.hybrid_over_retrained
    assert gain.value == pytest.approx((of_model - of_hybrid).mean())
    assert gain.value == pytest.approx(e.local_gain.value - e.retraining_gain.value)
    items = CalibrationSet.check(data.X, data.y, y_proba=data.y_proba, caller="test")
    assert gain == Gain.between(e.retrained, e.hybrid.out_of_sample_proba_, items)


@pytest.mark.slow
def test_a_large_table_gets_the_hybrid_where_boosting_is_clearly_worse():
    X, y = make_classification(12000, 30, n_informative=8, random_state=0)
    P = GaussianNB().fit(X[:2000], y[:2000]).predict_proba(X[2000:])
    advice = hetcal.advise(X[2000:], y[2000:], y_proba=P)
    assert (advice.verdict, advice.recommended) == (GO_LOCAL, "hybrid")
    assert advice.retraining_call is None
    assert advice.expected_brier < 0.9 * advice.evidence.retrained_brier


def test_repeated_rows_are_noticed(calibrated):
    rows = np.r_[np.arange(80), np.arange(40)]
    X, y, P = calibrated.X[rows], calibrated.y[rows], calibrated.y_proba[rows]
    hybrid = hetcal.HybridCalibrator("kernel", n_estimators=10).fit(X, y, y_proba=P)
    advice = hetcal.advise(X, y, y_proba=P, hybrid=hybrid)
    assert "repeated-rows" in [w.code for w in advice.warnings]


def test_a_hybrid_that_was_fitted_with_weights_of_zero_is_taken(calibrated):
    X, y, P = calibrated.X[:120], calibrated.y[:120], calibrated.y_proba[:120]
    weight = np.where(np.arange(120) % 4 == 0, 0.0, 1.0)
    kept = weight > 0
    options = {"experts": "kernel", "n_estimators": 10}
    of_all = hetcal.HybridCalibrator(**options).fit(X, y, y_proba=P, sample_weight=weight)
    of_some = hetcal.HybridCalibrator(**options).fit(X[kept], y[kept], y_proba=P[kept])
    with_zeros = hetcal.advise(X, y, y_proba=P, sample_weight=weight, hybrid=of_all)
    without = hetcal.advise(X[kept], y[kept], y_proba=P[kept], hybrid=of_some)
    assert with_zeros.evidence.local_gain == without.evidence.local_gain
    with pytest.raises(ValueError, match="one fitted to 120"):
        hetcal.advise(X, y, y_proba=P, sample_weight=np.roll(weight, 1), hybrid=of_all)


@pytest.mark.parametrize("what", ["labels", "features", "probabilities"])
def test_a_hybrid_that_was_fitted_to_other_items_is_refused(calibrated, what):
    X, y, P = calibrated.X[:120], calibrated.y[:120], calibrated.y_proba[:120]
    other = {"X": X, "y": y, "y_proba": P}
    if what == "labels":
        other["y"] = y[::-1]
    else:
        name = {"features": "X", "probabilities": "y_proba"}[what]
        other[name] = other[name][np.random.default_rng(0).permutation(120)]
    hybrid = hetcal.HybridCalibrator("proximity", n_estimators=10).fit(**other)
    with pytest.raises(ValueError, match=rf"these very items.*other .*{what}.* Leave it out"):
        hetcal.advise(X, y, y_proba=P, hybrid=hybrid)
