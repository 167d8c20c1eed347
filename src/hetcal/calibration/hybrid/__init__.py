"""The hybrid calibrator: several experts, weighed by their honest predictions."""

from hetcal.calibration.hybrid.calibrator import HybridCalibrator

__all__ = ["HybridCalibrator"]
