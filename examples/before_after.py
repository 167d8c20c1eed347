"""Reliability before and after calibration, and how much calibration data stands behind it.

A straight line separates two moons badly. Do those items whose predicted class changes have as much
support as the others? Draws docs/_static/before_after.png:
``python examples/before_after.py [FILE.png]``.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.linear_model import LogisticRegression

from hetcal import SimilarityCalibrator
from hetcal.plotting import ReliabilityDisplay, SupportDisplay

X, y = make_moons(3000, noise=0.3, random_state=0)
model = LogisticRegression().fit(X[:500], y[:500])
X_cal, y_cal, X_new, y_new = X[500:1500], y[500:1500], X[1500:], y[1500:]
swc = SimilarityCalibrator().fit(X_cal, y_cal, y_proba=model.predict_proba(X_cal))
P_new = model.predict_proba(X_new)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
ReliabilityDisplay.from_estimator(model, X_new, y_new, n_bins=10, name="before").plot(left)
after = ReliabilityDisplay.from_estimator(swc, X_new, y_new, y_proba=P_new, n_bins=10, name="after")
after.plot(left, marker="s", counts=False)

changed = swc.predict(X_new, y_proba=P_new) != model.predict(X_new)
kinds = np.where(changed, "class changed", "class kept")
support = SupportDisplay.from_estimator(swc, X_new, groups=kinds, y_proba=P_new)
support.plot(right)
target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs/_static/before_after.png")
figure.savefig(target, dpi=80)
