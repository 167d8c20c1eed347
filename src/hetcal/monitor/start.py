"""The streams of a monitor that has counted nothing."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal._validation import check_labels
from hetcal.monitor.groups import Members, class_members, most_frequent, named_members
from hetcal.monitor.labels import LabelSums
from hetcal.monitor.reference import Reference
from hetcal.monitor.streams import Streams


def start_streams(monitor: Any, calibrator: Any) -> Streams:
    """Return one stream for all reference items, and one for each group of them."""
    reference, most = monitor.reference_, monitor.max_groups
    members: Members = {}
    if reference.top is not None:
        members |= class_members(calibrator.classes_, reference.top, most)
    members |= named_members(reference.by, most_frequent(reference.by, most))
    usual = _UsualLabels(calibrator, reference if monitor.reference == "oob" else None)
    return Streams.start(monitor.scorer_.bins(reference.scores), members, usual.sums)


class _UsualLabels:
    """Label sums over the out-of-sample predictions of the calibration items.

    Where the reference items are others (``reference`` is None), every group has those of all.
    """

    def __init__(self, calibrator: Any, reference: Reference | None):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.Q = calibrator.out_of_sample_proba_
        self.codes, _ = check_labels(calibrator.calibration_labels(), calibrator.classes_)
        self.rows = None if reference is None else reference.calibration_rows()

    def sums(self, own: NDArray[np.bool_] | None) -> LabelSums:
        """Return the sums over some of the reference items; over all, where there are none."""
        if own is None or self.rows is None or not own.any():
            return LabelSums.over(self.Q, self.codes)
        rows = self.rows[own]
        return LabelSums.over(self.Q[rows], self.codes[rows])
