"""Calibrators: global maps, votes of similar items, and the registry of their short names."""

from hetcal.calibration.atoms import AtomCalibration
from hetcal.calibration.base import BaseCalibrator, GlobalCalibrator
from hetcal.calibration.beta import BetaCalibration
from hetcal.calibration.blend import GlobalBlend
from hetcal.calibration.confidence import from_confidence
from hetcal.calibration.ensemble import EnsembleTemperatureScaling
from hetcal.calibration.histogram import HistogramBinning
from hetcal.calibration.hybrid import HybridCalibrator
from hetcal.calibration.isotonic import IsotonicCalibration
from hetcal.calibration.logprobs import from_logprobs
from hetcal.calibration.matrix import MatrixScaling
from hetcal.calibration.platt import PlattScaling
from hetcal.calibration.precomputed import PrecomputedProba
from hetcal.calibration.preserving import LabelPreserving
from hetcal.calibration.registry import get_calibrator, list_calibrators, register_calibrator
from hetcal.calibration.similarity import SimilarityCalibrator
from hetcal.calibration.spline import SplineCalibration
from hetcal.calibration.temperature import BiasCorrectedTemperatureScaling, TemperatureScaling
from hetcal.calibration.uncalibrated import Uncalibrated
from hetcal.calibration.vector import VectorScaling
from hetcal.calibration.venn_abers import VennAbersCalibration
from hetcal.calibration.wrapper import LocallyCalibratedClassifier

__all__ = [
    "AtomCalibration",
    "BaseCalibrator",
    "BetaCalibration",
    "BiasCorrectedTemperatureScaling",
    "EnsembleTemperatureScaling",
    "GlobalBlend",
    "GlobalCalibrator",
    "HistogramBinning",
    "HybridCalibrator",
    "IsotonicCalibration",
    "LabelPreserving",
    "LocallyCalibratedClassifier",
    "MatrixScaling",
    "PlattScaling",
    "PrecomputedProba",
    "SimilarityCalibrator",
    "SplineCalibration",
    "TemperatureScaling",
    "Uncalibrated",
    "VectorScaling",
    "VennAbersCalibration",
    "from_confidence",
    "from_logprobs",
    "get_calibrator",
    "list_calibrators",
    "register_calibrator",
]
