"""
In deployment: when should I stop trusting the model?
=====================================================

A model was trained, calibrated and put to work. Some day the customers change, and nobody says so.
A monitor watches, without labels, whether new customers are still like those of the calibration
data, raises an alarm with a known rate of false ones, and says who has changed and in what. The
customers are generated: from the thirteenth day on, those of the south are older.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from hetcal import SimilarityCalibrator, SupportMonitor
from hetcal.plotting import MonitorDisplay

NAMES = ["income", "debt", "age", "children", "distance", "visits"]
rng = np.random.default_rng(0)


def customers(n, shift=0.0):
    """Return features (standardised), labels and regions."""
    region = rng.choice(["north", "south"], n)
    X = rng.normal(size=(n, 6))
    truth = 1 / (1 + np.exp(-2 * X[:, 0] - np.where(region == "north", 1, -1) * X[:, 1]))
    y = (rng.random(n) < truth).astype(int)
    X[region == "south", 2] += shift
    return pd.DataFrame(X, columns=NAMES), y, region


X_train, y_train, _ = customers(500)
model = LogisticRegression().fit(X_train, y_train)
X, y, region = customers(1500)
P = model.predict_proba(X)
swc = SimilarityCalibrator().fit(X, y, y_proba=P)
monitor = SupportMonitor(swc).fit(X, y_proba=P, by=region)

# %%
# Twenty days of a hundred customers each. Above, the evidence of a shift: it crosses the dashed
# line by chance in at most one of a hundred streams in which nothing changes (``alarm_rate``).
# Below, the share of customers whom the calibration data hardly know.
expected, observed = [], []
for day in range(20):
    new, labels, where = customers(100, shift=4.0 if day >= 12 else 0.0)
    P_new = model.predict_proba(new)
    monitor.update(new, y_proba=P_new, by=where, y=labels)
    expected.append(monitor.expected_performance(new, y_proba=P_new).accuracy)
    observed.append(np.mean(swc.predict(new, y_proba=P_new) == labels))
MonitorDisplay.from_monitor(monitor).plot()
print(monitor.alarm_)

# %%
# Who has changed? Regions and predicted classes have evidence of their own.
monitor.groups()[["kind", "name", "seen", "flagged", "log10_evidence"]].round(2)

# %%
# And in what? The share of unusual customers who become usual when one feature gets a usual value.
monitor.what_changed(new, X, y_proba=P_new).round(2)

# %%
# The accuracy to expect, day by day, from probabilities alone, and what labels showed later. It
# holds as long as labels depend on customers as they used to, which is so here.
figure, axis = plt.subplots(figsize=(7, 3.4), layout="constrained")
days = np.arange(1, 21)
axis.fill_between(
    days, [a.low for a in expected], [a.high for a in expected], color="#0072B2", alpha=0.15
)
axis.plot(days, [a.value for a in expected], color="#0072B2", label="expected, 95 % interval")
axis.plot(days, observed, "o", color="#333333", markersize=4, label="observed later")
axis.axvline(12.5, color="#D55E00", linewidth=1)
axis.text(12.6, 0.52, "the south becomes older", color="#D55E00", fontsize=9)
axis.set(xlabel="day", ylabel="accuracy", ylim=(0.5, 1), xticks=days[1::2])
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False, loc="lower left")
