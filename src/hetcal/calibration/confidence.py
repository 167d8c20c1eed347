"""A predicted class with a confidence, as labels and probabilities that calibrators take."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal._validation import check_labels, check_proba, check_same_rows
from hetcal._validation.containers import as_vector

_BEING_RIGHT = np.array([False, True])


def from_confidence(
    y: Any, predicted: Any, confidence: Any, *, classes: Any = None
) -> tuple[NDArray | None, NDArray[np.float64], NDArray]:
    """Return labels, probabilities and classes from a predicted class and the confidence in it.

    With two classes the confidence is the probability of the predicted class, and the rest belongs
    to the other one. With three and more, nothing is known of the classes that were not predicted;
    what can be calibrated is the probability of *being right*: the labels become whether the
    prediction is right, and the classes are ``[False, True]``. The predicted class may then be one
    of the features.

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
    P = check_proba(as_vector(confidence, "confidence"), name="confidence")
    answers = _known(predicted, "predicted")
    if classes is None and y is None:
        raise ValueError(
            "from_confidence got neither y nor classes. Pass the labels of the calibration items, "
            "or, for new items, the classes that it returned for those."
        )
    labels = None if y is None else _known(y, "y")
    order = _order(labels, answers, classes)
    # Truth values as predictions are classes themselves: of three classes none is a truth value.
    if order is None or (order.dtype.kind == "b" and answers.dtype.kind != "b"):
        return None if labels is None else labels == answers, P, _BEING_RIGHT.copy()
    code = check_labels(answers, order, name="predicted")[0]
    if labels is not None:
        check_labels(labels, order)
    return labels, np.where(code[:, None] == 1, P, P[:, ::-1]), order


def _known(values: Any, name: str) -> NDArray:
    codes, names = check_labels(values, name=name)
    return names[codes]


def _order(labels: Any, answers: NDArray, classes: Any) -> NDArray | None:
    """Return the two classes; None where there are more, and where being right is what counts."""
    if classes is not None:
        order = check_labels(classes, classes, name="classes")[1]
        return order if order.shape[0] == 2 else None
    if not np.isin(answers, labels).any():
        raise ValueError(
            f"predicted holds {answers[:1].tolist()[0]!r} and others that are no labels of y, such "
            f"as {labels[:1].tolist()[0]!r}. Pass predictions and labels in the same words."
        )
    found = np.union1d(labels, answers)
    return found if found.shape[0] == 2 else None
