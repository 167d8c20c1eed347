"""Draw the moons figure: what three classifiers say, what they hide, and what repairs it.

Draws moons_map.png. Columns: the probability of the second class as the classifier gives it, after
Platt scaling, hidden heterogeneity at that probability, and the probability after
similarity-weighted calibration.
"""

import sys
from pathlib import Path

from hetcal import get_calibrator
from hetcal.datasets import paper_classifier, paper_split
from hetcal.heterogeneity import HiddenHeterogeneity
from hetcal.plotting import HeterogeneityMapDisplay

NAMES = {"SVM": "linear SVM", "DT": "decision tree", "RF": "random forest"}


def row_of_panels(classifier, split, *, estimate):
    """Return the four panels of one classifier, as functions of points in the plane."""
    P = classifier.predict_proba(split.X_cal)
    platt = get_calibrator("platt", preset="paper").fit(split.X_cal, split.y_cal, y_proba=P)
    swc = get_calibrator("swc", preset="paper").fit(split.X_cal, split.y_cal, y_proba=P)
    hidden = HiddenHeterogeneity(estimate=estimate).fit(split.X_cal, split.y_cal, y_proba=P)
    said = classifier.predict_proba
    return {
        "uncalibrated": lambda G: said(G)[:, 1],
        "Platt": lambda G: platt.predict_proba(G, y_proba=said(G))[:, 1],
        "HH": lambda G: hidden.score_samples(said(G)),
        "SWC": lambda G: swc.predict_proba(G, y_proba=said(G))[:, 1],
    }


def moons_display(*, estimate: str = "paper", resolution: int = 80) -> HeterogeneityMapDisplay:
    """Compute the figure."""
    split = paper_split("moons", seed=0, n_cal=1000)
    rows = {
        title: row_of_panels(
            paper_classifier(name).fit(split.X_train, split.y_train), split, estimate=estimate
        )
        for name, title in NAMES.items()
    }
    return HeterogeneityMapDisplay.from_functions(
        split.X_cal, rows, labels=split.y_cal, resolution=resolution
    )


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("moons_map.png")
    moons_display().plot().savefig(target, dpi=120)
