"""The calibrator that a monitor watches: which ones can be, and whether it is still the same."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hetcal._typing import Matrix, Rows, Vector
from hetcal._validation import check_labels
from hetcal._validation.containers import number_of_rows
from hetcal.calibration.wrapper import LocallyCalibratedClassifier
from hetcal.metrics.standard_errors import effective_items, kish_number


class OtherItemsError(ValueError):
    """These are not the items that the calibrator was fitted to."""


def calibrator_inside(calibrator: Any) -> Any:
    """Return the calibrator that has support, or raise and name those that have."""
    if isinstance(calibrator, LocallyCalibratedClassifier):
        raise TypeError(
            "SupportMonitor watches a calibrator; got a LocallyCalibratedClassifier. Pass its "
            "calibrator_, and y_proba=classifier.estimator_.predict_proba(X) to the methods."
        )
    inner = getattr(calibrator, "calibrator_", calibrator)
    if not (hasattr(inner, "support") and hasattr(inner, "out_of_sample_support")):
        raise TypeError(
            f"SupportMonitor needs a calibrator with calibration support; {type(inner).__name__} "
            "has none. Use SimilarityCalibrator or HybridCalibrator."
        )
    check_is_fitted(inner, "classes_")
    return inner


def items_of(calibrator: Any) -> Any:
    """Return what is another object as soon as there are other items; None where that never is."""
    return getattr(calibrator, "voters_", None)


def check_same_items(
    calibrator: Any, n_items: int, X: Any, output: dict[str, Any]
) -> Matrix | None:
    """Check that these are the calibration items, and return the classifier's probabilities."""
    known = stated_proba(calibrator)
    if X is not None and number_of_rows(X, "X") != n_items:
        raise OtherItemsError(
            f"SupportMonitor(reference='oob').fit needs the {n_items} calibration items in their "
            f"order; got {number_of_rows(X, 'X')} rows. For other items use reference='split'."
        )
    if not output:
        return known
    given = calibrator.new_scores(X, **output).proba
    if len(given) != n_items:
        raise OtherItemsError(
            f"SupportMonitor(reference='oob').fit needs the {n_items} calibration items in their "
            f"order; got the classifier's output on {len(given)}. For other items use "
            "reference='split'."
        )
    if known is not None and not np.allclose(given, known, atol=1e-6):
        raise OtherItemsError(
            "SupportMonitor(reference='oob').fit needs the calibration items in their order; "
            f"this {calibrator.input_kind_} is not what the calibrator was fitted with. For other "
            "items use reference='split'."
        )
    return given


def is_same(calibrator: Any, watched: Any) -> bool:
    """Tell whether two calibrators have the same items, labels and similarities."""
    return _alike(calibrator, watched) and np.array_equal(
        calibrator.out_of_sample_support(), watched.out_of_sample_support()
    )


def is_extended(calibrator: Any, watched: Any) -> bool:
    """Tell whether the second is the first with more items (``SupportMonitor.extend``)."""
    if not _alike(calibrator, watched):
        return False
    n = len(calibrator.calibration_labels())
    if len(watched.calibration_labels()) == n:
        return False
    pairs = [(of(calibrator), of(watched)) for of in (stated_proba, _leaves)]
    return all(
        mine is theirs if mine is None or theirs is None else np.array_equal(mine, theirs[:n])
        for mine, theirs in pairs
    )


def _alike(calibrator: Any, watched: Any) -> bool:
    """Tell whether the second has the labels of the first, and perhaps more."""
    if type(calibrator) is not type(watched):
        return False
    mine, theirs = calibrator.calibration_labels(), watched.calibration_labels()
    return np.array_equal(calibrator.classes_, watched.classes_) and np.array_equal(
        mine, theirs[: len(mine)]
    )


def stated_proba(calibrator: Any) -> Matrix | None:
    """Return the classifier's probabilities of the calibration items, where they are known."""
    return getattr(getattr(calibrator, "scores_", None), "proba", None)


def own_predictions(calibrator: Any) -> tuple[Matrix, Rows]:
    """Return out-of-sample predictions of the calibration items, and their labels as codes.

    A hybrid also predicts items of weight 0, which are no calibration items.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Q = calibrator.out_of_sample_proba_
    codes, _ = check_labels(calibrator.calibration_labels(), calibrator.classes_)
    return Q[getattr(calibrator, "calibration_rows_", slice(None))], codes


def item_weights(calibrator: Any) -> Vector | None:
    """Return how much each calibration item counts; None where all count alike."""
    return getattr(items_of(calibrator), "weight", None)


def independent_items(calibrator: Any, scores: Matrix, rows: Any) -> float:
    """Return how many independent items some calibration items are worth, by scores of each.

    A hybrid does not hold its groups: the items of each count as one.
    """
    weight, groups = item_weights(calibrator), getattr(calibrator, "groups_", None)
    own = None if weight is None else weight[rows]
    if groups is not None:
        return min(effective_items(score, own, groups[rows]) for score in scores)
    n = float(scores.shape[1]) if own is None else kish_number(own)
    known = getattr(calibrator, "n_independent_", None)
    return n if known is None else n * known / len(calibrator.calibration_labels())


def _leaves(calibrator: Any) -> Any:
    """Return the leaves of the calibration items, where there are any."""
    return getattr(getattr(calibrator, "similarity_", None), "leaves_", None)
