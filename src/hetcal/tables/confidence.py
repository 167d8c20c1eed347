"""A predicted class with a confidence, where a table has no probability of each class.

With two classes the confidence is the probability of the predicted class, which leaves the rest for
the other one. With more, nothing is known of the classes that were not predicted: what can be
calibrated is the probability that the prediction is right, and the classes are then ``wrong`` and
``right``.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from hetcal._exceptions import InputError
from hetcal._validation.spelling import spelled_alike
from hetcal._validation.text import as_text
from hetcal.tables.class_columns import ClassMatch
from hetcal.tables.kinds import as_labels
from hetcal.tables.selection import listed

WRONG, RIGHT = "wrong", "right"
# As often as this a probability of one class lies on the side of the class that is predicted.
_ALMOST_ALWAYS, _FEWEST = 0.9, 10

Texts = Sequence[str | None]


def right_or_wrong(labels: Texts, predicted: Texts) -> list[str | None]:
    """Return whether each prediction is right; None where it or the label is missing.

    Examples
    --------
    >>> right_or_wrong(["cat", "dog", None], ["Cat", "cat", "cat"])
    ['right', 'wrong', None]
    """
    pairs = zip(map(spelled_alike, labels), map(spelled_alike, predicted), strict=True)
    return [None if a is None or b is None else RIGHT if a == b else WRONG for a, b in pairs]


def predicted_but_no_label(labels: Texts, predicted: Texts) -> list[str]:
    """Return a note where some predictions are classes that no row has: all of them are wrong.

    Examples
    --------
    >>> predicted_but_no_label(["1", "2"], ["0", "2"])
    ["'0' is predicted in 1 of 2 rows, but no row has this label: such predictions count as wrong."]
    """
    known = set(_spellings(labels))
    strange = [text for text in predicted if spelled_alike(text) not in {None, *known}]
    if not strange:
        return []
    named = listed(sorted(set(map(str, strange))), 5)
    return [
        f"{named} {'is' if len(set(strange)) == 1 else 'are'} predicted in {len(strange):,} of "
        f"{len(predicted):,} rows, but no row has this label: such predictions count as wrong."
    ]


def two_classes(labels: Iterable[str | None], predicted: Iterable[str | None]) -> list[str] | None:
    """Return the two classes as the labels spell them; None where there are more.

    Raises where the predictions name no label at all.
    """
    of_labels = _spellings(labels)
    of_predicted = _spellings(predicted)
    if of_labels and of_predicted and not set(of_labels) & set(of_predicted):
        raise InputError(
            f"The predicted classes {listed(sorted(of_predicted.values()), 5)} are none of the "
            f"labels {listed(sorted(of_labels.values()), 5)}. Name the column of predicted classes "
            "with --predicted (predicted=), and write them as the labels are written."
        )
    found = of_predicted | of_labels
    return sorted(found.values()) if len(found) == 2 else None


def match_of_labels(labels: Texts, classes: Sequence[str] | None) -> ClassMatch:
    """Return which class each spelling of a label means; without classes, right and wrong."""
    if classes is None:
        return ClassMatch([WRONG, RIGHT], {WRONG: WRONG, RIGHT: RIGHT})
    of = {spelled_alike(name): name for name in classes}
    known = {text: of.get(spelled_alike(text)) for text in set(labels) if text is not None}
    return ClassMatch(list(classes), {text: name for text, name in known.items() if name})


def of_second_class(
    predicted: Texts, confidence: NDArray[np.float64], classes: Sequence[Any], column: str
) -> NDArray[np.float64]:
    """Return the probability of the second class, shape (n, 1); NaN without a prediction.

    Examples
    --------
    >>> of_second_class(["no", "yes"], np.array([[0.9], [0.75]]), ["no", "yes"], "answer")
    array([[0.1 ],
           [0.75]])
    """
    code = predicted_codes(predicted, classes, column)[:, None]
    return np.where(code < 0, np.nan, np.where(code == 1, confidence, 1 - confidence))


def predicted_codes(predicted: Texts, classes: Sequence[Any], column: str) -> NDArray[np.int64]:
    """Return the places of the predicted classes, -1 without a prediction.

    Examples
    --------
    >>> predicted_codes(["no", None, "YES"], ["no", "yes"], "answer")
    array([ 0, -1,  1])
    """
    place = {spelled_alike(as_text(label)): k for k, label in enumerate(classes)}
    place[None] = -1
    unknown = sorted({str(t) for t in predicted if spelled_alike(t) not in place})
    if unknown:
        raise InputError(
            f"Column {column!r} predicts {listed(unknown, 3)}; the classes are "
            f"{listed([as_text(label) for label in classes])}. Correct the predictions."
        )
    return np.array([place[spelled_alike(t)] for t in predicted], dtype=np.int64)


def refuse_proba_of_one_class(
    predicted: Texts, confidence: NDArray[np.float64], classes: Sequence[str], column: str
) -> None:
    """Raise where a confidence lies on both sides of one half, by the class that is predicted."""
    alike = [spelled_alike(text) for text in predicted]
    values = confidence[:, 0]
    for low, high in (classes, classes[::-1]):
        of_low, of_high = (
            values[[a == spelled_alike(name) for a in alike] & ~np.isnan(values)]
            for name in (low, high)
        )
        if min(of_low.size, of_high.size) < _FEWEST:
            return
        if min((of_low < 0.5).mean(), (of_high > 0.5).mean()) >= _ALMOST_ALWAYS:
            raise InputError(
                f"{column!r} is below 0.5 where {low!r} is predicted and above where {high!r} is: "
                f"it looks like the probability of {high!r}, not of the predicted class. Pass "
                f"--proba {shlex.quote(column)} --positive {shlex.quote(high)} in place of "
                "--predicted and --confidence; or --accept-order (accept_order=True) if it is "
                "right as it stands."
            )


def refuse_confidence(
    frame: nw.DataFrame,
    columns: Sequence[str],
    given: NDArray[np.float64],
    match: ClassMatch,
    label: str,
) -> None:
    """Raise where a single column is never below one half and another one predicts the classes."""
    known = given[~np.isnan(given)]
    if len(columns) > 1 or known.size < _FEWEST or not 0.5 <= known.min() <= known.max() <= 1:
        return
    labels = set(map(spelled_alike, match.classes))
    for name in frame.columns:
        if name in (label, *columns) or frame[name].n_unique() > len(labels) + 1:
            continue
        if {spelled_alike(text) for text in set(as_labels(frame[name]))} - {None} == labels:
            column = columns[0]
            raise InputError(
                f"{column!r} is never below 0.5, and {name!r} holds the classes too: is it the "
                f"confidence in a predicted class? Then pass --predicted {shlex.quote(name)} "
                f"--confidence {shlex.quote(column)} in place of --proba; if it is the probability "
                f"of {match.classes[1]!r}, pass --accept-order (accept_order=True)."
            )


def _spellings(texts: Iterable[str | None]) -> dict[str, str]:
    """Return the first spelling of each class, by what is alike."""
    found: dict[str, str] = {}
    for text in sorted({text for text in texts if text is not None}):
        alike = spelled_alike(text)
        if alike is not None:
            found.setdefault(alike, text)
    return found
