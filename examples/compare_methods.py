"""Which calibrator for my data? Compare them by cross-validation, and see if more data would help.

A straight line separates two moons badly: at the same probability it is too sure at the tips and
too timid in the middle. Draws a picture: ``python examples/compare_methods.py [FILE.png]``.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.linear_model import LogisticRegression

from hetcal import compare

X, y = make_moons(900, noise=0.3, random_state=0)
model = LogisticRegression().fit(X[:400], y[:400])
X_cal, y_cal = X[400:], y[400:]

comparison = compare(
    X_cal,
    y_cal,
    y_proba=model.predict_proba(X_cal),
    methods=["uncalibrated", "temperature", "isotonic", "swc", "sbaw", "hybrid"],
    baselines=["forest on X", "boosting on [X, P]"],
    learning_curve=["uncalibrated", "temperature", "isotonic", "swc"],
)
print(comparison)
print()
for name in ("temperature", "swc"):
    print(comparison.learning_curve.more_data_helps(name))

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4), layout="constrained")
comparison.plot(ax=left)
comparison.learning_curve.plot(ax=right)
target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs/_static/compare_methods.png")
figure.savefig(target, dpi=100)
