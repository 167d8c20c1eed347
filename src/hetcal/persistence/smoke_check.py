"""One prediction with a loaded calibrator: its parts must not only be right, but fit together."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._exceptions import FileFormatError
from hetcal._validation import FeatureEncoder
from hetcal._validation.vectors import vector_lengths
from hetcal.calibration.base import BaseCalibrator
from hetcal.calibration.wrapper import LocallyCalibratedClassifier
from hetcal.monitor import SupportMonitor


def encoder_of(calibrator: Any) -> FeatureEncoder | None:
    """Return the encoder that reads the features, None for global maps."""
    if hasattr(calibrator, "calibrator_"):
        return encoder_of(calibrator.calibrator_)
    if hasattr(calibrator, "encoder_"):
        return calibrator.encoder_
    return getattr(getattr(calibrator, "space_", None), "encoder", None)


def check_prediction(calibrator: Any) -> None:
    """Predict one made-up item; anything but a row of probabilities refuses the file."""
    if isinstance(calibrator, SupportMonitor):
        check_prediction(calibrator.calibrator_)
        _try_p_value(calibrator)
        return
    n_classes = len(calibrator.classes_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about an item that nobody asked for
        if isinstance(calibrator, LocallyCalibratedClassifier):
            Q = calibrator.predict_proba(_whole_row(calibrator))
        elif isinstance(calibrator, BaseCalibrator):
            Q = calibrator.predict_proba(_made_up_row(calibrator), **made_up_output(calibrator))
        else:
            raise FileFormatError(f"The file holds a {type(calibrator).__name__}, no calibrator.")
    if not isinstance(Q, np.ndarray) or Q.shape != (1, n_classes) or not np.isfinite(Q).all():
        raise FileFormatError("The file's calibrator does not return probabilities.")


def _try_p_value(monitor: SupportMonitor) -> None:
    inner = monitor.calibrator_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        output: dict[str, Any] = made_up_output(inner)
        p = monitor.p_values(_made_up_row(inner), **output)
    if p.shape != (1,) or not 0 <= p[0] <= 1:
        raise FileFormatError("The file's monitor does not return p-values.")


def _made_up_row(calibrator: Any) -> Any:
    """Return one row that the calibrator takes, with the columns that it does not compare by."""
    while hasattr(calibrator, "calibrator_"):
        calibrator = calibrator.calibrator_
    encoder = encoder_of(calibrator)
    chosen = getattr(getattr(calibrator, "space_", None), "features_", None)
    if encoder is None or chosen is None:
        return made_up_features(encoder)
    names = getattr(calibrator, "feature_names_in_", None)
    if names is None:  # numbers that are names or places: as names they are right in either case
        others = range(calibrator.n_features_in_ - len(chosen.columns))
        names = [*chosen.columns, *(f"not compared {j}" for j in others)]
    row = pd.DataFrame(np.zeros((1, calibrator.n_features_in_)), columns=names)
    compared = chosen.transform(row).columns
    for j, levels in encoder.levels_.items():
        row[compared[j]] = levels[:1] or 0.0
    return row


def made_up_features(encoder: FeatureEncoder | None, n_rows: int = 1) -> Any:
    """Return rows that the encoder takes: zeros, and the first level of each category."""
    if encoder is None:
        return None
    n = encoder.n_features_in_
    if not encoder.levels_:
        return np.zeros((n_rows, n))
    names = range(n) if encoder.feature_names_in_ is None else encoder.feature_names_in_
    return pd.DataFrame(
        {
            name: [encoder.levels_[j][0] if encoder.levels_.get(j) else 0.0] * n_rows
            for j, name in enumerate(names)
        }
    )


def made_up_output(calibrator: BaseCalibrator, n_rows: int = 1) -> dict[str, NDArray]:
    """Return a classifier's output that says nothing: all classes alike."""
    n_classes = len(calibrator.classes_)
    value = 0.0 if calibrator.input_kind_ == "logits" else 1.0 / n_classes
    return {calibrator.input_kind_: np.full((n_rows, n_classes), value)}


def _whole_row(classifier: LocallyCalibratedClassifier) -> Any:
    """Return one row with probabilities in the columns that PrecomputedProba reads."""
    reader, n_classes = classifier.estimator_, len(classifier.classes_)
    row: dict[int, Any] = dict.fromkeys(range(reader.n_features_in_), 0.0)
    encoder = encoder_of(classifier.calibrator_)
    if encoder is not None:
        row |= _compared_values(classifier, encoder)
    for j in reader.columns_:
        row[j] = 0.0 if reader.kind == "logits" else 1.0 / n_classes
    names = getattr(classifier, "feature_names_in_", None)
    if names is None:
        return np.array([list(row.values())])
    return pd.DataFrame({name: [row[j]] for j, name in enumerate(names)})


def _compared_values(
    classifier: LocallyCalibratedClassifier, encoder: FeatureEncoder
) -> dict[int, Any]:
    """Return values by places in X: a level of each category, and vectors that are missing."""
    names = encoder.feature_names_in_
    lengths = {} if names is None else vector_lengths(names)
    values: dict[int, Any] = {}
    j = 0  # the encoder's column
    for place, name in _compared_columns(classifier):
        if name in lengths:
            values[place] = None
        elif levels := encoder.levels_.get(j):
            values[place] = levels[0]
        j += lengths.get(name, 1)
    return values


def _compared_columns(classifier: LocallyCalibratedClassifier) -> Iterator[tuple[int, Any]]:
    """Return places in X and names of the columns that the calibrator gets."""
    places = classifier.estimator_.feature_columns_
    names = getattr(classifier, "feature_names_in_", None)
    row: Any = np.array([places])
    if names is not None:
        row = pd.DataFrame(row, columns=names[places])
    if classifier.features_ is not None:
        row = classifier.features_.transform(row)
    chosen = np.asarray(row)[0].tolist()
    return zip(chosen, chosen if names is None else names[chosen], strict=True)
