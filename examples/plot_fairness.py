"""
Fairness: do the probabilities mean the same for every group?
=============================================================

A probability of 30 % should mean 30 %, whoever it is about. Measured group by group, small groups
look bad by chance alone: of ten groups the worst is never perfect. So the question needs bounds
that hold for all groups together, for the worst of them, and for the largest gap between two. The
applicants are generated; the model is right for four regions and too low for the fifth.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.special import expit, logit

import hetcal
from hetcal.plotting import ReliabilityDisplay

REGIONS = ["centre", "east", "north", "south", "west"]


def applicants(n, seed):
    """Return generated applicants, their outcome and a model's probability of it."""
    rng = np.random.default_rng(seed)
    region = rng.choice(REGIONS, n, p=[0.35, 0.25, 0.2, 0.15, 0.05])
    sex = rng.choice(["female", "male"], n)
    p = expit(rng.normal(-0.5, 1.0, n))
    truth = np.where(region == "south", expit(logit(p) + 0.8), p)
    table = pd.DataFrame({"region": region, "sex": sex})
    return table, (rng.random(n) < truth).astype(int), p


people, y, p = applicants(3000, seed=0)
table = hetcal.evaluate(y, p, groups_by=people)
table.loc["observed_minus_predicted"].round(3)

# %%
# How often it happened minus how probable it was said to be, group by group. The intervals hold
# for all groups of both columns at once.
groups = table.loc["observed_minus_predicted"].query("part == 'group'").iloc[::-1]
figure, axis = plt.subplots(figsize=(7, 3.6), layout="constrained")
clear = (groups["low"] > 0) | (groups["high"] < 0)
colours = np.where(clear, "#D55E00", "#0072B2")
axis.hlines(range(len(groups)), groups["low"], groups["high"], color=colours, linewidth=2)
axis.scatter(groups["value"], range(len(groups)), color=colours, zorder=3)
axis.axvline(0, color="#333333", linewidth=0.8)
labels = [f"{by}: {group} ({n:,})" for by, group, n in groups[["by", "group", "n"]].to_numpy()]
axis.set(yticks=range(len(groups)), yticklabels=labels, xlabel="observed minus predicted")
axis.spines[["top", "right", "left"]].set_visible(False)
axis.tick_params(left=False)

# %%
# The west has so few applicants that little could have been found there: the smallest error that
# would be noticed in four of five samples of this size.
table.loc["minimum_detectable_error"].query("by == 'region' and part == 'group'").round(3)

# %%
# One probability, two meanings. A global map would move both curves together; the hybrid may look
# at the region, so it can move one.
hybrid = hetcal.HybridCalibrator(n_estimators=100).fit(people, y, y_proba=p)
people_new, y_new, p_new = applicants(3000, seed=1)
q_new = hybrid.predict_proba(people_new, y_proba=p_new)[:, 1]
south = np.where(people_new["region"] == "south", "south", "elsewhere")
figure, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
for ax, title, P in zip(axes, ("before", "after"), (p_new, q_new), strict=True):
    ReliabilityDisplay.from_predictions(y_new, P, by=south, n_bins=8).plot(ax)
    ax.set_title(title, loc="left")

# %%
# The worst group and the largest gap on new applicants, before and after:
parts = []
for name, P in (("before", p_new), ("after", q_new)):
    found = hetcal.evaluate(y_new, P, groups_by=people_new["region"])
    parts.append(found.loc["observed_minus_predicted"].query("part != 'group'").assign(what=name))
pd.concat(parts).set_index("what")[["part", "group", "value", "low", "high"]].round(3)
