"""Rows that a calibrator has learned from are no test of it, in whatever order they come.

Rows are compared by a hash each. Where features and probabilities take few values, different rows
are equal too: how often is read off the rows of before, which repeat one another by the same chance
as new ones repeat them.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import binom

from hetcal._exceptions import InputError
from hetcal._validation import check_labels
from hetcal.batches.model import LoadedModel
from hetcal.calibration import SimilarityCalibrator
from hetcal.calibration.forgetting import items_to_age
from hetcal.similarity.forest import LeafSimilarity
from hetcal.tables.later_rows import LaterRows

_Hashes = NDArray[np.integer]

# A share of the new rows beyond chance, and how rarely chance may find as many.
_LEAST_SHARE, _RARELY = 0.5, 1e-3
# Probabilities that differ by rounding alone are one.
_DECIMALS = 9


def can_extend(calibrator: object) -> bool:
    """Return whether a calibrator holds its items and can take more of them."""
    return (
        isinstance(calibrator, SimilarityCalibrator)
        and calibrator.groups_ is None
        and calibrator.heterogeneity_ is None
        and not getattr(calibrator, "features_forgotten_", False)
    )


def refuse_known(model: LoadedModel, new: LaterRows, old: Sequence[LaterRows]) -> None:
    """Raise where most of the new rows are among those of before, as far as these are known."""
    tables = [rows.hashes() for rows in old]
    joined = [np.concatenate(tables)] if tables else []
    if any(_mostly_among(new.hashes(), known) for known in [*tables, *joined]):
        raise InputError(
            "hetcal refresh expected rows that are newer than those of --calibration; most of the "
            "new rows are among these. Pass the tables of before with --calibration, and only "
            "newer rows as TABLE."
        )
    if can_extend(model.calibrator) and _mostly_among(*_hashes_by_model(model, new)):
        raise InputError(
            "hetcal refresh expected rows that the model has not learned from; most of the new "
            "rows are among its calibration items. Pass newer rows only."
        )


def _mostly_among(new: _Hashes, known: _Hashes) -> bool:
    n_found = int(np.isin(new, known).sum())
    counts = np.unique(known, return_counts=True)[1]
    by_chance = counts[counts > 1].sum() / counts.sum()
    beyond_chance = n_found / len(new) - by_chance
    return bool(
        beyond_chance > _LEAST_SHARE and binom.sf(n_found - 1, len(new), by_chance) < _RARELY
    )


def _hashes_by_model(model: LoadedModel, new: LaterRows) -> tuple[_Hashes, _Hashes]:
    """Return the hashes of the new rows and of the model's items, by what it keeps of either."""
    both = copy.copy(model.calibrator)
    n_known = len(both.calibration_labels())
    codes, _ = check_labels(new.y, both.classes_)
    items = both.new_items(new.X, **{model.roles.output_kind: new.output})
    both.extend_items(items, codes, items_to_age(n_known + len(codes), None, None))
    kept = [both.voters_.codes, both.scores_.proba.round(_DECIMALS)]
    if isinstance(both.similarity_, LeafSimilarity):
        kept.append(both.similarity_.leaves_)
    columns = pd.concat([pd.DataFrame(part) for part in kept], axis=1)
    hashes = pd.util.hash_pandas_object(columns, index=False).to_numpy()
    return hashes[n_known:], hashes[:n_known]
