"""scikit-learn's own checks on everything that is, or can be made, a scikit-learn classifier."""

from __future__ import annotations

import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.calibration.adaptor import CalibratorAsClassifier
from tests.calibration.kinds import ONE_OF_EACH

from hetcal.calibration.base import GlobalCalibrator
from hetcal.calibration.blend import GlobalBlend
from hetcal.calibration.precomputed import PrecomputedProba
from hetcal.calibration.registry import get_calibrator, list_calibrators
from hetcal.calibration.wrapper import LocallyCalibratedClassifier

WEIGHT_CHECKS = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)
DRAWS = "the calibrator draws bootstrap samples: a weight of 2 is not the same draw as two rows"
PLACES = "only k rows vote: a row that stands there twice takes two places, a weight of 2 takes one"
DEALT = "items are dealt into folds: a row that stands there twice may be in two of them"
FEW_COLUMNS = "the check's X has two columns for three classes: one column per class is needed"


def _expected_failures(estimator):
    calibrator = estimator.calibrator
    calibrator = get_calibrator("hybrid") if calibrator is None else calibrator
    if isinstance(calibrator, GlobalBlend):
        return dict.fromkeys(WEIGHT_CHECKS, DEALT)
    if isinstance(calibrator, str | GlobalCalibrator):
        return {}
    reason = DRAWS if getattr(calibrator, "n_neighbors", None) is None else PLACES
    return dict.fromkeys(WEIGHT_CHECKS, reason)


# Many forests per fit, or all maps for each fold: they take as long as all others together.
LONG = ("swc-hh", "hybrid", "global")


@parametrize_with_checks(
    [
        LocallyCalibratedClassifier(GaussianNB(), get_calibrator("swc")),
        LocallyCalibratedClassifier(GaussianNB(), "temperature"),
    ],
    expected_failed_checks=_expected_failures,
)
def test_wrapper(estimator, check):
    check(estimator)


@pytest.mark.repeats
@parametrize_with_checks(
    [LocallyCalibratedClassifier(RidgeClassifier(), get_calibrator("platt"))],
    expected_failed_checks=_expected_failures,
)
def test_wrapper_of_scores(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The calibration set has become a training set")
@parametrize_with_checks([LocallyCalibratedClassifier()], expected_failed_checks=_expected_failures)
def test_wrapper_as_it_comes(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [PrecomputedProba(kind="logits")],
    expected_failed_checks=lambda _: dict.fromkeys(
        [
            "check_classifiers_train",
            "check_classifiers_classes",
            "check_estimators_fit_returns_self",
            "check_estimators_overwrite_params",
            "check_readonly_memmap_input",
        ],
        FEW_COLUMNS,
    ),
)
def test_precomputed(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [CalibratorAsClassifier(get_calibrator(name)) for name in ONE_OF_EACH if name not in LONG],
    expected_failed_checks=_expected_failures,
)
def test_calibrators_by_name(estimator, check):
    check(estimator)


@pytest.mark.repeats
@parametrize_with_checks(
    [
        CalibratorAsClassifier(get_calibrator(name))
        for name in list_calibrators()
        if name not in (*LONG, *ONE_OF_EACH)
    ],
    expected_failed_checks=_expected_failures,
)
def test_more_calibrators_by_name(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The calibration set has become a training set")
@parametrize_with_checks(
    [CalibratorAsClassifier(get_calibrator(name)) for name in LONG],
    expected_failed_checks=_expected_failures,
)
def test_long_calibrators_by_name(estimator, check):
    check(estimator)
