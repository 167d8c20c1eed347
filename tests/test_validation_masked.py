"""Masked arrays: missing values in X, an error that names the remedy everywhere else."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

import hetcal
from hetcal import metrics
from hetcal._validation import FeatureEncoder
from hetcal._validation.containers import as_array, masked_as_missing

N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
P = RNG.dirichlet([2, 2], N)
Y = (RNG.random(N) < P[:, 1]).astype(int)
HIDDEN = np.arange(N) < 5


def masked(values):
    values = np.array(values)
    mask = HIDDEN if values.ndim == 1 else np.repeat(HIDDEN[:, None], values.shape[1], axis=1)
    return np.ma.masked_array(values, mask=mask)


def masked_features():
    """Return features of which some are hidden under a mask, and the same with NaN."""
    mask = np.zeros(X.shape, dtype=bool)
    mask[:30, 0] = True
    return np.ma.masked_array(np.where(mask, 5 * Y[:, None], X), mask=mask), np.where(
        mask, np.nan, X
    )


def test_masked_features_are_missing_values():
    hidden, missing = masked_features()
    for make in (hetcal.SimilarityCalibrator, lambda: hetcal.SimilarityCalibrator("cosine")):
        there = make().fit(hidden, Y, y_proba=P).predict_proba(hidden, y_proba=P)
        expected = make().fit(missing, Y, y_proba=P).predict_proba(missing, y_proba=P)
        np.testing.assert_array_equal(there, expected)


def test_masked_features_are_missing_for_the_model_in_the_wrapper_too():
    hidden, missing = masked_features()
    made = [
        hetcal.LocallyCalibratedClassifier(
            HistGradientBoostingClassifier(max_iter=5), "temperature", cv=2, random_state=0
        )
        .fit(A, Y)
        .predict_proba(A)
        for A in (hidden, missing)
    ]
    np.testing.assert_array_equal(*made)


def test_nullable_columns_of_pandas_are_missing_values():
    table = pd.DataFrame({"a": [1, None, 3], "b": [True, None, False]}).astype(
        {"a": "Int64", "b": "boolean"}
    )
    np.testing.assert_array_equal(
        FeatureEncoder().fit_transform(table), [[1, 1], [np.nan, np.nan], [3, 0]]
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, bool])
def test_a_mask_that_hides_something_becomes_nan_and_one_that_does_not_is_dropped(dtype):
    values = np.ma.masked_array(np.ones((2, 2), dtype=dtype), mask=[[True, False], [False, False]])
    seen = masked_as_missing(values)
    assert not isinstance(seen, np.ma.MaskedArray)
    np.testing.assert_array_equal(seen, [[np.nan, 1], [1, 1]])
    open_to_all = np.ma.masked_array(np.ones(3, dtype=dtype), mask=False)
    assert masked_as_missing(open_to_all).dtype == dtype
    assert as_array(open_to_all, "y").dtype == dtype


GOOD = {"y": Y, "y_proba": P, "sample_weight": np.ones(N), "groups": np.arange(N) // 2}


def fit_swc(y, y_proba, **more):
    hetcal.SimilarityCalibrator().fit(X, y, y_proba=y_proba, **more)


def fit_hidden(y, y_proba, **more):
    hetcal.HiddenHeterogeneity(learners=[], n_estimators=2, n_null=0).fit(
        X, y, y_proba=y_proba, **more
    )


def compare(y, y_proba, **more):
    hetcal.compare(X, y, y_proba=y_proba, methods=["platt"], baselines=False, **more)


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("use", [fit_swc, fit_hidden, compare, metrics.evaluate])
def test_everything_else_that_is_masked_is_refused_with_the_remedy(use, name):
    given = GOOD | {name: masked(GOOD[name])}
    with pytest.raises(ValueError, match=rf"{name} has 5 row\(s\) with masked values.*~mask"):
        use(**given)


def test_masked_output_of_new_items_and_masked_logits_are_refused():
    calibrator = hetcal.TemperatureScaling().fit(None, Y, y_proba=P)
    with pytest.raises(ValueError, match=r"y_proba has 5 .*getmaskarray\(y_proba\).any\(axis=1\)"):
        calibrator.predict_proba(y_proba=masked(P))
    with pytest.raises(ValueError, match="logits has 5 row"):
        hetcal.TemperatureScaling().fit(None, Y, logits=masked(np.log(P)))


METRICS = ("brier_score", "log_loss", "accuracy", "expected_calibration_error")


@pytest.mark.parametrize("name", [*METRICS, "smooth_calibration_error", "brier_decomposition"])
def test_metrics_refuse_masks(name):
    metric = getattr(metrics, name)
    for given in ((masked(Y), P), (Y, masked(P))):
        with pytest.raises(ValueError, match="masked values"):
            metric(*given)


def test_masks_in_a_list_of_rows_are_seen_too():
    hidden, missing = masked_features()
    np.testing.assert_array_equal(masked_as_missing(list(hidden)), missing)
    np.testing.assert_array_equal(FeatureEncoder().fit_transform(list(hidden)), missing)
    with pytest.raises(ValueError, match=r"y_proba has 5 row\(s\) with masked values"):
        hetcal.SimilarityCalibrator().fit(X, Y, y_proba=list(masked(P)))


def test_masked_objects_are_missing_values():
    hidden, missing = masked_features()
    np.testing.assert_array_equal(FeatureEncoder().fit_transform(hidden.astype(object)), missing)
