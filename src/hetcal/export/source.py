"""What can be exported: a fitted map that looks at the classifier's output alone."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from hetcal.calibration.base import GlobalCalibrator
from hetcal.calibration.preserving import LabelPreserving
from hetcal.calibration.wrapper import LocallyCalibratedClassifier


def exported_map(calibrator: Any, caller: str) -> GlobalCalibrator:
    """Return the global map of a calibrator or calibrated classifier, or say why there is none."""
    if not isinstance(calibrator, BaseEstimator):
        raise TypeError(
            f"{caller} exports fitted calibrators; got {type(calibrator).__name__}. Pass the "
            "calibrator itself (of a monitor: its calibrator_)."
        )
    check_is_fitted(calibrator)
    if isinstance(calibrator, LocallyCalibratedClassifier):
        calibrator = calibrator.calibrator_
    name = type(calibrator).__name__
    if isinstance(calibrator, LabelPreserving):
        raise TypeError(
            f"{caller} got a LabelPreserving calibrator, which has no formula. Export its "
            "calibrator_ (decisions may then change), or serve it with hetcal.load."
        )
    if not isinstance(calibrator, GlobalCalibrator):
        raise TypeError(
            f"{caller} exports global maps, which look at the probabilities alone; {name} compares "
            "every item with the calibration items by its features. Serve it with hetcal.load or "
            "hetcal apply, or export a global map: get_calibrator('global'), hetcal fit --method "
            "global."
        )
    return calibrator


def two_class_map(calibrator: Any, caller: str) -> GlobalCalibrator:
    """Return the global map of two classes."""
    map_ = exported_map(calibrator, caller)
    if len(map_.classes_) != 2:
        raise ValueError(
            f"{caller} writes maps of two classes; this one has {len(map_.classes_)}. Use "
            "hetcal.export.to_onnx, or calibrate one class against the rest."
        )
    return map_
