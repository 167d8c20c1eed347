"""What the paper leaves open: a biased training sample, calibrated on data of the true target.

A model of income (`adult`) is trained on 2000 people among whom women are rare or missing, then
calibrated on 3000 people of the population as it is, and tested on 8000 more. Who is served how
well: women, a third of the population, and men?
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline

from hetcal._exceptions import UnknownCategoryWarning
from hetcal.calibration import get_calibrator
from hetcal.datasets import load_dataset
from hetcal.metrics import brier_score
from hetcal.paper.data import black_box, table_encoder
from hetcal.paper.figures import DrawnFigure, facts_file
from hetcal.paper.settings import VERSIONS
from hetcal.paper.store import Store
from hetcal.plotting.style import method_style, require_pyplot, tidy

N_TRAIN, N_CAL, N_TEST = 2000, 3000, 8000
GROUP, RARE, COMMON = "sex", "Female", "Male"
# Share of women among the people that the model is trained on; None: as in the population.
SHARES = (0.0, 0.05, None)
CLASSIFIERS = {"LR": "logistic regression", "GBT": "gradient-boosted trees"}
METHODS = ("uncalibrated", "platt", "isotonic", "swc", "hybrid")
# Results of another version of the experiment or of the hybrid's recipe do not count.
_VERSION = f"v2-hybrid{VERSIONS['hybrid']}"


def draw(name: str, results: Path, trials: int, progress: Callable[[str], object]) -> DrawnFigure:
    """Draw the Brier score of women and of men against the share of women in training.

    Trials in the results are drawn; those that are missing are run, each kept when it is done.
    """
    path = facts_file(results, name)
    finished = pd.read_csv(path) if path.is_file() else pd.DataFrame({"seed": [], "version": []})
    finished = finished[finished["version"] == _VERSION]
    store = Store(results)
    parts = []
    for seed in range(trials):
        if (finished["seed"] == seed).any():
            parts.append(finished[finished["seed"] == seed])
            continue
        for classifier in CLASSIFIERS:
            for share in SHARES:
                progress(f"shift: trial {seed + 1} of {trials}, {classifier}, {_words(share)}")
                parts.append(_kept_trial(store, classifier, share, seed))
    facts = pd.concat(parts, ignore_index=True)
    return DrawnFigure(_plot(facts), facts)


def shift_trial(classifier: str, share: float | None, seed: int) -> pd.DataFrame:
    """Run one trial.

    Returns
    -------
    DataFrame
        Columns ``classifier``, ``share`` (of women in training), ``seed``, ``method``, ``group``,
        ``items`` (test), ``brier``, ``gap`` (mean predicted minus observed frequency of an income
        over 50K), ``version`` (of the experiment).
    """
    data = load_dataset("adult")
    X, y = pd.DataFrame(data.X), np.searchsorted(data.classes, data.y)
    rare = (X[GROUP] == RARE).to_numpy()
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    test, cal = order[:N_TEST], order[N_TEST : N_TEST + N_CAL]
    train = _biased(order[N_TEST + N_CAL :], rare, share)
    model = make_pipeline(table_encoder(), black_box(classifier)).fit(X.iloc[train], y[train])
    P_cal, P_test = model.predict_proba(X.iloc[cal]), model.predict_proba(X.iloc[test])
    rows = []
    for method in METHODS:
        with warnings.catch_warnings():
            # A few test items have a category that no calibration item has, as in practice.
            warnings.simplefilter("ignore", UnknownCategoryWarning)
            calibrator = get_calibrator(method).fit(X.iloc[cal], y[cal], y_proba=P_cal)
            Q = calibrator.predict_proba(X.iloc[test], y_proba=P_test)
        for group, inside in ((RARE, rare[test]), (COMMON, ~rare[test])):
            rows.append(
                {
                    "classifier": classifier,
                    "share": float(rare[train].mean()),
                    "seed": seed,
                    "method": method,
                    "group": group,
                    "items": int(inside.sum()),
                    "brier": brier_score(y[test][inside], Q[inside], classes=[0, 1]),
                    "gap": float(Q[inside, 1].mean() - y[test][inside].mean()),
                    "version": _VERSION,
                }
            )
    return pd.DataFrame(rows)


def _biased(pool: np.ndarray, rare: np.ndarray, share: float | None) -> np.ndarray:
    """Return the first rows of the pool among which the rare group has the share wanted."""
    if share is None:
        return pool[:N_TRAIN]
    n_rare = round(share * N_TRAIN)
    return np.concatenate([pool[rare[pool]][:n_rare], pool[~rare[pool]][: N_TRAIN - n_rare]])


def _kept_trial(store: Store, classifier: str, share: float | None, seed: int) -> pd.DataFrame:
    """Return a trial's table, from the store's cache where it has been run."""
    key = f"shift/{classifier}-{share}-{seed}-{_VERSION}"
    kept = store.read_arrays(key)
    if kept is None:
        table = shift_trial(classifier, share, seed)
        kept = {str(column): np.array(table[column].tolist()) for column in table}
        store.write_arrays(key, kept)
    return pd.DataFrame(kept)


def _words(share: float | None) -> str:
    return "unbiased" if share is None else f"{share:.0%} women"


def _plot(facts: pd.DataFrame) -> Any:
    plt = require_pyplot("The figure 'shift'")
    figure, axes = plt.subplots(1, len(CLASSIFIERS) * 2, figsize=(14, 4.1), layout="constrained")
    places = {share: place for place, share in enumerate(_levels(facts))}
    for i, (classifier, title) in enumerate(CLASSIFIERS.items()):
        for j, (group, people) in enumerate(((RARE, "women"), (COMMON, "men"))):
            part = facts[(facts["classifier"] == classifier) & (facts["group"] == group)]
            ax = axes[2 * i + j]
            _draw_lines(ax, part, places)
            ax.set_title(f"{title}: {people}", fontsize=11)
            ax.set_xticks(list(places.values()), [f"{share:.0%}" for share in places])
            ax.set_xlabel("women in the training sample")
    _same_limits(axes[::2])
    _same_limits(axes[1::2])
    axes[0].set_ylabel("Brier score")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.suptitle(
        f"adult: trained on {N_TRAIN} people with few or no women, calibrated on {N_CAL} of the "
        f"population (a third women); {facts['seed'].nunique()} trials, one standard error"
    )
    return figure


def _levels(facts: pd.DataFrame) -> list[float]:
    """Return the shares on the axis; the population's differs a little from trial to trial."""
    shares = facts["share"].where(facts["share"] < 0.2, facts["share"][facts["share"] > 0.2].mean())
    return sorted(shares.unique())


def _draw_lines(ax: Any, part: pd.DataFrame, places: dict[float, int]) -> None:
    level = part["share"].map(
        lambda share: places[min(places, key=lambda known: abs(known - share))]
    )
    for method in METHODS:
        mine = part["method"] == method
        found = part[mine].groupby(level[mine])["brier"].agg(["mean", "sem"])
        style = method_style(method)
        ax.errorbar(
            found.index,
            found["mean"],
            yerr=found["sem"].fillna(0),
            color=style.color,
            marker=style.marker,
            markersize=9 if style.marker == "*" else 6,
            linestyle="--" if method == "uncalibrated" else "-",
            label=style.label,
        )
    ax.set_xlim(-0.3, len(places) - 0.7)
    tidy(ax)


def _same_limits(axes: Any) -> None:
    limits = [ax.get_ylim() for ax in axes]
    for ax in axes:
        ax.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))
