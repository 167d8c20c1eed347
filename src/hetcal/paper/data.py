"""What a trial works on: calibration and test items and a black box's probabilities for them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from hetcal.datasets import DatasetUnavailableError, load_dataset, paper_classifier, paper_split
from hetcal.paper.settings import DATASETS, PROTOCOL, Trial
from hetcal.paper.store import Store

__all__ = [
    "N_TABLE_TEST",
    "N_TABLE_TRAIN",
    "TrialData",
    "training_seconds",
    "trial_data",
    "why_unavailable",
]

Matrix = NDArray[np.float64]
Codes = NDArray[np.int64]

# Tables: so many rows train the black box, those after them calibrate, the last rows test.
N_TABLE_TRAIN, N_TABLE_TEST = 2000, 8000


# Boosting grows a tree per class and round; all others take a second or two.
_TRAINING_SECONDS = {
    ("letter", "GBT"): 30.0,
    ("fashion-mnist", "GBT"): 90.0,
    ("mnist10", "GBT"): 180.0,
}


@dataclass(frozen=True)
class TrialData:
    """Items of one split behind one classifier; labels are columns of the probabilities."""

    X_cal: Matrix
    y_cal: Codes
    P_cal: Matrix
    X_test: Matrix
    y_test: Codes
    P_test: Matrix

    @property
    def classes(self) -> Codes:
        """Labels in the order of the columns."""
        return np.arange(self.P_cal.shape[1])


@dataclass(frozen=True)
class _Split:
    X_train: Matrix
    y_train: Codes
    X_cal: Matrix
    y_cal: Codes
    X_test: Matrix
    y_test: Codes


def trial_data(
    dataset: str, classifier: str, n_cal: int, seed: int, store: Store | None = None
) -> TrialData:
    """Return the items of a trial; the black box is trained, or read from the store's cache.

    Parameters
    ----------
    dataset, classifier, n_cal, seed
        As in :class:`hetcal.paper.settings.Trial`.
    store : Store, optional
        Keeps the black boxes' probabilities, which are the same for every `n_cal`.

    Examples
    --------
    >>> trial_data("moons", "DT", 200, 0).P_cal.shape
    (200, 2)
    """
    if DATASETS[dataset].kind == "network":
        return _network_data(dataset, classifier, n_cal, seed)
    name, n_pool = _cached_as(dataset, classifier, n_cal, seed)
    split = _split(dataset, n_pool, seed)
    said = None if store is None else store.read_arrays(name)
    if said is None:
        model = _black_box(dataset, classifier).fit(split.X_train, split.y_train)
        said = {
            "P_cal": model.predict_proba(split.X_cal),
            "P_test": model.predict_proba(split.X_test),
        }
        if store is not None:
            store.write_arrays(name, said)
    return TrialData(
        split.X_cal[:n_cal],
        split.y_cal[:n_cal],
        said["P_cal"][:n_cal],
        split.X_test,
        split.y_test,
        said["P_test"],
    )


def training_seconds(trial: Trial, store: Store) -> float:
    """Return about how long the black box of a trial will take; 0 where its answers are kept."""
    if DATASETS[trial.dataset].kind == "network":
        return 0.0
    if store.has_arrays(_cached_as(*trial.group)[0]):
        return 0.0
    return _TRAINING_SECONDS.get((trial.dataset, trial.classifier), 2.0)


def _cached_as(dataset: str, classifier: str, n_cal: int, seed: int) -> tuple[str, int]:
    """Return the name of a black box's answers in the cache, and for how many items they are.

    Calibration sets of one trial are nested: the largest holds all of them.
    """
    n_pool = max(n_cal, DATASETS[dataset].n_cal)
    return f"{dataset}/{classifier}-{n_pool}-{seed}-v{PROTOCOL}", n_pool


def why_unavailable(dataset: str) -> str | None:
    """Return why a data set cannot be had, or None where it can; it may be downloaded.

    Examples
    --------
    >>> why_unavailable("moons") is None
    True
    """
    plan = DATASETS[dataset]
    files = [f"{dataset}-{network}" for network in plan.classifiers]
    try:
        for name in files if plan.kind == "network" else [dataset]:
            load_dataset(name)
    except DatasetUnavailableError as error:
        return str(error)
    return None


def _black_box(dataset: str, classifier: str) -> ClassifierMixin:
    if DATASETS[dataset].kind == "table" and classifier == "LR":
        return LogisticRegression(max_iter=2000)
    return paper_classifier(classifier)


# The classifiers of one split come one after the other.
@lru_cache(maxsize=1)
def _split(dataset: str, n_cal: int, seed: int) -> _Split:
    if DATASETS[dataset].kind == "table":
        return _table_split(dataset, n_cal, seed)
    split = paper_split(dataset, seed, n_cal)
    return _Split(
        *(split.X_train, split.y_train, split.X_cal, split.y_cal),  # type: ignore[arg-type]
        *(split.X_test, split.y_test),  # type: ignore[arg-type]
    )


def _table_split(dataset: str, n_cal: int, seed: int) -> _Split:
    """Split a table of mixed columns at random; categories and scales are of the training rows."""
    data = load_dataset(dataset)
    y = np.searchsorted(data.classes, data.y)
    if N_TABLE_TRAIN + n_cal + N_TABLE_TEST > len(y):
        most = len(y) - N_TABLE_TRAIN - N_TABLE_TEST
        raise ValueError(f"{dataset} has {most} rows to calibrate with; n_cal={n_cal} is more.")
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:N_TABLE_TRAIN], order[-N_TABLE_TEST:]
    cal = order[N_TABLE_TRAIN : N_TABLE_TRAIN + n_cal]
    words = make_column_selector(dtype_include=["object", "category", "string"])
    levels = OneHotEncoder(handle_unknown="ignore", sparse_output=False, min_frequency=5)
    encoder = make_column_transformer((levels, words), remainder=StandardScaler())
    X = pd.DataFrame(data.X)
    encoder.fit(X.iloc[train])
    parts = [
        np.nan_to_num(np.asarray(encoder.transform(X.iloc[rows]), dtype=np.float64))
        for rows in (train, cal, test)
    ]
    return _Split(parts[0], y[train], parts[1], y[cal], parts[2], y[test])


def _network_data(dataset: str, network: str, n_cal: int, seed: int) -> TrialData:
    """Halve a network's test outputs, stratified; the latent layer stands for the features."""
    split = paper_split(f"{dataset}-{network}", seed, n_cal)
    return TrialData(
        *(split.X_cal, split.y_cal, split.proba_cal),  # type: ignore[arg-type]
        *(split.X_test, split.y_test, split.proba_test),  # type: ignore[arg-type]
    )
