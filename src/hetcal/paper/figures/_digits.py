"""What Figures 5 and 6 share: a linear SVM on the digits 1 and 7, calibrated by SWC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from hetcal._typing import Matrix
from hetcal.calibration import get_calibrator
from hetcal.calibration.similarity import SimilarityCalibrator
from hetcal.datasets import PaperSplit, paper_classifier, paper_split

DATASET, N_CAL, SIDE = "mnist-1v7", 3000, 28


@dataclass(frozen=True, eq=False)
class CalibratedDigits:
    """A trial on mnist-1v7: the classifier, its calibration, and the test images as they are.

    Attributes
    ----------
    split : PaperSplit
        Not scaled: pixels.
    classifier, swc
        Trained and calibrated on the scaled pixels of :meth:`scaled`.
    """

    split: PaperSplit
    scaler: StandardScaler
    classifier: Any
    swc: SimilarityCalibrator

    @classmethod
    def trial(cls, seed: int) -> CalibratedDigits:
        """Train on 500 items and calibrate on 3000."""
        split = paper_split(DATASET, seed, N_CAL, scale=False)
        scaler = StandardScaler().fit(split.X_train)
        classifier = paper_classifier("SVM").fit(scaler.transform(split.X_train), split.y_train)
        X_cal = scaler.transform(split.X_cal)
        swc = get_calibrator("swc", preset="paper").fit(
            X_cal, split.y_cal, y_proba=classifier.predict_proba(X_cal)
        )
        return cls(split, scaler, classifier, swc)

    @property
    def images(self) -> Matrix:
        """The test items' pixels, of shape (n_test, 28, 28)."""
        return np.asarray(self.split.X_test).reshape(-1, SIDE, SIDE)

    def scaled(self, images: Matrix) -> Matrix:
        """Return images as the classifier sees them: rows, standardised by the training set."""
        return self.scaler.transform(images.reshape(len(images), -1))

    def support(self, images: Matrix) -> Matrix:
        """Return the calibration support of images."""
        X = self.scaled(images)
        return self.swc.support(X, y_proba=self.classifier.predict_proba(X))
