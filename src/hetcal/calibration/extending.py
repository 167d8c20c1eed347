"""Calibration items that join a fitted calibrator, and old ones that it forgets."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hetcal._threads import ThreadSafe
from hetcal._typing import Matrix
from hetcal._validation import check_labels, check_same_rows, check_sample_weight
from hetcal.calibration.forgetting import (
    Aged,
    Forgetting,
    check_classes_left,
    check_times,
    items_to_age,
)
from hetcal.data import NewItems
from hetcal.kernels.votes import Voters


class ExtendableVotes(ThreadSafe):
    """Gives a calibrator by votes :meth:`extend`; it holds its items in the parts named here."""

    new_items: Any
    classes_: NDArray
    voters_: Voters
    similarity_: Any
    space_: Any
    scores_: Any
    groups_: Any
    heterogeneity_: Any
    times_: Matrix | None
    _out_of_sample: Matrix | None
    _out_of_sample_support: Any

    def extend(
        self,
        X: Any,
        y: Any,
        *,
        y_proba: Any = None,
        logits: Any = None,
        sample_weight: Any = None,
        times: Any = None,
        half_life: Any = None,
        window: Any = None,
    ) -> Self:
        """Add calibration items without learning the similarity anew, and forget old ones.

        Parameters
        ----------
        X, y, y_proba, logits, sample_weight
            Further calibration items, as in :meth:`fit`; the newest last.
        times : array-like of shape (m,), optional
            When each of them was seen: dates or numbers. Items of before that have no time, such
            as those of :meth:`fit`, count as seen when the first that has one was.
        half_life : float or duration, optional
            After so many rows (with dates as ``times``: so much time, such as ``"30 days"``; with
            numbers: in their unit) an item counts half. Items of :meth:`fit` begin to lose weight
            with the first that is added. After 30 half-lives an item is dropped.
        window : float or duration, optional
            Only so many of the newest rows stay (with ``times``: items of so much time).

        Returns
        -------
        self
        """
        added = self.new_items(X, y_proba=y_proba, logits=logits)
        codes, _ = check_labels(y, self.classes_)
        check_same_rows(X=X, y=codes)
        weight = None
        if sample_weight is not None:
            weight = check_sample_weight(sample_weight, codes.shape[0])
        aged = self.aged_by(codes, weight, times, half_life=half_life, window=window)
        return self.extend_items(added, codes, aged)

    def aged_by(
        self,
        codes: NDArray[np.int64],
        weight: Matrix | None = None,
        times: Any = None,
        *,
        half_life: Any = None,
        window: Any = None,
    ) -> Aged:
        """Return what stays of the calibration items, and of more of them, once these are added."""
        known = getattr(self, "times_", None)  # files did not always have it
        seen = check_times(times, len(codes), known)
        aged = Forgetting.check(half_life, window, times).join(
            items_to_age(len(self.voters_.codes), self.voters_.weight, known),
            items_to_age(len(codes), weight, seen),
        )
        check_classes_left(self.classes_[np.concatenate([self.voters_.codes, codes])], aged)
        return aged

    def extend_items(self, items: NewItems, codes: NDArray[np.int64], aged: Aged) -> Self:
        """Add calibration items that were checked already, and keep those of :meth:`aged_by`."""
        if self.groups_ is not None or self.heterogeneity_ is not None:
            raise ValueError(
                "extend is not available after fit with groups= or heterogeneity=, which need the "
                "whole calibration set. Fit anew on all items."
            )
        self.similarity_ = copy(self.similarity_)
        self.similarity_.extend(self.space_.join(items.features, items.scores))
        if len(aged.rows) < self.similarity_.n_items_:
            self.similarity_.retain(aged.rows)
        every = np.concatenate([self.voters_.codes, codes])
        self.voters_ = Voters(every[aged.rows], len(self.classes_), aged.weight)
        self.scores_ = self.scores_.plus(items.scores).take(aged.rows)
        self.times_ = aged.times
        self._out_of_sample = None
        self._out_of_sample_support = None
        return self
