"""
Medicine: can I trust a stated 99 %?
====================================

Doctors and naive Bayes classifiers share a habit: with several findings that point the same way
they become far too sure, because they count the same evidence more than once. How often is a stated
99 % wrong? Does a map of the probability repair it, or does it matter which patient it is?

The data are scikit-learn's breast cancer biopsies (569 patients, Wisconsin).
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

import hetcal
from hetcal.plotting import ReliabilityDisplay

data = load_breast_cancer(as_frame=True)
X, y = data.data, data.target_names[data.target]
X_train, X_rest, y_train, y_rest = train_test_split(X, y, train_size=150, random_state=0)
X_cal, X_new, y_cal, y_new = train_test_split(X_rest, y_rest, train_size=220, random_state=0)
model = GaussianNB().fit(X_train, y_train)
said, said_new = model.predict_proba(X_cal), model.predict_proba(X_new)

# %%
# How often the model says "more than 99 %" to either side, and how often it is then wrong:
sure = said_new.max(axis=1) > 0.99
wrong = model.predict(X_new) != y_new
print(f"{sure.sum()} of {len(sure)} patients, {wrong[sure].sum()} of them wrong")

# %%
# What to do about it? The advice weighs a map of the probability alone against a repair that looks
# at the patient, and says how sure it can be with so few of them.
advice = hetcal.advise(X_cal, y_cal, y_proba=said)
print(advice)

# %%
# Both ways. The hybrid adds a warning: these 220 patients know as much as the model, which has seen
# 150; in the long run, a model trained on all of them is the better repair.
beta = hetcal.BetaCalibration().fit(None, y_cal, y_proba=said)
with warnings.catch_warnings(record=True) as warned:
    hybrid = hetcal.HybridCalibrator().fit(X_cal, y_cal, y_proba=said)
for warning in warned:
    print(warning.message)

# %%
# On patients that nobody has learned from: the probability that the more probable answer is right,
# as it was stated and as it turned out.
probabilities = {
    "naive Bayes": said_new,
    "beta calibration": beta.predict_proba(y_proba=said_new),
    "hybrid": hybrid.predict_proba(X_new, y_proba=said_new),
}
figure, axes = plt.subplots(1, 3, figsize=(11, 4), layout="constrained", sharey=True)
for ax, (name, P) in zip(axes, probabilities.items(), strict=True):
    right = model.classes_[P.argmax(axis=1)] == y_new
    display = ReliabilityDisplay.from_predictions(right, P.max(axis=1), n_bins=4)
    display.plot(ax, name=name, counts=False)
    ax.set(xlim=(0.58, 1.01), ylim=(0.58, 1.01), xlabel="stated probability")
    ax.set_ylabel("share of right answers")
    ax.label_outer()

# %%
scores = hetcal.evaluate(y_new, probabilities, baseline="naive Bayes")
scores.loc[["log_loss", "brier_score", "accuracy"]].round(3)
