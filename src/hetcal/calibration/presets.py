"""Calibrators that are a setting of another one: SWC, SWC-HH, SBA-10, SBAW-10, quadratic.

Each function gives hetcal's own variant; the dictionaries turn it into the published one.
"""

from __future__ import annotations

from typing import Any

from hetcal.calibration.similarity import SimilarityCalibrator
from hetcal.calibration.spline import SplineCalibration
from hetcal.heterogeneity import HiddenHeterogeneity
from hetcal.similarity import EuclideanSimilarity

# The published code puts probabilities beside the features as given: standardised for the forest,
# raw for the neighbours.
PAPER_SWC: dict[str, Any] = {"augment": "proba-scaled", "random_state": 0}
PAPER_SWC_HH: dict[str, Any] = PAPER_SWC | {"heterogeneity": HiddenHeterogeneity(estimate="paper")}
PAPER_SBA: dict[str, Any] = {
    "similarity": EuclideanSimilarity(duplicates="paper", scale=False),
    "augment": "proba",
}


def swc(**params: Any) -> SimilarityCalibrator:
    """Similarity-weighted calibration: everyone votes, weighted by forest proximity."""
    return SimilarityCalibrator(**params)


def swc_hh(**params: Any) -> SimilarityCalibrator:
    """SWC among the items whose similarity is at least half the hidden heterogeneity."""
    return SimilarityCalibrator(**({"heterogeneity": HiddenHeterogeneity(n_null=9)} | params))


def sba(**params: Any) -> SimilarityCalibrator:
    """Similarity-binning averaging: the mean label of the ten nearest calibration items."""
    return SimilarityCalibrator(**(_nearest_ten() | {"weights": "uniform"} | params))


def sbaw(**params: Any) -> SimilarityCalibrator:
    """SBA with each neighbour weighted by one over its distance."""
    return SimilarityCalibrator(**(_nearest_ten() | params))


def quadratic(**params: Any) -> SplineCalibration:
    """Quadratic map of the log-odds that never reverses the ranking: a spline with two knots."""
    return SplineCalibration(**({"n_knots": 2} | params))


def _nearest_ten() -> dict[str, Any]:
    return {"similarity": EuclideanSimilarity(), "n_neighbors": 10, "augment": "proba"}
