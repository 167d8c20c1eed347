"""The streams of a monitor that has counted nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal._typing import Matrix
from hetcal.monitor.groups import Members, class_members, most_frequent, named_members
from hetcal.monitor.labels import LabelSums
from hetcal.monitor.reference import Reference
from hetcal.monitor.streams import Streams
from hetcal.monitor.watched import independent_items, item_weights, own_predictions


def start_streams(monitor: Any, calibrator: Any, stated: Matrix | None) -> Streams:
    """Return one stream for all reference items, and one for each group of them.

    ``stated`` are the classifier's probabilities of the calibration items, where they are known.
    """
    reference, most = monitor.reference_, monitor.max_groups
    members: Members = {}
    if reference.top is not None:
        members |= class_members(calibrator.classes_, reference.top, most)
    members |= named_members(reference.by, most_frequent(reference.by, most))
    own = reference if monitor.reference == "oob" else None
    usual = _UsualLabels(calibrator, stated, own)
    return Streams.start(monitor.scorer_.bins(reference.scores), members, usual.sums)


class _UsualLabels:
    """Label sums over the out-of-sample predictions of the calibration items.

    Where the reference items are others (``reference`` is None), every group has those of all.
    """

    def __init__(self, calibrator: Any, stated: Matrix | None, reference: Reference | None):
        Q, self.codes = own_predictions(calibrator)
        self.sources = [Q] if stated is None else [Q, stated]
        self.weight, self.calibrator = item_weights(calibrator), calibrator
        self.rows = None if reference is None else reference.calibration_rows()

    def sums(self, own: NDArray[np.bool_] | None) -> list[LabelSums]:
        """Return the sums over some of the reference items; over all, where there are none.

        By calibrated probabilities, and by stated ones where they are known.
        """
        rows: Any = slice(None)
        if own is not None and self.rows is not None and own.any():
            rows = self.rows[own]
        weight = None if self.weight is None else self.weight[rows]

        def worth(excess: Matrix) -> float:
            return independent_items(self.calibrator, excess, rows)

        return [LabelSums.over(Q[rows], self.codes[rows], weight, worth) for Q in self.sources]
