"""What a user asks of the test: columns in particular, and learners by name or as regressors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier

from hetcal._validation import check_same_rows
from hetcal._validation.containers import as_frame, as_vector
from hetcal._validation.text import short_list
from hetcal.data import CalibrationSet
from hetcal.heterogeneity.residual_learners import LEARNERS, USUAL, Learner, regressor_learner


def columns_asked_for(calibration: CalibrationSet, by: Any) -> Any:
    """Return the columns that the user asks about, as a table of all items."""
    if by is None:
        return None
    names = [by] if isinstance(by, str | Integral) else by
    if _are_names(names, calibration.n_items):
        return _columns_named(calibration.X, names)
    if isinstance(by, Mapping):
        columns = {str(name): as_vector(column, f"by[{name!r}]") for name, column in by.items()}
        check_same_rows(y=calibration.codes, **columns)
        by = pd.DataFrame(columns)
    table = by if as_frame(by) is not None else _as_table(by)
    if len(table) != calibration.n_items:
        raise ValueError(
            f"heterogeneity_test: by has {len(table)} rows, but X has {calibration.n_items}. Pass "
            "one row per item."
        )
    return table.rename(columns=str) if isinstance(table, pd.DataFrame) else table


def _are_names(by: Any, n_items: int) -> bool:
    """Return whether a list names columns; numbers, one per item, are values."""
    if not isinstance(by, list | tuple):
        return False
    if all(isinstance(name, str) for name in by):
        return True
    return len(by) != n_items and all(isinstance(name, str | Integral) for name in by)


def _columns_named(X: Any, names: Sequence[Any]) -> Any:
    frame = as_frame(X)
    known: list[Any] = [] if frame is None else list(frame.columns)
    unknown = [name for name in names if name not in known]
    if unknown or frame is None:
        raise ValueError(
            f"heterogeneity_test: by names columns that X does not have: "
            f"{short_list(unknown)}. Its columns are "
            f"{short_list(known, 20) if known else 'without names'}; pass the values instead."
        )
    return frame[:, [known.index(name) for name in names]].to_native()


def _as_table(by: Any) -> pd.DataFrame:
    values = np.asarray(by)
    if values.ndim not in (1, 2):
        raise ValueError(
            "heterogeneity_test: by must name columns of X, or hold a value (or a row of values) "
            f"per item; got {by!r}. Pass names, or a table or dict of columns."
        )
    return pd.DataFrame(values)


def learners_asked_for(asked: str | Sequence[Any]) -> dict[str, Learner]:
    """Return the learners by name."""
    if isinstance(asked, str) and asked == "auto":
        return {name: LEARNERS[name] for name in USUAL}
    if isinstance(asked, str) or not isinstance(asked, Iterable):
        asked = [asked]
    found: dict[str, Learner] = {}
    for learner in asked:
        if isinstance(learner, str) and learner in LEARNERS:
            found[learner] = LEARNERS[learner]
        elif _is_regressor(learner):
            found[f"{type(learner).__name__} {len(found)}"] = regressor_learner(learner)
        else:
            raise ValueError(
                f"heterogeneity_test: learners must be 'auto' or a list of {list(LEARNERS)} and of "
                f"scikit-learn regressors; got {learner!r}.{_remedy(learner)}"
            )
    return found


def _is_regressor(learner: Any) -> bool:
    has_methods = hasattr(learner, "fit") and hasattr(learner, "predict")
    return has_methods and not isinstance(learner, type) and not _is_classifier(learner)


def _is_classifier(learner: Any) -> bool:
    return hasattr(learner, "__sklearn_tags__") and is_classifier(learner)


def _remedy(learner: Any) -> str:
    if isinstance(learner, type):
        return f" That is a class: pass {learner.__name__}()."
    if _is_classifier(learner):
        return " That is a classifier, and residuals are numbers: pass a regressor, e.g. Ridge()."
    return ""
