"""Saving and loading calibrators."""

from __future__ import annotations

import copy
import datetime as dt
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from hetcal._exceptions import FileFormatError
from hetcal._threads import lock_of, snapshot
from hetcal._version import __version__
from hetcal.calibration.base import BaseCalibrator
from hetcal.calibration.featureless import forget_features as without_features
from hetcal.calibration.featureless import keeps_leaf_numbers
from hetcal.calibration.wrapper import LocallyCalibratedClassifier
from hetcal.monitor import SupportMonitor
from hetcal.persistence import container
from hetcal.persistence.budget import DEFAULT_LIMIT, Budget
from hetcal.persistence.describing import describe
from hetcal.persistence.smoke_check import check_prediction, encoder_of
from hetcal.persistence.tree import Decoder, Encoder

__all__ = ["describe", "load", "save"]

_MOST_NAMED = 1000


def save(
    calibrator: Any,
    path: str | os.PathLike[str],
    *,
    forget_features: bool = False,
    metadata: Mapping[str, Any] | None = None,
    date: str | None = "now",
) -> None:
    """Write a fitted calibrator to one file that holds numbers and text, but no code.

    Parameters
    ----------
    calibrator : fitted calibrator
        Any calibrator of :mod:`hetcal.calibration`; a
        :class:`~hetcal.LocallyCalibratedClassifier` only around
        :class:`~hetcal.PrecomputedProba` (else save its ``calibrator_``). A
        :class:`~hetcal.SupportMonitor` with its calibrator and everything it has counted.
    path : str or path
        Where to; by custom ``something.hetcal``. A file that is there is replaced in one step.
    forget_features : bool, default=False
        Leave the calibration items' features out. Then ``evidence`` is not available after loading,
        and where everyone votes neither are intervals and effective sample sizes. Calibrators that
        compare with the items' features refuse. What can still be derived from the file is told in
        the documentation of the file format.
    metadata : mapping, optional
        Your own notes, as JSON; :func:`describe` returns them.
    date : str or None, default="now"
        When it was made. ``"now"``: the time in UTC (or ``SOURCE_DATE_EPOCH``); None: left out, so
        that equal calibrators give equal files.

    Raises
    ------
    TypeError, ValueError
        Where the calibrator holds something that has no place in a file (a function, another
        library's model), with a way out.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import hetcal
    >>> y_proba = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6], [0.1, 0.9]]
    >>> calibrator = hetcal.PlattScaling().fit(None, [0, 0, 1, 0, 1], y_proba=y_proba)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.hetcal"
    >>> save(calibrator, path, metadata={"made by": "Ann"})
    >>> load(path)
    PlattScaling()
    >>> describe(path)["metadata"]
    {'made by': 'Ann'}
    """
    if isinstance(calibrator, SupportMonitor):
        calibrator.frame()  # fits itself where that needs nothing, or says what it needs
    elif isinstance(calibrator, BaseCalibrator | LocallyCalibratedClassifier):
        calibrator = snapshot(calibrator)
        check_is_fitted(calibrator, "classes_")
    else:
        raise TypeError(
            f"hetcal.save stores calibrators; got {type(calibrator).__name__}. Pass a fitted "
            "calibrator from hetcal.calibration."
        )
    encoder = Encoder()
    with lock_of(calibrator):  # all parts of a monitor from the same moment
        if forget_features:
            calibrator = _without_features(calibrator)
        manifest = {
            "made": _versions() | ({} if date is None else {"date": _date(date)}),
            "calibrator": _summary(calibrator, forget_features),
            "metadata": _checked_metadata(metadata),
            "root": encoder.encode(calibrator, type(calibrator).__name__),
        }
        _check_readable(manifest["root"], encoder.arrays, type(calibrator).__name__)
    container.write(Path(path), manifest, encoder.arrays)


def load(path: str | os.PathLike[str], *, max_bytes: int = DEFAULT_LIMIT) -> Any:
    """Read a calibrator that :func:`save` wrote; nothing in the file is executed.

    Parameters
    ----------
    path : str or path
    max_bytes : int, default=4 GiB
        Refuse files that would take more memory: their arrays and texts, and everything that is
        computed from them until a first prediction is made.

    Returns
    -------
    calibrator
        Predicts the same as the one that was saved, to the bit. Threads are not stored: ``n_jobs``
        has its default.

    Raises
    ------
    FileFormatError
        Where the file is no hetcal file, is damaged, comes from a newer version, or holds what no
        calibrator could have written.
    """
    name = Path(path).name
    try:
        budget = Budget(max_bytes)
        manifest, arrays = container.read(Path(path), budget)
        calibrator = Decoder(arrays, budget).decode(manifest["root"])
        check_prediction(calibrator)
    except FileFormatError as error:
        raise FileFormatError(f"{name}: {error}") from error
    except OSError:
        raise
    except Exception as error:  # whatever a wrong part leads to, the file is what is wrong
        raise FileFormatError(
            f"{name}: the parts of the file do not fit together ({type(error).__name__}: "
            f"{str(error)[:200]}). The file was changed, or comes from another version of hetcal."
        ) from error
    return calibrator


def _check_readable(root: Any, arrays: list[NDArray], name: str) -> None:
    """Raise where :func:`load` would refuse the file: better now than when it is needed."""
    arrays = [array.view() for array in arrays]
    for array in arrays:
        array.flags.writeable = False  # they are those of the calibrator itself
    try:
        Decoder(arrays, Budget(sys.maxsize)).decode(root)
    except Exception as error:  # all that load takes for a wrong file
        raise ValueError(
            f"hetcal.save: {name} could not be loaded again ({error}). Nothing was written. Fit it "
            "to labels, levels, weights and logits of a usual kind and size, or use pickle."
        ) from error


def _without_features(saved: Any) -> Any:
    """Return a copy without the features of the calibration items."""
    if not isinstance(saved, SupportMonitor):
        return without_features(saved)
    monitor = saved
    if monitor.scorer_.distance is not None and monitor.scorer_.distance.holds_items:
        raise ValueError(
            "forget_features: SupportMonitor(distance='nearest') compares with the features of "
            "remembered items. Save it without forget_features, or use distance='isolation'."
        )
    copied = copy.copy(monitor)
    copied.calibrator = copied.calibrator_ = without_features(monitor.calibrator_)
    return copied


def _versions() -> dict[str, str]:
    return {"hetcal": __version__, "numpy": np.__version__, "scikit-learn": sklearn.__version__}


def _date(date: str) -> str:
    if date != "now":
        return str(date)
    fixed = os.environ.get("SOURCE_DATE_EPOCH")
    moment = (
        dt.datetime.now(dt.UTC) if fixed is None else dt.datetime.fromtimestamp(int(fixed), dt.UTC)
    )
    return moment.isoformat(timespec="seconds")


def _checked_metadata(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    notes = dict(metadata or {})
    try:
        return container.json_copy(notes)
    except (TypeError, ValueError) as error:
        raise TypeError(f"metadata must be JSON: text, numbers, lists, dicts; {error}.") from error


def _summary(calibrator: Any, forgotten: bool) -> dict[str, Any]:
    """Return the facts that people ask for, readable without this library."""
    inner = calibrator
    while hasattr(inner, "calibrator_"):
        inner = inner.calibrator_
    encoder = encoder_of(inner)
    n_features = None if encoder is None else int(encoder.n_features_in_)
    return {
        "kind": type(calibrator).__name__.removeprefix("Featureless"),
        "method": type(inner).__name__.removeprefix("Featureless"),
        "n_items": _n_items(inner),
        "classes": [_shown(label) for label in inner.classes_.tolist()],
        "input": inner.input_kind_,
        "n_features": n_features,
        "features": None if encoder is None else _features(encoder),
        "settings": {k: _shown(v) for k, v in inner.get_params(deep=False).items()},
        "forget_features": bool(forgotten),
        "leaf_numbers": keeps_leaf_numbers(inner),
    }


def _n_items(calibrator: Any) -> int | None:
    voters = getattr(calibrator, "voters_", None)
    if voters is not None:
        return len(voters.codes)
    predicted = vars(calibrator).get("out_of_sample_proba_")
    return None if predicted is None else len(predicted)


def _features(encoder: Any) -> list[dict[str, Any]]:
    names = encoder.feature_names_in_
    described = []
    for j in range(min(encoder.n_features_in_, _MOST_NAMED)):
        levels = encoder.levels_.get(j)
        entry = {
            "name": f"x{j}" if names is None else str(names[j]),
            "kind": "number" if levels is None else "category",
        }
        described.append(entry if levels is None else entry | {"levels": len(levels)})
    return described


def _shown(value: Any) -> Any:
    """Return a setting as JSON; what JSON lacks as its repr."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and np.isfinite(value):
        return value
    if isinstance(value, list | tuple):
        return [_shown(item) for item in value[:_MOST_NAMED]]
    return repr(value)[:500]
