"""How each method turns a trial's items into figures."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from hetcal._typing import Matrix
from hetcal.calibration import get_calibrator
from hetcal.heterogeneity import HiddenHeterogeneity
from hetcal.metrics import accuracy, brier_score, expected_calibration_error, log_loss
from hetcal.paper.data import TrialData, trial_data
from hetcal.paper.settings import BASELINES, DATASETS, PAPER_METHODS, Trial
from hetcal.paper.store import Store

Result = dict[str, float]


class Workbench:
    """Everything that the methods of one data set, classifier, size and seed share.

    Nothing is computed before a method asks for it: a finished group costs nothing.

    Parameters
    ----------
    dataset, classifier, n_cal, seed
        As in :class:`hetcal.paper.settings.Trial`.
    store : Store
        Where finished results and cached arrays are.
    """

    def __init__(self, dataset: str, classifier: str, n_cal: int, seed: int, store: Store):
        self.group = (dataset, classifier, n_cal, seed)
        self.store = store

    def run(self, trial: Trial) -> Result:
        """Return the figures of one trial of this group."""
        known = self._same_features(trial)
        if known is not None:
            return known
        data = self.data
        measure = {
            "hh": self._published_heterogeneity,
            "hh-out-of-sample": self._out_of_sample_heterogeneity,
        }
        seconds = self._seconds_shared(trial.method)
        start = time.process_time()
        if trial.method in measure:
            result = measure[trial.method]()
            seconds += time.process_time() - start
        else:
            Q = self._predict(trial.method)
            seconds += time.process_time() - start
            result = scores_of(data.y_test, Q)
        return result | {"seconds": round(seconds, 4), "n_test": len(data.y_test)}

    def _seconds_shared(self, method: str) -> float:
        """Have ready what several methods share; return the seconds that it takes or once took."""
        seconds = 0.0
        if method in ("SWC", "SWC-HH"):
            seconds += self._forest[1]
        if method in ("SWC-HH", "hh"):
            seconds += float(self.heterogeneity["seconds"])
        return seconds

    @cached_property
    def data(self) -> TrialData:
        """The items and what the black box says of them."""
        return trial_data(*self.group, store=self.store)

    @cached_property
    def heterogeneity(self) -> dict[str, Any]:
        """Published hidden heterogeneity of each test item, and the seconds that it took."""
        dataset, classifier, n_cal, seed = self.group
        key = Trial(dataset, classifier, n_cal, seed, "hh").key
        name = f"{dataset}/hh-{key}"
        kept = self.store.read_arrays(name)
        if kept is None:
            data = self.data
            start = time.process_time()
            estimator = HiddenHeterogeneity(
                estimate="paper", radius=DATASETS[dataset].radius, classes=data.classes
            )
            estimator.fit(data.X_cal, data.y_cal, y_proba=data.P_cal)
            # Where the published algorithm has no answer it takes 0.
            hh = np.fmax(estimator.score_samples(data.P_test), 0.0)
            kept = {"hh": hh, "seconds": np.array(time.process_time() - start)}
            self.store.write_arrays(name, kept)
        return kept

    def _predict(self, method: str) -> Matrix:
        """Return calibrated probabilities of the test items."""
        data = self.data
        if method in BASELINES:
            return _mcgrad(data) if method == "mcgrad" else _retrain(method, data)
        if method in ("SWC", "SWC-HH"):
            # One forest; the second method also needs the hidden heterogeneity.
            hh = self.heterogeneity["hh"] if method == "SWC-HH" else None
            calibrator = self._forest[0]
            return calibrator.predict_proba(data.X_test, y_proba=data.P_test, heterogeneity=hh)
        preset = "paper" if method in PAPER_METHODS else None
        calibrator = get_calibrator(PAPER_METHODS.get(method, method), preset=preset)
        if "classes" in calibrator.get_params(deep=False):  # a user's own need not have it
            calibrator.set_params(classes=data.classes)
        calibrator.fit(data.X_cal, data.y_cal, y_proba=data.P_cal)
        return calibrator.predict_proba(data.X_test, y_proba=data.P_test)

    @cached_property
    def _forest(self) -> tuple[Any, float]:
        data = self.data
        start = time.process_time()
        calibrator = get_calibrator("swc", preset="paper", classes=data.classes)
        calibrator.fit(data.X_cal, data.y_cal, y_proba=data.P_cal)
        return calibrator, time.process_time() - start

    def _published_heterogeneity(self) -> Result:
        return {"hh": float(self.heterogeneity["hh"].mean())}

    def _out_of_sample_heterogeneity(self) -> Result:
        data = self.data
        # Values are wanted here, of which no claim is a test.
        estimator = HiddenHeterogeneity(
            radius=DATASETS[self.group[0]].radius, n_null=0, classes=data.classes
        )
        estimator.fit(data.X_cal, data.y_cal, y_proba=data.P_cal)
        found = estimator.frame(data.P_test)[["hh", "hh_global", "hh_local"]].mean()
        return {str(name): float(value) for name, value in found.items()}

    def _same_features(self, trial: Trial) -> Result | None:
        """Return what another classifier's trial found where the method is a model of X alone.

        Not where X is a network's latent layer.
        """
        plan = DATASETS[trial.dataset]
        if not trial.method.endswith("-x") or plan.kind == "network":
            return None
        for classifier in plan.classifiers:
            other = Trial(trial.dataset, classifier, trial.n_cal, trial.seed, trial.method)
            known = self.store.read(other)
            if known is not None:
                return known
        return None


def scores_of(y: NDArray[np.int64], Q: Matrix) -> Result:
    """Return every score of probabilities whose columns are the labels 0 to K - 1.

    Brier score and accuracy take the rows as they are (published histogram binning does not
    normalise them); log loss and calibration errors need distributions, so rows are normalised.

    Examples
    --------
    >>> import numpy as np
    >>> scores = scores_of(np.array([0, 1]), np.array([[0.8, 0.2], [0.4, 0.6]]))
    >>> round(scores["brier"], 6), scores["accuracy"]
    (0.2, 1.0)
    """
    classes = np.arange(Q.shape[1])
    total = Q.sum(axis=1, keepdims=True)
    rows = np.divide(Q, total, out=np.full_like(Q, 1 / Q.shape[1]), where=total > 0)
    return {
        "brier": brier_score(y, Q, classes=classes, normalized=False),
        "accuracy": accuracy(y, Q, classes=classes, normalized=False),
        "log_loss": log_loss(y, rows, classes=classes),
        "ece": expected_calibration_error(y, rows, classes=classes),
        "ece_debiased": expected_calibration_error(y, rows, classes=classes, debias=True),
    }


_RETRAINED: dict[str, Callable[[], Any]] = {
    "forest": lambda: RandomForestClassifier(200, random_state=0),
    "boosting": lambda: HistGradientBoostingClassifier(random_state=0),
}


def _retrain(method: str, data: TrialData) -> Matrix:
    """Train a model on the calibration items: on the features, or on them and P."""
    name, inputs = method.split("-")
    Z_cal, Z_test = data.X_cal, data.X_test
    if inputs == "xp":
        Z_cal, Z_test = np.hstack([Z_cal, data.P_cal]), np.hstack([Z_test, data.P_test])
    model = _RETRAINED[name]().fit(Z_cal, data.y_cal)
    Q = np.zeros_like(data.P_test)
    Q[:, model.classes_] = model.predict_proba(Z_test)
    return Q


def _mcgrad(data: TrialData) -> Matrix:
    """Multicalibration by boosting (MCGrad) with its defaults, features as numbers."""
    try:
        from mcgrad.methods import MCGrad  # type: ignore[import-not-found]
    except ImportError as error:
        raise ImportError(
            f"The method 'mcgrad' needs the package mcgrad, which cannot be imported ({error}). "
            "Install it with: pip install mcgrad, or leave the method out."
        ) from error
    names = [f"x{j}" for j in range(data.X_cal.shape[1])]

    def frame(X: Matrix, P: Matrix) -> pd.DataFrame:
        return pd.DataFrame(X, columns=names).assign(prediction=P[:, 1])

    columns = {
        "prediction_column_name": "prediction",
        "categorical_feature_column_names": [],
        "numerical_feature_column_names": names,
    }
    # It reports every round that it is not sure of.
    logging.getLogger("mcgrad").setLevel(logging.ERROR)
    model = MCGrad()
    known = frame(data.X_cal, data.P_cal).assign(label=data.y_cal)
    model.fit(df_train=known, label_column_name="label", **columns)
    q = np.asarray(model.predict(df=frame(data.X_test, data.P_test), **columns), dtype=np.float64)
    return np.column_stack([1 - q, q])
