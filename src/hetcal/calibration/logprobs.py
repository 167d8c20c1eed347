"""Log-probabilities that a language model gave to the options of a question, as probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from hetcal._typing import Matrix, Vector
from hetcal._validation import (
    check_choice,
    check_columns_match_classes,
    check_labels,
    check_proba_names,
    check_same_rows,
)
from hetcal._validation.containers import as_float_array, column_names
from hetcal._validation.spelling import key_of_class
from hetcal._validation.text import as_text

# Rounding lets the logarithm of 1 come out above 0; anything larger is no log-probability.
_ROUNDING = 1e-3


def from_logprobs(
    y: Any, logprobs: Any, *, classes: Any = None, tokens: str = "sum"
) -> tuple[NDArray | None, NDArray[np.float64], NDArray]:
    """Return labels, probabilities and classes from log-probabilities of a question's options.

    The probability of an option is its share: the exponential of its log-probability, divided by
    the sum over all options. What a model gave to anything that is no option is left out.

    An option that is not listed (top-k lists end somewhere) had no more than the least that is
    listed, whether that is an option or not, and all unlisted ones together no more than what the
    listed left over: it gets the smaller of the two, the left-over divided evenly among the
    unlisted options.

    Parameters
    ----------
    y : array-like of shape (n,) or None
        The right option of each question; None for new questions.
    logprobs : array-like of shape (n, K), table, or sequence of dicts
        Natural logarithms. One column per option, in the order of ``classes`` (NaN where an option
        is not listed, ``-inf`` where it does not exist); a table whose columns are named after the
        options; or one dict per question, ``{"A": -0.1, " B": -2.5, "the": -4.0}``, as APIs list
        the top tokens: spellings that differ in case, in spaces, or as 1, 1.0 and True do, are one
        option (unless two options differ by nothing else), and what reads the same is added up. A
        value may be the list of the log-probabilities of the tokens that an option consists of.
    classes : array-like, optional
        The options. Needed for new questions. By default the columns of a table, else the labels
        in ``y``.
    tokens : {"sum", "mean"}, default="sum"
        Of an option with several tokens the sum is the log-probability of the whole. The mean
        does not put long options at a disadvantage (length normalisation), and needs every option.

    Returns
    -------
    y : ndarray of shape (n,) or None
        Labels, among ``classes``.
    y_proba : ndarray of shape (n, K)
        Probabilities, in the order of ``classes``.
    classes : ndarray of shape (K,)
        The options.

    See Also
    --------
    from_confidence : The answer and its confidence. Where the letters of options mean nothing, the
        probability of being right is what to calibrate:
        ``from_confidence(y, classes[y_proba.argmax(axis=1)], y_proba.max(axis=1))``.

    Examples
    --------
    >>> y, y_proba, classes = from_logprobs(
    ...     ["A", "B"], [{"A": -0.1, " A": -3.0, "B": -3.0}, {"B": -0.7, "The": -0.8}])
    >>> y_proba.round(3), classes
    (array([[0.95 , 0.05 ],
           [0.098, 0.902]]), array(['A', 'B'], dtype='<U1'))

    Options of several tokens, each with its own log-probability:

    >>> from_logprobs(None, [[[-0.2], [-0.1, -0.3, -0.2]]], classes=["no", "not at all"],
    ...               tokens="mean")[1]
    array([[0.5, 0.5]])
    """
    check_choice(tokens, "tokens", ("sum", "mean"), caller="from_logprobs")
    check_same_rows(y=y, logprobs=logprobs)
    named = None if classes is not None else column_names(logprobs)
    if classes is None:
        classes = named
    if classes is None and y is None:
        raise ValueError(
            "from_logprobs got neither y nor classes. Pass the labels of the calibration items, "
            "or, for new items, the classes that it returned for those."
        )
    given = classes is not None
    order = check_labels(classes if given else y, classes)[1]
    if y is not None:
        _refuse_unknown_options(y, order, named)
    labels = None if y is None else order[check_labels(y, order)[0]]
    listed = _listed(logprobs, order, tokens, given)
    _refuse(listed.options, order, tokens)
    return labels, _shares(_with_unlisted(listed)), order


def _refuse_unknown_options(y: Any, order: NDArray, named: list[str] | None) -> None:
    """Raise where the options were not given and cannot be what was taken for them."""
    seen = check_labels(y)[1]
    if len(order) < 2:
        raise ValueError(
            f"from_logprobs: y holds the single option {seen.tolist()[0]!r}, and the others are "
            "not known from it. Pass all options, classes=[...]."
        )
    unknown = [label for label in seen.tolist() if label not in set(order.tolist())]
    if named is not None and unknown:
        raise ValueError(
            f"from_logprobs: the columns of logprobs are named {named[:10]}, but y holds "
            f"{unknown[:10]}. Pass the options in the order of the columns, classes=[...]."
        )


class _Listed(NamedTuple):
    """Log-probabilities with one column per option, and of each row what bounds unlisted ones.

    ``elsewhere`` is the probability of what is no option, and ``least`` the smallest above 0 of all
    that is listed, before spellings of one option are added up.
    """

    options: Matrix
    elsewhere: Vector
    least: Vector


def _listed(logprobs: Any, order: NDArray, tokens: str, given: bool) -> _Listed:
    if isinstance(logprobs, list | tuple):
        if all(isinstance(row, Mapping) for row in logprobs):
            return _from_dicts(logprobs, order, tokens)
        logprobs = [[_whole(value, tokens) for value in row] for row in logprobs]
    check_proba_names(logprobs, order, name="logprobs")
    L = np.atleast_2d(as_float_array(logprobs, "logprobs").T).T
    check_columns_match_classes(L.shape[1], order, name="logprobs", given=given)
    least = np.min(np.exp(L), axis=1, initial=np.inf, where=np.isfinite(L))
    return _Listed(L, np.zeros(len(L)), least)


def _from_dicts(rows: Sequence[Mapping], order: NDArray, tokens: str) -> _Listed:
    option_of = _Options(order)
    L = np.full((len(rows), len(order)), np.nan)
    elsewhere, least = np.zeros(len(L)), np.full(len(L), np.inf)
    for i, row in enumerate(rows):
        for token, given in row.items():
            k, value = option_of[token], _whole(given, tokens)
            if np.isnan(value):
                continue
            if np.isfinite(value):
                least[i] = min(least[i], np.exp(value))
            if k is None:
                elsewhere[i] += np.exp(value)
            else:
                L[i, k] = value if np.isnan(L[i, k]) else np.logaddexp(L[i, k], value)
    return _Listed(L, elsewhere, least)


class _Options(dict[Any, int | None]):
    """The place of the option that a token spells; None where it spells none."""

    def __init__(self, order: NDArray) -> None:
        labels = order.tolist()
        keys = [key_of_class(label) for label in labels]
        self._exact = {as_text(label).strip(): k for k, label in enumerate(labels)}
        self._alike = {key: k for k, key in enumerate(keys) if keys.count(key) == 1}

    def __missing__(self, token: Any) -> int | None:
        place = self._exact.get(as_text(token).strip(), self._alike.get(key_of_class(token)))
        self[token] = place
        return place


def _whole(value: Any, tokens: str) -> float:
    """Return the log-probability of an option from those of its tokens, or as it is."""
    try:
        values = np.asarray(np.nan if value is None else value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"logprobs must hold numbers, or lists of numbers for options of several tokens; got "
            f"{value!r}. Pass natural logarithms of probabilities; of a list of tokens, as APIs "
            "return it, {t['token']: t['logprob'] for t in tokens}."
        ) from error
    if values.size == 0:
        return np.nan
    return float(values.sum() if tokens == "sum" else values.mean())


def _refuse(L: Matrix, order: NDArray, tokens: str) -> None:
    """Raise where these are no log-probabilities, or say nothing about a question."""
    bad = L > _ROUNDING
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise ValueError(
            f"Row {row} of logprobs holds {L[row, column]:.4g}; logarithms of probabilities are "
            "not above 0. Pass probabilities as y_proba= and logits as logits= to the calibrator "
            "itself."
        )
    unlisted = np.isnan(L)
    if tokens == "mean" and unlisted.any():
        row, column = np.argwhere(unlisted)[0]
        raise ValueError(
            f"Row {row} of logprobs lacks option {order.tolist()[column]!r}; means over tokens "
            "cannot tell what an unlisted option got. Score every option, or pass tokens='sum'."
        )
    empty = ~np.isfinite(L).any(axis=1)
    if empty.any():
        raise ValueError(
            f"Row {int(np.argmax(empty))} of logprobs lists none of the options "
            f"{order.tolist()[:10]} ({int(empty.sum())} such rows). Ask the model for more tokens "
            "(top_logprobs), or leave these rows out of every argument."
        )


def _with_unlisted(listed: _Listed) -> Matrix:
    """Return log-probabilities of which the unlisted ones have their bound."""
    L = listed.options
    unlisted = np.isnan(L)
    if not unlisted.any():
        return L
    P = np.exp(np.where(unlisted, -np.inf, L))
    left = np.maximum(1 - P.sum(axis=1) - listed.elsewhere, 0)
    left /= np.maximum(unlisted.sum(axis=1), 1)
    with np.errstate(divide="ignore"):
        bound = np.log(np.minimum(left, listed.least))
    return np.where(unlisted, bound[:, None], L)


def _shares(L: Matrix) -> Matrix:
    return np.exp(L - logsumexp(L, axis=1, keepdims=True))
