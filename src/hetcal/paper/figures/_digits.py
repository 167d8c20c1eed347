"""What Figures 5 and 6 share: a linear SVM on the digits 1 and 7, calibrated by SWC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal.calibration import get_calibrator
from hetcal.calibration.similarity import SimilarityCalibrator
from hetcal.datasets import PaperSplit, load_dataset, paper_classifier, paper_split

Matrix = NDArray[np.float64]

DATASET, N_CAL, SIDE = "mnist-1v7", 3000, 28


@dataclass(frozen=True, eq=False)
class CalibratedDigits:
    """A trial on mnist-1v7: the classifier, its calibration, and the test images as they are.

    Attributes
    ----------
    split : PaperSplit
        Scaled by the training set.
    images : ndarray of shape (n_test, 28, 28)
        The test items' pixels.
    """

    split: PaperSplit
    images: Matrix
    classifier: Any
    swc: SimilarityCalibrator
    _center: Matrix
    _scale: Matrix

    @classmethod
    def trial(cls, seed: int) -> CalibratedDigits:
        """Train on 500 items and calibrate on 3000."""
        split = paper_split(DATASET, seed, N_CAL)
        pixels = np.asarray(load_dataset(DATASET).X, dtype=np.float64)
        classifier = paper_classifier("SVM").fit(split.X_train, split.y_train)
        swc = get_calibrator("swc", preset="paper").fit(
            split.X_cal, split.y_cal, y_proba=classifier.predict_proba(split.X_cal)
        )
        train = pixels[split.index_train]
        spread = train.std(axis=0)
        return cls(
            split,
            pixels[split.index_test].reshape(-1, SIDE, SIDE),
            classifier,
            swc,
            train.mean(axis=0),
            np.where(spread > 0, spread, 1.0),
        )

    def scaled(self, images: Matrix) -> Matrix:
        """Return images as the classifier sees them: rows, standardised by the training set."""
        return (images.reshape(len(images), -1) - self._center) / self._scale

    def support(self, images: Matrix) -> Matrix:
        """Return the calibration support of images."""
        X = self.scaled(images)
        return self.swc.support(X, y_proba=self.classifier.predict_proba(X))
