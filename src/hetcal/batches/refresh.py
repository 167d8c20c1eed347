"""A calibrator that learns from newer rows, and whether that is better on rows like these.

Calibrators that can be extended take the rows as further items. All others are fitted anew to the
tables of before and the new one, in which older rows count less or not at all.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import softmax

from hetcal._exceptions import InputError
from hetcal._typing import Matrix, Rows
from hetcal._validation import check_labels, warn_column_order
from hetcal.batches.known_rows import can_extend, refuse_known
from hetcal.batches.model import LoadedModel
from hetcal.calibration.fitting import fitted_to, out_of_sample_proba
from hetcal.calibration.forgetting import (
    Aged,
    Forgetting,
    check_classes_left,
    check_times,
    items_to_age,
)
from hetcal.data import CalibrationSet
from hetcal.metrics.gains import Gain
from hetcal.metrics.scores import brier_losses
from hetcal.tables.later_rows import LaterRows


@dataclass(frozen=True)
class Refreshed:
    """A calibrator that has learned from new rows.

    Attributes
    ----------
    calibrator : calibrator
        A new one; the one before is as it was.
    n_new : int
        How many of its calibration items are new.
    kept : ndarray of int of shape (n_items,)
        Which items these are, counted through those of before and the new rows.
    brier_model, brier_before, brier_after : float
        Brier scores of these new ones: as the model states, by the calibrator of before, and by the
        refreshed one, for which each was predicted without its label. The last is None where the
        items are too few to leave some out.
    gain : Gain or None
        How much better the refreshed one is than that of before; None where that is not known, or
        the rows are too few for its interval.
    """

    calibrator: Any
    n_new: int
    kept: Rows
    brier_model: float
    brier_before: float
    brier_after: float | None
    gain: Gain | None

    @property
    def n_items(self) -> int:
        """Calibration items that it holds, or was fitted to."""
        return len(self.kept)


def refresh(
    model: LoadedModel,
    new: LaterRows,
    old: Sequence[LaterRows] = (),
    *,
    half_life: Any = None,
    window: Any = None,
    random_state: int = 0,
) -> Refreshed:
    """Return a calibrator that has learned from new rows.

    Parameters
    ----------
    model : LoadedModel
        From :func:`hetcal.batches.load_model`.
    new : LaterRows
        Rows that it has not seen; refused where most are known to it, or among ``old``.
    old : sequence of LaterRows, optional
        What it was fitted to, the oldest first; all are learned anew. Needed where the calibrator
        cannot be extended.
    half_life, window : optional
        How fast old rows are forgotten, as in :meth:`hetcal.SimilarityCalibrator.extend`; in time
        where the rows have times.
    random_state : int, default=0
        Seed of the folds for calibrators without out-of-sample predictions of their own.
    """
    try:
        forgetting = Forgetting.check(half_life, window, new.times)
    except ValueError as error:
        raise InputError(str(error)) from error
    refuse_known(model, new, old)
    if old:
        learned = _fitted_anew(model, [*old, new], forgetting, random_state)
    elif can_extend(model.calibrator):
        learned = _extended(model, new, half_life, window)
    else:
        raise InputError(
            f"The file of a {model.record.get('method', 'calibrator')} does not hold what it takes "
            "to learn from more rows. Pass the table of hetcal fit with --calibration, and it is "
            "fitted anew to both; or fit to the new rows alone with hetcal fit."
        )
    return _scored(model, new, learned)


class _Learned(NamedTuple):
    """A refreshed calibrator.

    Which items it knows, which of the new rows are among them, and what it says of each of these
    without its label.
    """

    calibrator: Any
    kept: Rows
    rows: Rows
    proba: Matrix


def _extended(model: LoadedModel, new: LaterRows, half_life: Any, window: Any) -> _Learned:
    calibrator = copy.copy(model.calibrator)
    n_old = len(calibrator.calibration_labels())
    codes, _ = check_labels(new.y, calibrator.classes_)
    items = calibrator.new_items(new.X, **{model.roles.output_kind: new.output})
    aged = calibrator.aged_by(codes, new.weight, new.times, half_life=half_life, window=window)
    rows = _rows_after(n_old, aged.rows)
    calibrator.extend_items(items, codes, aged)
    own = calibrator.out_of_sample_proba_[-len(rows) :]
    return _Learned(calibrator, aged.rows, rows, own)


def _fitted_anew(
    model: LoadedModel, tables: list[LaterRows], forgetting: Forgetting, seed: int
) -> _Learned:
    """Fit to all tables, the oldest first; each makes the rows before it older."""
    n_before, aged = 0, _to_age(tables[0])
    for earlier, table in pairwise(tables):
        n_before += earlier.n_items
        joined = forgetting.join(aged, _to_age(table))
        places = np.concatenate([aged.rows, n_before + np.arange(table.n_items)])
        aged = joined._replace(rows=places[joined.rows])
    check_classes_left(np.concatenate([table.y for table in tables]), aged)
    items = _joined_items(model, tables, aged)
    rows = _rows_after(n_before, aged.rows)
    fitted = fitted_to(model.calibrator, items)
    Q = out_of_sample_proba(fitted, items, seed)[-len(rows) :]
    return _Learned(fitted, aged.rows, rows, Q)


def _to_age(rows: LaterRows) -> Aged:
    return items_to_age(rows.n_items, rows.weight, check_times(rows.times, rows.n_items, None))


def _joined_items(model: LoadedModel, tables: list[LaterRows], aged: Aged) -> CalibrationSet:
    """Return the rows of all tables that stay, as one calibration set."""
    X = groups = None
    if model.roles.features:
        X = pd.concat([table.X for table in tables], ignore_index=True).iloc[aged.rows]
    if model.roles.groups:
        groups = np.concatenate([table.groups for table in tables])[aged.rows]
    output = np.concatenate([table.output for table in tables])[aged.rows]
    return CalibrationSet.check(
        X,
        np.concatenate([table.y for table in tables])[aged.rows],
        classes=model.calibrator.classes_,
        sample_weight=aged.weight,
        groups=groups,
        caller="hetcal refresh",
        order_is_known=True,
        **{model.roles.output_kind: output},
    )


def _rows_after(n_old: int, rows: Rows) -> Rows:
    """Return which of the new rows stay, or raise where none does."""
    new = rows[rows >= n_old] - n_old
    if len(new) == 0:
        raise InputError("The new rows are older than the window. Pass newer ones, or a wider one.")
    return new


def _scored(model: LoadedModel, new: LaterRows, learned: _Learned) -> Refreshed:
    """Compare with the calibrator of before, on the new rows that have stayed."""
    rows = learned.rows
    X = None if new.X is None else new.X.iloc[rows]
    kind = model.roles.output_kind
    P = new.output[rows] if kind == "y_proba" else softmax(new.output[rows], axis=1)
    scored = CalibrationSet.to_score(
        new.y[rows],
        P,
        classes=model.calibrator.classes_,
        sample_weight=None if new.weight is None else new.weight[rows],
        groups=None if new.groups is None else new.groups[rows],
    )
    warn_column_order(
        scored.codes, P, scored.classes, name=kind, weight=scored.weight, groups=scored.groups
    )
    before = model.calibrator.predict_proba(X, **{kind: new.output[rows]})
    losses = [brier_losses(Q, scored.codes) for Q in (P, before, learned.proba)]
    means: list[float] = [float(np.average(loss, weights=scored.weight)) for loss in losses]
    known = not np.isnan(losses[-1]).any()
    gain = Gain.between(before, learned.proba, scored) if known else None
    if gain is not None and not np.isfinite(gain.high - gain.low):  # one row, or one group
        gain = None
    return Refreshed(
        learned.calibrator,
        len(rows),
        learned.kept,
        means[0],
        means[1],
        means[2] if known else None,
        gain,
    )
