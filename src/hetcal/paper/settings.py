"""What is run: data sets, classifiers, methods, and the key under which a result is kept.

A :class:`Trial` is one method on one split behind one classifier. Its key is a hash of everything
that decides the result, a version number per method included: whoever changes what a method does
raises its number in `VERSIONS`, and old results no longer count.

Methods have three kinds of names. The paper's own eight are called as it prints them (``"Uncal."``,
``"Platt"`` for two classes or ``"TS"`` for more, ``"Iso Reg"``, ``"Hist bin"``, ``"SBA-10"``,
``"SBAW-10"``, ``"SWC"``, ``"SWC-HH"``) and run with the published settings. Names of
:func:`hetcal.list_calibrators` (``"hybrid"``, ``"beta"``, ...) run with their defaults. The rest
are baselines (``"forest-x"``, ``"forest-xp"``, ``"boosting-x"``, ``"boosting-xp"``, ``"mcgrad"``)
and measurements (``"hh"`` as published, ``"hh-out-of-sample"`` out of sample).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hetcal._validation.text import closest
from hetcal.calibration import list_calibrators

# Printed name -> name in the registry of calibrators.
PAPER_METHODS: dict[str, str] = {
    "Uncal.": "uncalibrated",
    "Platt": "platt",
    "TS": "temperature",
    "Iso Reg": "isotonic",
    "Hist bin": "histogram",
    "SBA-10": "sba",
    "SBAW-10": "sbaw",
    "SWC": "swc",
    "SWC-HH": "swc-hh",
}
GLOBAL_METHODS = ("Uncal.", "Platt", "TS", "Iso Reg", "Hist bin")
SIMILARITY_METHODS = ("SBA-10", "SBAW-10", "SWC", "SWC-HH")
BASELINES = ("forest-x", "forest-xp", "boosting-x", "boosting-xp", "mcgrad")
MEASUREMENTS = ("hh", "hh-out-of-sample")

# Raise a number when a method's results change; a method that is not listed has version 1.
VERSIONS: dict[str, int] = {"hybrid": 3}
# Raise it when the splits, the black boxes or the metrics change: nothing old counts any more.
PROTOCOL = 1

CLASSIFIERS = ("DT", "NB", "RF", "SVM", "RBFSVM", "GBT")
NETWORKS = ("resnet20", "resnet56", "repvgg_a2")


@dataclass(frozen=True)
class DatasetPlan:
    """How a data set is used.

    Attributes
    ----------
    kind : {"paper", "table", "network"}
        Which splits it has: the paper's, a table's, or a stratified half of a network's outputs.
    n_classes : int
    n_cal : int
        Calibration items unless told otherwise.
    classifiers : tuple of str
        The black boxes.
    radius : float
        Hellinger radius of the neighbourhoods of hidden heterogeneity.
    """

    kind: str
    n_classes: int
    n_cal: int
    classifiers: tuple[str, ...] = CLASSIFIERS
    radius: float = 0.1


DATASETS: dict[str, DatasetPlan] = {
    "mnist-1v7": DatasetPlan("paper", 2, 3000),
    "mnist-4v9": DatasetPlan("paper", 2, 3000),
    "mnist-3v8": DatasetPlan("paper", 2, 3000),
    "mnist-3v5": DatasetPlan("paper", 2, 3000),
    "mnist10": DatasetPlan("paper", 10, 5000),
    "fashion-mnist": DatasetPlan("paper", 10, 5000),
    "letter": DatasetPlan("paper", 26, 5000),
    "moons": DatasetPlan("paper", 2, 1000),
    "adult": DatasetPlan("table", 2, 3000, ("LR", "NB", "GBT")),
    "bank-marketing": DatasetPlan("table", 2, 3000, ("LR", "NB", "GBT")),
    "credit-default": DatasetPlan("table", 2, 3000, ("LR", "NB", "GBT")),
    "cifar10": DatasetPlan("network", 10, 5000, NETWORKS, 0.05),
    "cifar100": DatasetPlan("network", 100, 5000, NETWORKS, 0.05),
}
# The data sets of the paper's tables, those with two classes first.
BINARY = ("mnist-1v7", "mnist-4v9", "mnist-3v8", "mnist-3v5")
MULTICLASS = ("mnist10", "fashion-mnist", "letter")
PAPER_TABLES = (*BINARY, *MULTICLASS)


@dataclass(frozen=True)
class Trial:
    """One method on one split behind one classifier.

    Attributes
    ----------
    dataset, classifier : str
        Names from `DATASETS`.
    n_cal : int
        Calibration items.
    seed : int
        Which split; the paper's ten are 0 to 9.
    method : str
        See the module's text.

    Examples
    --------
    >>> trial = Trial("moons", "DT", 1000, 0, "SWC")
    >>> trial.setting["preset"]
    'paper'
    >>> trial.key == Trial("moons", "DT", 1000, 1, "SWC").key
    False
    """

    dataset: str
    classifier: str
    n_cal: int
    seed: int
    method: str

    @property
    def setting(self) -> dict[str, Any]:
        """Everything that decides the result."""
        setting = asdict(self) | {
            "protocol": PROTOCOL,
            "version": VERSIONS.get(self.method, 1),
            "preset": "paper" if self.method in PAPER_METHODS else None,
        }
        if self.method in ("SWC-HH", *MEASUREMENTS):
            setting["radius"] = DATASETS[self.dataset].radius
        return setting

    @property
    def key(self) -> str:
        """Hash of the setting."""
        text = json.dumps(self.setting, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def group(self) -> tuple[str, str, int, int]:
        """Data set, classifier, calibration items and seed: what shares one black box."""
        return self.dataset, self.classifier, self.n_cal, self.seed


def paper_methods(dataset: str) -> list[str]:
    """Return the eight methods of the paper's table for a data set, in its order.

    Examples
    --------
    >>> paper_methods("letter")
    ['Uncal.', 'TS', 'Iso Reg', 'Hist bin', 'SBA-10', 'SBAW-10', 'SWC', 'SWC-HH']
    """
    left_out = "TS" if _plan(dataset).n_classes == 2 else "Platt"
    return [method for method in PAPER_METHODS if method != left_out]


def check_methods(names: Iterable[str], dataset: str, *, prefer: str = "exact") -> list[str]:
    """Return method names in their own spelling; refuse what cannot be run on a data set.

    Parameters
    ----------
    names : iterable of str
    dataset : str
    prefer : {"exact", "paper"}, default "exact"
        ``"swc"`` is a calibrator with its defaults and ``"SWC"`` the paper's; with "paper" capitals
        do not matter and both are the paper's.

    Examples
    --------
    >>> check_methods(["Uncal.", "swc", "hybrid"], "moons")
    ['Uncal.', 'swc', 'hybrid']
    >>> check_methods(["uncal.", "swc", "hybrid"], "moons", prefer="paper")
    ['Uncal.', 'SWC', 'hybrid']
    """
    known = [*PAPER_METHODS, *list_calibrators(), *BASELINES, *MEASUREMENTS]
    printed = {method.lower(): method for method in PAPER_METHODS} if prefer == "paper" else {}
    found = []
    for name in names:
        method = printed.get(name.lower(), name)
        if method not in known:
            close = closest(name, known)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise ValueError(f"Unknown method {name!r}.{hint} Known: {', '.join(known)}.")
        if method in ("Platt", "mcgrad") and _plan(dataset).n_classes > 2:
            raise ValueError(f"{method} is for two classes; {dataset} has more. Leave it out.")
        found.append(method)
    return list(dict.fromkeys(found))


def make_trials(
    dataset: str,
    methods: Sequence[str],
    *,
    classifiers: Sequence[str] | None = None,
    seeds: Iterable[int] = range(10),
    n_cal: int | None = None,
) -> list[Trial]:
    """Return the trials of a table: every seed, classifier and method, one seed after the other.

    Parameters
    ----------
    dataset : str
    methods : sequence of str
    classifiers : sequence of str, optional
        All of the data set's by default.
    seeds : iterable of int, default range(10)
    n_cal : int, optional
        The data set's usual number of calibration items by default.

    Examples
    --------
    >>> len(make_trials("moons", ["SWC", "TS"], classifiers=["DT"], seeds=range(3)))
    6
    """
    plan = _plan(dataset)
    methods = check_methods(methods, dataset)
    chosen = list(plan.classifiers if classifiers is None else classifiers)
    for classifier in chosen:
        if classifier not in plan.classifiers:
            raise ValueError(
                f"{dataset} has no classifier {classifier!r}; choose from "
                f"{', '.join(plan.classifiers)}."
            )
    size = plan.n_cal if n_cal is None else int(n_cal)
    return [
        Trial(dataset, classifier, size, seed, method)
        for seed in seeds
        for classifier in chosen
        for method in methods
    ]


def _plan(dataset: str) -> DatasetPlan:
    if dataset not in DATASETS:
        raise ValueError(
            f"There is no experiment on {dataset!r}; choose from {', '.join(DATASETS)}."
        )
    return DATASETS[dataset]
