"""A week in production: quiet days, then a shift that nobody announced, and who is drifting.

Draws docs/_static/monitor.png: ``python examples/watch_the_support.py [FILE.png]``.
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from hetcal import SimilarityCalibrator, SupportMonitor
from hetcal.plotting import MonitorDisplay

rng = np.random.default_rng(0)


def customers(n, shift=0.0):
    """Return features, labels and regions; from some day on, the south sends older customers."""
    region = rng.choice(["north", "south"], n)
    X = rng.normal(size=(n, 6))
    truth = 1 / (1 + np.exp(-2 * X[:, 0] - np.where(region == "north", 1, -1) * X[:, 1]))
    y = (rng.random(n) < truth).astype(int)
    X[region == "south", 2] += shift
    return X, y, region


X_train, y_train, _ = customers(500)
model = LogisticRegression().fit(X_train, y_train)
X, y, region = customers(1500)
P = model.predict_proba(X)
swc = SimilarityCalibrator().fit(X, y, y_proba=P)
monitor = SupportMonitor(swc).fit(X, y_proba=P, by=region)

for day in range(20):
    new, labels, where = customers(100, shift=4.0 if day >= 12 else 0.0)
    monitor.update(new, y_proba=model.predict_proba(new), by=where, y=labels)

print("first alarm:", monitor.alarm_)
print(monitor.groups().round(2).to_string(index=False))
target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs/_static/monitor.png")
MonitorDisplay.from_monitor(monitor).plot()[0].figure.savefig(target, dpi=100)
