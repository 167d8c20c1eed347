"""How often `predict_smoothed_interval` covers what it claims, where P(y | x) is known.

    python benchmarks/interval_coverage.py            # the table of the user guide
    python benchmarks/interval_coverage.py --trials 3

Two targets: the similarity-smoothed probability, sum_i s(t, i) P(y | x_i) / sum_i s(t, i), which
the interval is for, and P(y | x) of the item itself, which it does not promise. "In bag" is the
interval that one would get with the weights of all trees: they depend on the voters' own labels.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
import pandas as pd

from hetcal import SimilarityCalibrator
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.kernels.intervals import wilson_interval

N_TEST = 300


@dataclass(frozen=True)
class Setting:
    """One law, one number of calibration items, one seed."""

    n_classes: int
    n_cal: int
    heterogeneity: float = 0.5
    signal: float = 3.0
    seed: int = 0


def coverage(setting: Setting, confidence: float = 0.95, **calibrator) -> dict[str, float]:
    """Return the share of (item, class) pairs whose interval holds each target, and its width."""
    cal = make_hidden_heterogeneity(
        setting.n_cal,
        n_classes=setting.n_classes,
        heterogeneity=setting.heterogeneity,
        signal=setting.signal,
        random_state=setting.seed,
    )
    new = cal.sample(N_TEST, random_state=10_000 + setting.seed)
    swc = SimilarityCalibrator(classes=cal.classes, **calibrator)
    swc.fit(cal.X, cal.y, y_proba=cal.y_proba)
    Z = swc.space_.transform(new.X, swc._new_scores(new.X, new.y_proba, None))
    out_of_bag = swc.similarity_.unbiased_pairwise(Z)
    in_bag = swc.similarity_.pairwise(Z)
    one_hot = (cal.y[:, None] == cal.classes).astype(float)

    low, high = swc.predict_smoothed_interval(new.X, y_proba=new.y_proba, confidence=confidence)
    naive_low, naive_high = wilson_interval(
        _average(in_bag, one_hot), _effective_size(in_bag)[:, None], confidence
    )
    target = _average(out_of_bag, cal.true_proba)
    return {
        "target": _share_inside(target, low, high),
        "truth": _share_inside(new.true_proba, low, high),
        "width": float((high - low).mean()),
        "in bag: target": _share_inside(_average(in_bag, cal.true_proba), naive_low, naive_high),
        "in bag: truth": _share_inside(new.true_proba, naive_low, naive_high),
    }


def _average(S: np.ndarray, values: np.ndarray) -> np.ndarray:
    return S @ values / S.sum(axis=1, keepdims=True)


def _effective_size(S: np.ndarray) -> np.ndarray:
    return S.sum(axis=1) ** 2 / (S**2).sum(axis=1)


def _share_inside(value: np.ndarray, low: np.ndarray, high: np.ndarray) -> float:
    return float(((low <= value + 1e-12) & (value - 1e-12 <= high)).mean())


def table(n_trials: int) -> pd.DataFrame:
    """Return the mean over trials of every setting."""
    rows = []
    for n_classes in (2, 4):
        for n_cal in (300, 1000, 3000):
            trials = [coverage(Setting(n_classes, n_cal, seed=seed)) for seed in range(n_trials)]
            mean = pd.DataFrame(trials).mean().to_dict()
            rows.append({"classes": n_classes, "calibration items": n_cal, **mean})
    return pd.DataFrame(rows)


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=20)
    found = table(parser.parse_args().trials)
    head = [str(name) for name in found.columns]
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in found.itertuples(index=False):
        cells = [str(int(v)) for v in row[:2]] + [f"{v:.3f}" for v in row[2:]]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
