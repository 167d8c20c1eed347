"""A predicted class with a confidence, as labels and probabilities that calibrators take."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal._validation import check_labels, check_proba, check_same_rows
from hetcal._validation.containers import as_float_array, as_vector
from hetcal._validation.spelling import key_of_class

_Coded = tuple[NDArray[np.int64], NDArray]  # codes, and the names they index

_BEING_RIGHT = np.array([False, True])


def from_confidence(
    y: Any, predicted: Any, confidence: Any, *, classes: Any = None
) -> tuple[NDArray | None, NDArray[np.float64], NDArray]:
    """Return labels, probabilities and classes from a predicted class and the confidence in it.

    With two classes the confidence is the probability of the predicted class, and the rest belongs
    to the other one. With three and more, nothing is known of the classes that were not predicted;
    what can be calibrated is the probability of *being right*: the labels become whether the
    prediction is right, and the classes are ``[False, True]``. The predicted class may then be one
    of the features. Spellings that differ in case, in spaces, or as 1, 1.0 and True do, are one
    class.

    Parameters
    ----------
    y : array-like of shape (n,) or None
        Observed labels; None for new items.
    predicted : array-like of shape (n,)
        The class that the model predicted for each item.
    confidence : array-like of shape (n,)
        The probability that the model gave to it.
    classes : array-like, optional
        The classes that were returned for the calibration items. Needed for new items, so that they
        are read in the same way. By default two classes are those of ``y`` and ``predicted``.

    Returns
    -------
    y : ndarray of shape (n,) or None
        Labels, among ``classes``.
    y_proba : ndarray of shape (n, 2)
        Probabilities, in the order of ``classes``.
    classes : ndarray of shape (2,)
        The two classes; ``[False, True]`` (wrong, right) where there were more.

    Examples
    --------
    >>> y, y_proba, classes = from_confidence(["no", "yes"], ["no", "no"], [0.75, 0.5])
    >>> y_proba, classes
    (array([[0.75, 0.25],
           [0.5 , 0.5 ]]), array(['no', 'yes'], dtype='<U3'))

    Of three classes only the predicted one has a probability. A calibrator takes what is returned,
    for the calibration items and then for new ones:

    >>> from hetcal import TemperatureScaling
    >>> y, y_proba, classes = from_confidence(
    ...     ["cat", "dog", "bird", "cat"], ["cat", "cat", "bird", "dog"], [0.9, 0.6, 0.8, 0.7])
    >>> y, classes
    (array([ True, False,  True, False]), array([False,  True]))
    >>> calibrator = TemperatureScaling(classes=classes).fit(None, y, y_proba=y_proba)
    >>> _, new, _ = from_confidence(None, ["dog"], [0.75], classes=classes)
    >>> new
    array([[0.25, 0.75]])
    >>> calibrator.predict_proba(y_proba=new)[:, 1] < 0.75
    array([ True])
    """
    check_same_rows(y=y, predicted=predicted, confidence=confidence)
    P = check_proba(_stated(confidence), name="confidence")
    answers = check_labels(predicted, name="predicted")
    if classes is None and y is None:
        raise ValueError(
            "from_confidence got neither y nor classes. Pass the labels of the calibration items, "
            "or, for new items, the classes that it returned for those."
        )
    labels = None if y is None else check_labels(y)
    order = _order(labels, answers, classes)
    if order is None:
        right = None if labels is None else _spelled(labels) == _spelled(answers)
        return right, P, _BEING_RIGHT.copy()
    code = _places(answers, order, "predicted")
    truth = None if labels is None else order[_places(labels, order, "y")]
    return truth, np.where(code[:, None] == 1, P, P[:, ::-1]), order


def _stated(confidence: Any) -> NDArray[np.float64]:
    """Return the confidences as numbers, or say of what kind they seem to be instead."""
    stated = as_float_array(as_vector(confidence, "confidence"), "confidence")
    outside = (stated < 0) | (stated > 1)
    if outside.any():
        row, remedy = int(outside.argmax()), "Pass probabilities."
        if np.nanmax(stated) <= 0:
            remedy = "If these are log-probabilities, pass np.exp of them."
        elif np.nanmin(stated) >= 0:
            remedy = "If these are percentages, divide by 100."
        raise ValueError(
            f"Row {row} of confidence is {stated[row]:.4g}; it must be the probability that the "
            f"predicted class is right, in [0, 1]. {remedy}"
        )
    return stated


def _order(labels: Any, answers: _Coded, classes: Any) -> NDArray | None:
    """Return the two classes; None where there are more, and where being right is what counts."""
    if classes is not None:
        order = check_labels(classes, classes, name="classes")[1]
        # Truth values as predictions are classes themselves: of three classes none is one.
        right_or_wrong = order.dtype.kind == "b" and answers[1].dtype.kind != "b"
        return None if right_or_wrong or order.shape[0] > 2 else order
    of_label, of_answer = (
        {key_of_class(n): n for n in names.tolist()[::-1]} for _, names in (labels, answers)
    )
    if not of_label.keys() & of_answer.keys():
        raise ValueError(
            f"predicted holds {answers[1].tolist()[0]!r} and others that are no labels of y, such "
            f"as {labels[1].tolist()[0]!r}. Pass predictions and labels in the same words."
        )
    found = of_answer | of_label
    return np.unique(np.array(list(found.values()))) if len(found) == 2 else None


def _places(coded: _Coded, order: NDArray, name: str) -> NDArray[np.int64]:
    """Return each row's class; spelling counts only where two classes differ by nothing else."""
    codes, names = coded
    place = {key_of_class(label): k for k, label in enumerate(order.tolist())}
    if len(place) < order.shape[0]:
        return check_labels(names, order, name=name)[0][codes]
    found = np.array([place.get(key_of_class(label), -1) for label in names.tolist()])
    if (found < 0).any():
        check_labels(names[found < 0], order, name=name)  # says which are unknown
    return found[codes]


def _spelled(coded: _Coded) -> NDArray:
    codes, names = coded
    return np.array([key_of_class(label) for label in names.tolist()])[codes]
