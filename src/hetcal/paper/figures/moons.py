"""Figure 3: what three classifiers say about the moons, what they hide, and what repairs it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from hetcal.calibration import get_calibrator
from hetcal.datasets import PaperSplit, paper_classifier, paper_split
from hetcal.heterogeneity import HiddenHeterogeneity
from hetcal.metrics import brier_score
from hetcal.paper.figures import DrawnFigure
from hetcal.plotting import HeterogeneityMapDisplay

NAMES = {"SVM": "linear SVM", "DT": "decision tree", "RF": "random forest"}
_RESOLUTION = 80


def draw(name: str, results: Path, trials: int, progress: Callable[[str], object]) -> DrawnFigure:
    """Draw three rows (classifiers) of four panels, with Brier scores and mean HH in the titles."""
    split = paper_split("moons", seed=0, n_cal=1000)
    rows, facts = {}, []
    for short, title in NAMES.items():
        progress(f"moons: {title}")
        panels, fact = row_of_panels(split, short)
        rows[title] = panels
        facts.append({"classifier": short} | fact)
    display = HeterogeneityMapDisplay.from_functions(
        split.X_cal, rows, labels=split.y_cal, resolution=_RESOLUTION, hh_panels=("HH",)
    )
    table = pd.DataFrame(facts)
    return DrawnFigure(_with_scores(display.plot(size=2.6), table), table)


def row_of_panels(split: PaperSplit, short: str) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the four panels of one classifier as functions of the plane, and the scores."""
    classifier = paper_classifier(short).fit(split.X_train, split.y_train)
    predict = classifier.predict_proba
    P, P_test = predict(split.X_cal), predict(split.X_test)
    maps = {
        name: get_calibrator(name, preset="paper").fit(split.X_cal, split.y_cal, y_proba=P)
        for name in ("platt", "swc")
    }
    hidden = HiddenHeterogeneity(estimate="paper").fit(split.X_cal, split.y_cal, y_proba=P)
    out_of_sample = HiddenHeterogeneity().fit(split.X_cal, split.y_cal, y_proba=P)
    panels = {
        "uncalibrated": lambda G: predict(G)[:, 1],
        "Platt": lambda G: maps["platt"].predict_proba(G, y_proba=predict(G))[:, 1],
        "HH": lambda G: hidden.score_samples(predict(G)),
        "SWC": lambda G: maps["swc"].predict_proba(G, y_proba=predict(G))[:, 1],
    }
    calibrated = {
        name: brier_score(split.y_test, one.predict_proba(split.X_test, y_proba=P_test))
        for name, one in maps.items()
    }
    facts = {
        "uncalibrated": brier_score(split.y_test, P_test),
        **calibrated,
        "hh": float(hidden.score_samples(P_test).mean()),
        "hh_out_of_sample": out_of_sample.hh_mean_,
        "hh_out_of_sample_local": out_of_sample.hh_local_mean_,
    }
    return panels, {key: float(value) for key, value in facts.items()}


def _with_scores(figure: Any, facts: pd.DataFrame) -> Any:
    """Write under each panel's name what it scores on the test items."""
    n_rows = len(facts)
    panels = figure.axes[: 4 * n_rows]
    columns = ["uncalibrated", "platt", "hh", "swc"]
    titles = ["uncalibrated", "Platt scaling", "hidden heterogeneity", "SWC"]
    for number, ax in enumerate(panels):
        row, column = divmod(number, 4)
        value = facts[columns[column]].iloc[row]
        score = f"{'mean' if columns[column] == 'hh' else 'Brier'} {value:.3f}"
        ax.set_title(f"{titles[column]}\n{score}" if row == 0 else score, fontsize=10)
    figure.suptitle(
        "Where the probabilities hide two kinds of items (HH), SWC changes them most", fontsize=12
    )
    return figure
