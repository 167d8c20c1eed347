"""The saturated map: a frequency for every value that the classifier can say."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hetcal._stored import expect
from hetcal._stored.fields import instance, number, numbers
from hetcal._typing import Matrix
from hetcal.calibration.base import GlobalCalibrator, stored_map
from hetcal.calibration.temperature import BiasCorrectedTemperatureScaling
from hetcal.data import Scores
from hetcal.kernels.atoms import best_mass, counts_by_atom, find_atoms, match_atoms


@stored_map(
    {
        "atoms_": numbers(None, None, low=0.0, high=1.0),
        "counts_": numbers(None, None, low=0.0),
        "mass_": number(1e-6),
        "prior_": instance(BiasCorrectedTemperatureScaling, "scale_", "bias_"),
    }
)
class AtomCalibration(GlobalCalibrator):
    r"""Return the class frequencies among the items with the same probabilities.

    For classifiers that say few different things, as trees and small forests do: no map of p can
    do more. The frequencies at each such atom are shrunk towards bias-corrected temperature
    scaling g,

    .. math:: q(p) = \frac{m\, g(p) + \mathrm{counts}(p)}{m + n(p)},

    by a mass m that the counts themselves choose (empirical Bayes). Probabilities that the
    calibration items do not have get the smooth map, and so does everything where no two items
    agree.

    Parameters
    ----------
    classes : array-like of shape (K,), optional
        The classes in the column order of ``y_proba``.

    Attributes
    ----------
    atoms_, counts_ : ndarray of shape (A, K)
        The distinct probabilities, and the items of each class there.
    mass_ : float
        m, in items.
    prior_ : BiasCorrectedTemperatureScaling
        g.
    classes_ : ndarray of shape (K,)
        The classes, in the order of the columns.

    Examples
    --------
    >>> y_proba = [[0.7, 0.3]] * 20 + [[0.2, 0.8]] * 20
    >>> y = [0] * 19 + [1] + [0, 1] * 10
    >>> calibrator = AtomCalibration().fit(None, y, y_proba=y_proba)
    >>> calibrator.predict_proba(y_proba=[[0.7, 0.3]]).round(1)
    array([[0.9, 0.1]])
    """

    def _check_restored(self) -> None:
        super()._check_restored()
        K = len(self.prior_.bias_)
        expect(self.atoms_.shape == self.counts_.shape, self, "has not one count per atom")
        expect(self.atoms_.shape[1] == K, self, "has atoms of other classes")
        same = not hasattr(self, "classes_") or len(self.classes_) == K
        expect(same, self, "has a smooth map of other classes")

    def _fit_map(self, scores: Scores, codes: NDArray[np.int64], weight: Matrix) -> None:
        self.prior_ = BiasCorrectedTemperatureScaling()
        self.prior_._fit_map(scores, codes, weight)
        used = np.flatnonzero(weight > 0)
        self.atoms_, place = find_atoms(scores.proba[used])
        self.counts_ = counts_by_atom(place, codes[used], weight[used], self.atoms_.shape)
        # The mean over the items of an atom: their logarithms may differ where their p does not.
        smooth = weight[used][:, None] * self.prior_._apply_map(scores.take(used))
        smooth = np.stack([np.bincount(place, column) for column in smooth.T], axis=1)
        self.mass_ = best_mass(self.counts_, smooth / self.counts_.sum(axis=1, keepdims=True))

    def _apply_map(self, scores: Scores) -> Matrix:
        smooth = self.prior_._apply_map(scores)
        place = match_atoms(scores.proba, self.atoms_)
        counts = np.where(place[:, None] >= 0, self.counts_[place], 0.0)
        return (self.mass_ * smooth + counts) / (self.mass_ + counts.sum(axis=1, keepdims=True))
