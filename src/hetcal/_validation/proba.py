"""Probability vectors and logits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal._validation.containers import as_float_array, column_names
from hetcal._validation.text import short_list

# Logs round their probabilities: rows this close to one are scaled to one instead of refused.
SUM_TOLERANCE = 1e-2 + 1e-12
# Rows off by no more than this are floating-point noise and are left exactly as they are.
ROUNDING_NOISE = 1e-6
# Maps square, multiply and divide logits: beyond this size the results would be no numbers.
LARGEST_LOGIT = 1e100
# Sums of probabilities that were rounded to one decimal are not further off than this.
_ROUNDED_ROW = 0.2
#: What callers that take logits too say of values that may be some.
PASS_LOGITS = "pass them as logits= instead of y_proba="
# Of fewer rows chance could make logits look like probabilities.
_FEWEST_TO_TELL = 10


def check_proba(
    y_proba: Any,
    *,
    name: str = "y_proba",
    normalized: bool = True,
    if_logits: str | None = None,
) -> NDArray[np.float64]:
    """Return probabilities as float64 of shape (n, K), K >= 2.

    One column is read as the probability of the second class. Rows that sum to one only up to the
    rounding of a log (within 0.01) are scaled; anything further off is an error.

    Parameters
    ----------
    y_proba : array-like of shape (n, K), (n, 1) or (n,)
        Probabilities from any container.
    normalized : bool, default=True
        With False the sum of a row is not checked (the paper's histogram is not normalised).
    if_logits : str, optional
        What to do with logits, where the caller takes them: :data:`PASS_LOGITS`. None: how to make
        probabilities of them.

    Examples
    --------
    >>> check_proba([0.25, 0.5])
    array([[0.75, 0.25],
           [0.5 , 0.5 ]])
    >>> check_proba([[0.9, 0.47]])
    Traceback (most recent call last):
    ...
    ValueError: Row 0 of y_proba sums to 1.37; rows must be probability vectors. ...
    """
    P = _as_columns(as_float_array(y_proba, name), name)
    _refuse_missing(P, name)
    if (P < 0).any():
        row, column = np.argwhere(P < 0)[0]
        raise ValueError(
            f"Row {row} of {name} holds {P[row, column]:.4g}; probabilities cannot be negative. "
            f"If these are logits, {if_logits or _made_probabilities(P.shape[1])}."
        )
    if P.shape[1] == 1:
        if (P > 1).any():
            row = int(np.argmax(P[:, 0] > 1))
            raise ValueError(
                f"Row {row} of {name} is {P[row, 0]:.4g}; a single column must hold the "
                "probability of the second class, in [0, 1]."
                f"{_remedy(if_logits or _made_probabilities(1), percent=1 < P[row, 0] <= 100)}"
            )
        return np.hstack([1 - P, P])
    if not normalized:
        return P
    total = P.sum(axis=1)
    off = np.abs(total - 1)
    if (off > SUM_TOLERANCE).any():
        row = int(np.argmax(off > SUM_TOLERANCE))
        if (P <= 1).all():
            remedy = _remedy_of_sums(rounded=bool((off <= _ROUNDED_ROW + 1e-12).all()))
        else:
            otherwise = if_logits or _made_probabilities(P.shape[1])
            remedy = _remedy(otherwise, percent=99 <= total[row] <= 101)
        raise ValueError(
            f"Row {row} of {name} sums to {total[row]:.4g}; rows must be probability vectors."
            f"{remedy}"
        )
    rounded = off > ROUNDING_NOISE
    if rounded.any():
        # Only these rows: scaling the others would blur the ties and the ranking of saturated ones.
        P = np.where(rounded[:, None], P / total[:, None], P)
    return P


def check_predicted_proba(
    predicted: Any, shape: tuple[int, int], *, by: str
) -> NDArray[np.float64]:
    """Return what a calibrator or classifier that is not hetcal's own predicted, as float64.

    Unlike :func:`check_proba` it takes one column per class only, and its errors speak to who wrote
    the class. What is off by rounding is set right.

    Parameters
    ----------
    predicted : array-like
        What its ``predict_proba`` returned.
    shape : (int, int)
        Items and classes that it was asked for.
    by : str
        The name of the class.

    Examples
    --------
    >>> check_predicted_proba([[0.9, 0.47]], (1, 2), by="Mine")
    Traceback (most recent call last):
    ...
    ValueError: Mine.predict_proba gave [0.9, 0.47] (sum 1.37) in row 0, and 1 of 1 rows are no ...
    """
    name = f"{by}.predict_proba"
    Q = as_float_array(predicted, f"The output of {name}")
    if Q.shape != shape:
        raise ValueError(
            f"{name} gave an array of shape {Q.shape} for {shape[0]} items and {shape[1]} classes; "
            f"expected is {shape}. Return one row per item and one column per class, also where "
            "there are two."
        )
    total = Q.sum(axis=1)
    within = ((Q >= -ROUNDING_NOISE) & (Q <= 1 + SUM_TOLERANCE)).all(axis=1)  # NaN is not
    good = within & (np.abs(total - 1) <= SUM_TOLERANCE)
    if not good.all():
        row = int(np.argmin(good))
        shown = ", ".join(f"{value:.4g}" for value in Q[row, :10])
        raise ValueError(
            f"{name} gave [{shown}{', ...' if shape[1] > 10 else ''}] (sum {total[row]:.4g}) in "
            f"row {row}, and {int((~good).sum())} of {shape[0]} rows are no probabilities: each "
            "must be finite, in [0, 1] and sum to 1. Correct its predict_proba, for example by "
            "clipping at 0 and dividing each row by its sum."
        )
    return check_proba(np.maximum(Q, 0.0), name=name)


def check_logits(logits: Any, *, name: str = "logits") -> NDArray[np.float64]:
    """Return logits as float64 of shape (n, K); one column is the log-odds of the second class."""
    Z = _as_columns(as_float_array(logits, name), name)
    _refuse_missing(Z, name)
    too_large = np.abs(Z) > LARGEST_LOGIT
    if too_large.any():
        row, column = np.argwhere(too_large)[0]
        value = "infinity" if np.isinf(Z[row, column]) else f"{Z[row, column]:.4g}"
        raise ValueError(
            f"Row {row} of {name} holds {value}. Clip the logits (at most {LARGEST_LOGIT:g} can be "
            "computed with), or pass y_proba=."
        )
    if are_probabilities(Z):
        raise ValueError(
            f"{name} holds probabilities: every row lies in [0, 1] and sums to 1. Pass them as "
            "y_proba= instead of logits=."
        )
    if Z.shape[1] == 1:
        return np.hstack([np.zeros_like(Z), Z])
    return Z


def are_probabilities(Z: NDArray[np.float64]) -> bool:
    """Return whether rows that are said to be logits can hardly be anything but probabilities.

    Examples
    --------
    >>> are_probabilities(np.full((20, 2), 0.5)), are_probabilities(np.full((20, 2), 0.4))
    (True, False)
    """
    if Z.shape[0] < _FEWEST_TO_TELL or Z.shape[1] < 2:
        return False
    return bool(((Z >= 0) & (Z <= 1)).all() and (np.abs(Z.sum(axis=1) - 1) <= SUM_TOLERANCE).all())


def check_one_kind(y_proba: Any, logits: Any, *, caller: str, fitted: str | None = None) -> str:
    """Return ``"y_proba"`` or ``"logits"``: exactly one was given, the same as at fit."""
    if y_proba is not None and logits is not None:
        raise ValueError(f"{caller} got both y_proba and logits. Pass exactly one of them.")
    given = "y_proba" if y_proba is not None else "logits" if logits is not None else None
    if fitted is None:
        if given is None:
            raise ValueError(
                f"{caller} needs the classifier's output: pass y_proba= (probabilities) "
                "or logits= (before the softmax)."
            )
        return given
    if given != fitted:
        came = "neither" if given is None else given
        raise ValueError(
            f"{caller} was fitted with {fitted}; predict_proba needs {fitted} for the new samples "
            f"too, but got {came}. Pass {fitted}=..."
        )
    return fitted


def check_columns_match_classes(
    n_columns: int, classes: NDArray, *, name: str = "y_proba", given: bool = False
) -> None:
    """Raise when ``y_proba`` does not have one column per class."""
    K = classes.shape[0]
    if n_columns == K:
        return
    listed = short_list(classes.tolist())
    if given:
        raise ValueError(
            f"{name} has {n_columns} columns but {K} classes were named (classes={listed}). "
            f"Pass one column of {name} per class, in this order."
        )
    raise ValueError(
        f"{name} has {n_columns} columns but {K} classes were found in y ({listed}). "
        f"Pass classes=[...] in the column order of {name}."
    )


def check_proba_names(
    y_proba: Any, classes: NDArray, *, name: str = "y_proba", fitted: list[str] | None = None
) -> list[str] | None:
    """Return the column names of a table of probabilities, which must not contradict the classes.

    Names that are those of the classes, also behind a common beginning (``"p_yes"``), must come in
    the order of the classes. Names seen at fit must come again in the same order.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"yes": [0.7], "no": [0.3]})
    >>> check_proba_names(table, np.array(["no", "yes"]))
    Traceback (most recent call last):
    ...
    ValueError: The columns of y_proba are named ['yes', 'no'], but are read as the classes ...
    """
    names = column_names(y_proba)
    if names is None:
        return None
    if fitted is not None and names != fitted:
        raise ValueError(
            f"The columns of {name} were {short_list(fitted)} at fit and are "
            f"{short_list(names)} now. Pass the same columns in the same order."
        )
    labels = [str(label) for label in classes.tolist()]
    meant = _labels_meant(names, labels)
    if meant is not None and meant != labels[-len(meant) :]:
        order = "of the second class" if len(names) == 1 else "in this order"
        raise ValueError(
            f"The columns of {name} are named {short_list(names)}, but are read as the "
            f"classes {short_list(labels[-len(meant) :])}. Pass the probabilities {order}, "
            f"or classes=[...] in the column order of {name}."
        )
    return names


def _labels_meant(names: list[str], labels: list[str]) -> list[str] | None:
    """Return the class that each column is named after, or None where the names say nothing."""
    if len(names) == 1:
        meant = [label for label in labels if names[0] in (label, f"p_{label}", f"proba_{label}")]
        return meant if len(meant) == 1 else None
    for cut in range(min(map(len, names)) + 1):
        rest = [column[cut:] for column in names]
        if sorted(rest) == sorted(labels) and len({column[:cut] for column in names}) == 1:
            return rest
    return None


def _as_columns(array: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(
            f"{name} must have one row per item and one column per class; got shape {array.shape}. "
            "Pass a table with the probability of each class in a column."
        )
    if array.shape[0] == 0:
        raise ValueError(
            f"{name} is empty: found 0 sample(s) while a minimum of 1 is required. "
            "Pass at least one row."
        )
    return array


def _refuse_missing(array: NDArray[np.float64], name: str) -> None:
    missing = np.isnan(array).any(axis=1)
    if missing.any():
        row = int(np.argmax(missing))
        raise ValueError(
            f"Row {row} of {name} holds NaN ({int(missing.sum())} such rows). "
            "Drop the rows without a prediction."
        )


def _remedy(if_logits: str, *, percent: bool) -> str:
    """Return what to do with values above 1."""
    if percent:
        return " If these are percentages, divide by 100."
    return f" If these are logits, {if_logits}."


def _remedy_of_sums(*, rounded: bool) -> str:
    """Return what to do where every value is in [0, 1], and rows do not sum to one."""
    if rounded:
        return " Rounded probabilities have to be divided by the sum of their row first."
    return (
        " Pass a column for every class; where each was predicted by itself, divide every row by "
        "its sum first."
    )


def _made_probabilities(n_columns: int) -> str:
    """Return how logits become probabilities."""
    how = "scipy.special.expit" if n_columns == 1 else "scipy.special.softmax(..., axis=1)"
    return f"turn them into probabilities first ({how})"
