"""What a user asks of the test: columns in particular, and learners by name or as regressors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from hetcal._validation import check_same_rows
from hetcal._validation.containers import as_frame, as_vector
from hetcal._validation.text import short_list
from hetcal.data import CalibrationSet
from hetcal.heterogeneity.residual_learners import LEARNERS, USUAL, Learner, regressor_learner


def columns_asked_for(calibration: CalibrationSet, by: Any) -> Any:
    """Return the columns that the user asks about, as a table of all items."""
    if by is None:
        return None
    names = [by] if isinstance(by, str) else by
    if isinstance(names, list | tuple) and all(isinstance(name, str) for name in names):
        frame = as_frame(calibration.X)
        known: list[str] = [] if frame is None else list(frame.columns)
        unknown = [name for name in names if name not in known]
        if unknown or frame is None:
            raise ValueError(
                f"heterogeneity_test: by names columns that X does not have: "
                f"{short_list(unknown)}. Its columns are "
                f"{short_list(known, 20) if known else 'without names'}; pass the values instead."
            )
        return frame.select(list(names)).to_native()
    if isinstance(by, Mapping):
        columns = {str(name): as_vector(column, f"by[{name!r}]") for name, column in by.items()}
        check_same_rows(y=calibration.codes, **columns)
        by = pd.DataFrame(columns)
    table = by if as_frame(by) is not None else pd.DataFrame(np.asarray(by))
    if len(table) != calibration.n_items:
        raise ValueError(
            f"heterogeneity_test: by has {len(table)} rows, but X has {calibration.n_items}. Pass "
            "one row per item."
        )
    return table.rename(columns=str) if isinstance(table, pd.DataFrame) else table


def learners_asked_for(asked: str | Sequence[Any]) -> dict[str, Learner]:
    """Return the learners by name."""
    if isinstance(asked, str):
        if asked == "auto":
            return {name: LEARNERS[name] for name in USUAL}
        asked = [asked]
    found: dict[str, Learner] = {}
    for learner in asked:
        if isinstance(learner, str) and learner in LEARNERS:
            found[learner] = LEARNERS[learner]
        elif hasattr(learner, "fit") and hasattr(learner, "predict"):
            found[f"{type(learner).__name__} {len(found)}"] = regressor_learner(learner)
        else:
            raise ValueError(
                f"heterogeneity_test: learners must be 'auto' or a list of {list(LEARNERS)} and of "
                f"scikit-learn regressors; got {learner!r}."
            )
    return found
