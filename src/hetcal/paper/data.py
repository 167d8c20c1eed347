"""What a trial works on: calibration and test items and a black box's probabilities for them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from hetcal._typing import Matrix, Rows
from hetcal.datasets import (
    DatasetUnavailableError,
    PaperSplit,
    load_dataset,
    paper_classifier,
    paper_split,
)
from hetcal.paper.settings import DATASETS, PROTOCOL, Trial
from hetcal.paper.store import Store

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
    y_cal: Rows
    P_cal: Matrix
    X_test: Matrix
    y_test: Rows
    P_test: Matrix

    @property
    def classes(self) -> Rows:
        """Labels in the order of the columns."""
        return np.arange(self.P_cal.shape[1])


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
    proba = None if store is None else store.read_arrays(name)
    if proba is None:
        model = black_box(classifier).fit(split.X_train, split.y_train)
        proba = {
            "P_cal": model.predict_proba(split.X_cal),
            "P_test": model.predict_proba(split.X_test),
        }
        if store is not None:
            store.write_arrays(name, proba)
    return TrialData(
        *(split.X_cal[:n_cal], split.y_cal[:n_cal], proba["P_cal"][:n_cal]),  # type: ignore[index]
        *(split.X_test, split.y_test, proba["P_test"]),  # type: ignore[arg-type]
    )


def training_seconds(trial: Trial, store: Store) -> float:
    """Return about how long the black box of a trial will take; 0 where its answers are kept."""
    is_network = DATASETS[trial.dataset].kind == "network"
    if is_network or store.has_arrays(_cached_as(*trial.group)[0]):
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


def black_box(classifier: str) -> ClassifierMixin:
    """Return an unfitted classifier: one of the paper's, or logistic regression for tables."""
    return LogisticRegression(max_iter=2000) if classifier == "LR" else paper_classifier(classifier)


def table_encoder() -> ColumnTransformer:
    """Return an encoder of mixed columns: categories as indicators, numbers standardised."""
    words = make_column_selector(dtype_include=["object", "category", "string"])
    levels = OneHotEncoder(handle_unknown="ignore", sparse_output=False, min_frequency=5)
    return make_column_transformer((levels, words), remainder=StandardScaler())


# The classifiers of one split come one after the other.
@lru_cache(maxsize=1)
def _split(dataset: str, n_cal: int, seed: int) -> PaperSplit:
    if DATASETS[dataset].kind == "table":
        return _table_split(dataset, n_cal, seed)
    return paper_split(dataset, seed, n_cal)


def _table_split(dataset: str, n_cal: int, seed: int) -> PaperSplit:
    """Split a table of mixed columns at random; categories and scales are of the training rows."""
    data = load_dataset(dataset)
    y = np.searchsorted(data.classes, data.y)
    if N_TABLE_TRAIN + n_cal + N_TABLE_TEST > len(y):
        most = len(y) - N_TABLE_TRAIN - N_TABLE_TEST
        raise ValueError(f"{dataset} has {most} rows to calibrate with; n_cal={n_cal} is more.")
    order = np.random.default_rng(seed).permutation(len(y))
    rows = {
        "train": order[:N_TABLE_TRAIN],
        "cal": order[N_TABLE_TRAIN : N_TABLE_TRAIN + n_cal],
        "test": order[-N_TABLE_TEST:],
    }
    X = pd.DataFrame(data.X)
    encoder = table_encoder().fit(X.iloc[rows["train"]])
    parts: dict[str, Any] = {}
    for name, index in rows.items():
        encoded = np.asarray(encoder.transform(X.iloc[index]), dtype=np.float64)
        parts |= {f"X_{name}": np.nan_to_num(encoded), f"y_{name}": y[index]}
        parts |= {f"index_{name}": index}
    return PaperSplit(name=dataset, seed=seed, classes=data.classes, **parts)


def _network_data(dataset: str, network: str, n_cal: int, seed: int) -> TrialData:
    """Halve a network's test outputs, stratified; the latent layer stands for the features."""
    split = paper_split(f"{dataset}-{network}", seed, n_cal)
    return TrialData(
        *(split.X_cal, split.y_cal, split.proba_cal),  # type: ignore[arg-type]
        *(split.X_test, split.y_test, split.proba_test),  # type: ignore[arg-type]
    )
