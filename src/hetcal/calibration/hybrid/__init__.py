"""The hybrid calibrator: several experts, weighed by their out-of-sample predictions."""

from hetcal.calibration.hybrid.calibrator import HybridCalibrator

__all__ = ["HybridCalibrator"]
