"""What a calibrated classifier passes on to its calibrator, where the calibrator has it."""

from __future__ import annotations

from typing import Any

from sklearn.utils.metaestimators import available_if

from hetcal._threads import ThreadSafe, on_snapshot


def _calibrator_has(method: str):
    def check(self: DelegatedMethods) -> bool:
        return hasattr(getattr(self, "calibrator_", None) or self._make_calibrator(), method)

    return check


class DelegatedMethods(ThreadSafe):
    """Methods of a calibrator, asked with the classifier's items.

    A subclass has ``calibrator_`` once it is fitted, says by ``_make_calibrator`` which one it
    would fit, and by ``_new_items`` what the calibrator needs to know of new items.
    """

    calibrator_: Any
    _make_calibrator: Any
    _new_items: Any

    @available_if(_calibrator_has("support"))
    @on_snapshot
    def support(self, X: Any, **options: Any) -> Any:
        """Return how much calibration data stands behind each item; as the calibrator's."""
        features, output = self._new_items(X)
        return self.calibrator_.support(features, **output, **options)

    @available_if(_calibrator_has("evidence"))
    @on_snapshot
    def evidence(self, X: Any, **options: Any) -> Any:
        """Return the calibration items that voted for each item; as the calibrator's."""
        features, output = self._new_items(X)
        return self.calibrator_.evidence(features, **output, **options)

    @available_if(_calibrator_has("effective_sample_size"))
    @on_snapshot
    def effective_sample_size(self, X: Any, **options: Any) -> Any:
        """Return how many equal votes each item's vote is worth; as the calibrator's."""
        features, output = self._new_items(X)
        return self.calibrator_.effective_sample_size(features, **output, **options)

    @available_if(_calibrator_has("predict_interval"))
    @on_snapshot
    def predict_interval(self, X: Any, **options: Any) -> Any:
        """Return an interval of P(y | x) for each item; as the calibrator's."""
        features, output = self._new_items(X)
        return self.calibrator_.predict_interval(features, **output, **options)

    @available_if(_calibrator_has("predict_smoothed_interval"))
    @on_snapshot
    def predict_smoothed_interval(self, X: Any, **options: Any) -> Any:
        """Return an interval for each smoothed probability; as the calibrator's."""
        features, output = self._new_items(X)
        return self.calibrator_.predict_smoothed_interval(features, **output, **options)

    @available_if(_calibrator_has("predict_venn_abers_pair"))
    @on_snapshot
    def predict_venn_abers_pair(self, X: Any, **options: Any) -> Any:
        """Return the Venn-Abers pair of E[y | q], of items predicted alike; as the calibrator's."""
        features, output = self._new_items(X)
        return self.calibrator_.predict_venn_abers_pair(features, **output, **options)
