"""The one call to copy: real code, in the names that the user passed things by."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from hetcal._typing import Matrix
from hetcal._validation import FeatureEncoder
from hetcal._validation.containers import as_frame
from hetcal.data import CalibrationSet
from hetcal.diagnosis.candidates import N_TREES, SMALLEST_LEAF, least_in_leaf
from hetcal.diagnosis.prior_shift import PriorShift
from hetcal.diagnosis.verdicts import AS_IT_IS, HYBRID

RETRAINED = ("forest", "boosting")
_FEATURES = ("X", "X_new")


def recommended_call(
    recommended: str, items: CalibrationSet, *, shift: PriorShift | None, classes_given: bool
) -> str:
    """Return lines of Python that do what is recommended.

    They use ``X``, ``y``, ``y_proba`` (or ``logits``), ``X_new`` and ``y_proba_new`` (or
    ``logits_new``), and where they were passed ``groups``, ``sample_weight`` and ``classes``; they
    leave calibrated probabilities in ``q_new``.

    Parameters
    ----------
    recommended : str
        "hybrid"; "forest" or "boosting", trained on the features; "uncalibrated", the probabilities
        as they are; or the name of a global map.
    """
    if recommended in RETRAINED:
        lines = _retrain(items, recommended)
        if classes_given:
            lines = _in_order_of_classes(lines)
    elif recommended == HYBRID:
        lines = _calibrate("HybridCalibrator", "", items, classes_given, with_groups=True)
    elif recommended != AS_IT_IS:
        lines = _calibrate("get_calibrator", repr(recommended), items, classes_given)
    elif items.kind == "logits":
        lines = ["from scipy.special import softmax", "", "q_new = softmax(logits_new, axis=1)"]
    else:
        lines = ["q_new = y_proba_new  # as it is"]
    if shift is not None and shift.shifted.any():
        lines += [
            "q_new = hetcal.correct_prior(",
            f"    q_new, old_prior={_numbers(shift.old)}, new_prior={_numbers(shift.new)}",
            ")",
        ]
        lines = _imported(lines)
    return "\n".join(lines)


def _calibrate(
    name: str, first: str, items: CalibrationSet, classes_given: bool, with_groups: bool = False
) -> list[str]:
    kind = items.kind
    made = ", ".join(part for part in (first, "classes=classes" if classes_given else "") if part)
    given = [f"X, y, {kind}={kind}"]
    if items.weight is not None:
        given.append("sample_weight=sample_weight")
    if with_groups and items.groups is not None:
        given.append("groups=groups")
    return [
        "import hetcal",
        "",
        f"calibrator = hetcal.{name}({made})",
        f"calibrator.fit({', '.join(given)})",
        f"q_new = calibrator.predict_proba(X_new, {kind}={kind}_new)",
    ]


def _retrain(items: CalibrationSet, best: str) -> list[str]:
    """Train the model that was measured; columns of text need an encoder before it."""
    name = {"forest": "RandomForestClassifier", "boosting": "HistGradientBoostingClassifier"}[best]
    leaf = least_in_leaf(items.n_items)  # as it was measured
    settings = {
        "forest": [f"{N_TREES}, min_samples_leaf={SMALLEST_LEAF}"],
        "boosting": [
            "learning_rate=0.06, max_leaf_nodes=12, l2_regularization=1.0,",
            f"min_samples_leaf={leaf}, early_stopping=False,",
        ],
    }[best]
    encoder = items.encoder()
    model = [
        *_plain_pandas(items.X, encoder),
        f"model = {name}(",
        *(f"    {line}" for line in settings),
        ")",
    ]
    empty = _empty_columns(items.features(), encoder)
    if empty:
        model = [_dropped(items.X, empty), *model]
    numpy = ["import numpy as np"] if empty and as_frame(items.X) is None else []
    if not encoder.levels_:
        weight = "" if items.weight is None else ", sample_weight=sample_weight"
        return [
            *numpy,
            f"from sklearn.ensemble import {name}",
            "",
            *model,
            f"q_new = model.fit(X, y{weight}).predict_proba(X_new)",
        ]
    names = encoder.feature_names_in_
    left = [j for j in range(encoder.n_features_in_) if j not in empty]
    where = [left.index(j) if names is None else str(names[j]) for j in sorted(encoder.levels_)]
    weight = "" if items.weight is None else f", {name.lower()}__sample_weight=sample_weight"
    return [
        "from sklearn.compose import make_column_transformer",
        f"from sklearn.ensemble import {name}",
        "from sklearn.pipeline import make_pipeline",
        "from sklearn.preprocessing import OneHotEncoder",
        "",
        "encode = make_column_transformer(",
        '    (OneHotEncoder(handle_unknown="ignore", sparse_output=False),',
        f"     {where!r}),",
        '    remainder="passthrough",',
        ")",
        *model,
        "model = make_pipeline(encode, model)",
        f"q_new = model.fit(X, y{weight}).predict_proba(X_new)",
    ]


def _empty_columns(features: Matrix, encoder: FeatureEncoder) -> list[int]:
    """Return the columns of numbers without any value: boosting cannot bin them."""
    known = np.atleast_1d(np.isfinite(features).any(axis=0))
    width = [len(encoder.levels_.get(j, [j])) for j in range(encoder.n_features_in_)]
    start = np.cumsum([0, *width])
    return [j for j in range(len(width)) if j not in encoder.levels_ and not known[start[j]]]


def _dropped(X: Any, columns: list[int]) -> str:
    """Return the line that leaves columns out."""
    frame = as_frame(X)
    if frame is None:
        each = [f"np.delete(np.asarray({name}, float), {columns}, axis=1)" for name in _FEATURES]
    else:
        names = [frame.columns[j] for j in columns]
        which = f"columns={names!r}" if frame.implementation.is_pandas() else repr(names)
        each = [f"{name}.drop({which})" for name in _FEATURES]
    return "\n".join(
        f"{name} = {dropped}  # no value in it"
        for name, dropped in zip(_FEATURES, each, strict=True)
    )


def _plain_pandas(X: Any, encoder: FeatureEncoder) -> list[str]:
    """Return the lines that turn a pandas table into what scikit-learn's encoders take."""
    if not isinstance(X, pd.DataFrame):
        return []
    each = f"for table in ({', '.join(_FEATURES)})"
    lines = []
    if encoder.levels_ and any(_knows_na(dtype) for dtype in X.dtypes):
        plain = "table.astype(object).where(table.notna(), None)"
        lines += ["X, X_new = (  # None in place of pandas.NA", f"    {plain} {each}", ")"]
    if 0 < sum(isinstance(name, str) for name in X.columns) < X.shape[1]:
        lines += [f"X, X_new = (table.rename(columns=str) {each})"]
    return lines


def _knows_na(dtype: Any) -> bool:
    """Say whether columns of the type may hold ``pandas.NA``, in X or in new items."""
    return getattr(dtype, "na_value", None) is pd.NA


def _in_order_of_classes(lines: list[str]) -> list[str]:
    """Bring the columns of a scikit-learn model, sorted by label, into the order of ``classes``."""
    ordered = "q_new = pd.DataFrame(q_new, columns=model.classes_)"
    filled = "q_new = q_new.reindex(columns=list(classes), fill_value=0.0).to_numpy()"
    return ["import pandas as pd", *lines, ordered, filled]


def _numbers(prior: np.ndarray) -> str:
    rounded = np.maximum(prior, 1e-4).round(4)  # no class is ruled out by an estimate
    rounded[rounded.argmax()] += 1 - rounded.sum()
    return "[" + ", ".join(f"{value:.4f}" for value in rounded) + "]"


def _imported(lines: list[str]) -> list[str]:
    """Put ``import hetcal`` first where it is missing."""
    if "import hetcal" in lines:
        return lines
    start = ["import hetcal"] if lines[0].startswith("from") else ["import hetcal", ""]
    return start + lines
