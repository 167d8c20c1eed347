"""Reliability diagrams of several models and groups, per class, with bands for whole curves.

Above, a model of three classes that is too sure of itself, and the truth. Below, probabilities that
are right for one group and too high for the other, which the average hides in part. Draws
docs/_static/reliability.png: ``python examples/reliability.py [FILE.png]``.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit, logit

from hetcal.plotting import ReliabilityDisplay

rng = np.random.default_rng(0)
right = rng.dirichlet([1.0, 1.5, 0.5], 4000)
y = np.array(["cat", "dog", "fox"])[(rng.random((4000, 1)) > right.cumsum(axis=1)).sum(axis=1)]
sharp = right**2 / (right**2).sum(axis=1, keepdims=True)  # as an overfitted model would say

figure, axes = plt.subplots(2, 3, figsize=(12, 8.2), layout="constrained")
models = {"before": sharp, "after": right}
per_class = ReliabilityDisplay.from_predictions(y, models, per_class=True, n_bins=10)
per_class.plot(axes[0], band="simultaneous")

p = right[:, 1]
group = rng.choice(["north", "south"], size=4000, p=[0.7, 0.3])
happened = rng.random(4000) < np.where(group == "south", expit(logit(p) - 0.6), p)
overlaid = ReliabilityDisplay.from_predictions(happened, p, by=group, n_bins=10)
overlaid.plot(axes[1, 0])
smooth = ReliabilityDisplay.from_predictions(happened, p, by=group, curve="smooth")
smooth.plot(axes[1, 1], band="simultaneous")
everyone = ReliabilityDisplay.from_predictions(happened, p, curve="smooth", name="everyone")
everyone.plot(axes[1, 2], band="simultaneous")

for ax, title in zip(axes[1], ("groups, in bins", "groups, smooth", "all together"), strict=True):
    ax.set_title(title, loc="left")
target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs/_static/reliability.png")
figure.savefig(target, dpi=80)
