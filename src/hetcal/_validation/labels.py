"""Labels of any kind to integer codes, with the class order fixed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._validation.containers import as_array, as_vector
from hetcal._validation.text import short_list


def check_labels(
    y: Any, classes: Any = None, *, name: str = "y"
) -> tuple[NDArray[np.int64], NDArray]:
    """Return integer codes of ``y`` and the classes they index.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels: strings, integers with gaps, booleans, in any order.
    classes : array-like, optional
        The classes in the column order of ``y_proba``; the sorted labels of ``y`` when None.

    Examples
    --------
    >>> check_labels(["cat", "bird", "cat"])
    (array([1, 0, 1]), array(['bird', 'cat'], dtype=...))
    >>> check_labels(["cat", "cat"], classes=["dog", "cat"])[0]
    array([1, 1])
    """
    labels = _as_labels(y, name)
    if classes is None:
        found, codes, _ = _sorted(labels, name)
        return codes.astype(np.int64), found
    order = _as_class_order(classes)
    codes = pd.Index(order).get_indexer(pd.Index(labels))
    if (codes < 0).any():
        unknown = sorted({str(label) for label in labels[codes < 0]})
        raise ValueError(
            f"{name} holds labels that are not in classes: {short_list(unknown)}. "
            f"classes={short_list(order.tolist())}. Add them to classes, or fix the labels."
        )
    return codes.astype(np.int64), order


def check_two_classes(
    codes: NDArray[np.int64], classes: NDArray, weight: NDArray[np.float64] | None = None
) -> None:
    """Raise when fewer than two distinct classes were observed (with a positive weight)."""
    seen = np.unique(codes if weight is None else codes[weight > 0])
    if seen.shape[0] < 2:
        only = classes.tolist()[seen[0]]
        raise ValueError(
            f"y holds one class only ({only!r}, {codes.shape[0]} rows); calibration needs at least "
            "two classes among the calibration items. Collect items of another class."
        )


def _as_labels(y: Any, name: str) -> NDArray:
    labels = as_array(y, name)
    if labels.ndim == 2 and labels.shape[1] > 1:
        raise ValueError(
            f"{name} should be a 1d array with one label per row; got {labels.shape[1]} columns. "
            f"If each row has a single 1 (one-hot), pass {name}.argmax(axis=1); if items may have "
            "several labels, fit one calibrator per column."
        )
    labels = as_vector(labels, name)
    if labels.shape[0] == 0:
        raise ValueError(f"{name} is empty (0 rows). Pass at least one label.")
    missing = pd.isna(labels)
    if missing.any():
        rows = np.flatnonzero(missing)
        raise ValueError(
            f"{name} has {rows.shape[0]} missing label(s) (Input contains NaN), the first in row "
            f"{rows[0]}. Drop the rows whose outcome is not known."
        )
    if labels.dtype.kind == "f":
        if not np.isfinite(labels).all():
            raise ValueError(f"{name} holds infinity (Input contains NaN or infinity). Fix it.")
        fractions = labels[labels != np.floor(labels)]
        if fractions.size:
            from sklearn.utils.multiclass import type_of_target  # commands start without it

            raise ValueError(
                f"Unknown label type: {type_of_target(labels)}. {name} holds numbers such as "
                f"{fractions.tolist()[0]!r}; class labels are expected. If these "
                "are probabilities, pass them as y_proba."
            )
    if labels.dtype.kind == "O":
        kinds = {type(value) for value in labels}
        if len(kinds) > 1 and str in kinds:
            names = sorted(kind.__name__ for kind in kinds)
            raise TypeError(
                f"{name} mixes labels of different types ({', '.join(names)}). "
                "Convert all of them to one type, e.g. with .astype(str)."
            )
        _refuse_collections(labels, name)
        labels = np.array(labels.tolist())
    return labels


def _refuse_collections(labels: NDArray, name: str) -> None:
    """Raise for labels that hold several values, which NumPy would make columns of."""
    several = (list, tuple, set, frozenset, dict, np.ndarray)
    example = next((label for label in labels.tolist() if isinstance(label, several)), None)
    if example is not None:
        raise TypeError(
            f"{name} holds labels of several values such as {str(example)[:60]!r}. Give each class "
            "one name, e.g. [str(label) for label in labels], or fit one calibrator per part."
        )


def _sorted(labels: NDArray, name: str) -> tuple[NDArray, NDArray, NDArray]:
    """Return the different labels in order, the number of each label, and how often each is there.

    Labels that cannot be sorted are an error.
    """
    try:
        return np.unique(labels, return_inverse=True, return_counts=True)
    except TypeError as error:
        raise TypeError(
            f"{name} holds labels that cannot be sorted ({error}). Turn them into text or numbers, "
            "e.g. [str(label) for label in labels]."
        ) from error


def _as_class_order(classes: Any) -> NDArray:
    order = as_vector(classes, "classes")
    if order.dtype.kind == "O":
        _refuse_collections(order, "classes")
        order = np.array(order.tolist())
    if pd.isna(order).any():
        raise ValueError(
            f"classes holds a missing value ({short_list(order.tolist())}). Name every column of "
            "y_proba in order."
        )
    order = order.copy()  # what the caller does to classes later is no matter of ours
    if order.shape[0] < 2:
        raise ValueError(
            f"classes must name at least two classes; got {short_list(order.tolist())}. "
            "Name every column of y_proba in order."
        )
    names, _, counts = _sorted(order, "classes")
    if (counts > 1).any():
        raise ValueError(
            f"classes names {names[counts > 1].tolist()[0]!r} more than once. Name each class once."
        )
    return order
