"""Scores, calibration errors and their intervals.

Every metric is called as ``metric(y, y_proba, *, classes=None, sample_weight=None, ...)``;
:func:`evaluate` gives all of them in one table, :func:`bootstrap_interval` an interval for one,
and :func:`calibration_test` a p-value.
"""

from hetcal.metrics.bootstrap import Interval, bootstrap_interval
from hetcal.metrics.calibration_tests import CalibrationTestResult, calibration_test
from hetcal.metrics.decomposition import BrierDecomposition, brier_decomposition
from hetcal.metrics.ece import expected_calibration_error
from hetcal.metrics.evaluate import evaluate
from hetcal.metrics.scores import accuracy, brier_score, expected_cost, log_loss
from hetcal.metrics.smooth import smooth_calibration_error

__all__ = [
    "BrierDecomposition",
    "CalibrationTestResult",
    "Interval",
    "accuracy",
    "bootstrap_interval",
    "brier_decomposition",
    "brier_score",
    "calibration_test",
    "evaluate",
    "expected_calibration_error",
    "expected_cost",
    "log_loss",
    "smooth_calibration_error",
]
