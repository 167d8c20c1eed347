"""
Credit: whose risk does my scorecard get wrong?
===============================================

A scorecard may be right on average and wrong for every kind of customer. Here is how to find out
for whom, by name, and how to repair it without touching the scorecard. The table has categories
and missing values, as such tables do; it is generated, so that the truth is known.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import hetcal
from hetcal.plotting import ReliabilityDisplay, SubgroupsDisplay


def customers(n, seed):
    """Return generated customers, and who of them did not pay."""
    rng = np.random.default_rng(seed)
    contract = rng.choice(["permanent", "temporary", "self-employed"], n, p=[0.6, 0.25, 0.15])
    months = rng.integers(6, 73, n)
    income = np.exp(rng.normal(7.8, 0.4, n))
    risk = -1.6 - 1.2 * (np.log(income) - 7.8) + 0.01 * (months - 36)
    # Risks that the average hides: long loans to those on temporary contracts, and the
    # self-employed who do not tell their income.
    unknown = rng.random(n) < np.where(contract == "self-employed", 0.5, 0.1)
    risk += np.where((contract == "temporary") & (months > 48), 1.8, 0.0)
    risk += np.where((contract == "self-employed") & unknown, 1.3, 0.0)
    table = pd.DataFrame({"contract": contract, "months": months, "income": income})
    table["income"] = table["income"].mask(unknown).round(-1)
    return table, np.where(rng.random(n) < expit(risk), "unpaid", "paid")


# %%
# The scorecard knows income and length of the loan. Customers that came later, with known outcome,
# say how good its probabilities are; of them the kind of contract is known too.
KNOWN = ["months", "income"]
scorecard = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression())
X_past, y_past = customers(3000, seed=0)
scorecard.fit(X_past[KNOWN], y_past)

X, y = customers(3000, seed=1)
y_proba = scorecard.predict_proba(X[KNOWN])
hidden = hetcal.HiddenHeterogeneity().fit(X, y, y_proba=y_proba)
print(f"p-value of 'nothing is hidden': {hidden.p_value_:.2g}")

# %%
# On average (left) there is nothing to complain about. The names of those whom the average hides
# (right): a ring is what the scorecard said, a dot what happened. Blue groups are those that no
# global map of the probability repairs.
figure, (left, right) = plt.subplots(
    1, 2, figsize=(11, 4.4), layout="constrained", width_ratios=(1.2, 1)
)
average = ReliabilityDisplay.from_predictions(y, y_proba, pos_label="unpaid", n_bins=10)
average.plot(left, name="scorecard")
SubgroupsDisplay.from_estimator(hidden, X, y_proba, y).plot(right, most=8)

# %%
# The hybrid takes the table as it is and repairs the probabilities item by item. What it brings
# is judged on customers that neither has seen.
hybrid = hetcal.HybridCalibrator(n_estimators=100).fit(X, y, y_proba=y_proba)
X_new, y_new = customers(3000, seed=2)
before = scorecard.predict_proba(X_new[KNOWN])
after = hybrid.predict_proba(X_new, y_proba=before)
scores = hetcal.evaluate(y_new, {"before": before, "after": after}, baseline="before")
scores.loc[["brier_score", "log_loss"]].round(4)

# %%
# Temporary contracts by length of the loan, before and after:

# sphinx_gallery_thumbnail_number = 2
temporary = X_new["contract"] == "temporary"
length = np.where(X_new["months"] > 48, "over 4 years", "up to 4 years")
figure, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
for ax, title, P in zip(axes, ("scorecard", "calibrated"), (before, after), strict=True):
    display = ReliabilityDisplay.from_predictions(
        y_new[temporary], P[temporary], pos_label="unpaid", by=length[temporary], n_bins=6
    )
    display.plot(ax)
    ax.set_title(f"temporary contracts, {title}", loc="left")
