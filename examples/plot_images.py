"""
Images: which pictures speak against the net's answer?
======================================================

A small neural net reads handwritten digits. Its hidden layer is a space in which pictures that the
net finds alike lie close together: a good place to ask what came of similar pictures. The votes of
calibration pictures are a probability, and they can be looked at.

The data are scikit-learn's digits, 1797 pictures of 8 x 8, with some noise.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import hetcal
from hetcal.plotting import ReliabilityDisplay

X, y = load_digits(return_X_y=True)
X = np.clip(X + np.random.default_rng(0).normal(scale=2.5, size=X.shape), 0, 16)
X_train, X_rest, y_train, y_rest = train_test_split(X, y, train_size=400, random_state=0)
X_cal, X_new, y_cal, y_new = train_test_split(X_rest, y_rest, train_size=600, random_state=0)
net = MLPClassifier(8, max_iter=2000, alpha=0, random_state=0).fit(X_train / 16, y_train)


def latent(pictures):
    """Return what the hidden layer of the net makes of pictures."""
    return np.maximum(pictures / 16 @ net.coefs_[0] + net.intercepts_[0], 0)


P_cal, P_new = net.predict_proba(X_cal / 16), net.predict_proba(X_new / 16)
voters = hetcal.SimilarityCalibrator(random_state=0).fit(latent(X_cal), y_cal, y_proba=P_cal)

# %%
# Where net and voters disagree, and the net was sure: the picture, and the calibration pictures
# with the most votes, each with its label.
Q_new = voters.predict_proba(latent(X_new), y_proba=P_new)
disagree = Q_new.argmax(axis=1) != P_new.argmax(axis=1)
chosen = np.flatnonzero(disagree)[np.argsort(-P_new[disagree].max(axis=1))[:4]]

figure, axes = plt.subplots(4, 9, figsize=(9.5, 5.2), layout="constrained")
for row, item in zip(axes, chosen, strict=True):
    one = voters.evidence(latent(X_new[[item]]), y_proba=P_new[[item]], top=8)
    pictures = [X_new[item], *X_cal[one["calibration_item"]]]
    said, now = P_new[item].argmax(), Q_new[item].argmax()
    titles = [f"net {said}, voters {now}", *map(str, one["label"])]
    for ax, picture, title in zip(row, pictures, titles, strict=True):
        ax.imshow(picture.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        ax.set_title(title, fontsize=8.5)
        ax.set_xticks([])
        ax.set_yticks([])
    row[0].set_ylabel(f"truth: {y_new[item]}", fontsize=9)
    for side in row[0].spines.values():
        side.set(color="#D55E00", linewidth=2)

# %%
# The same for all new pictures: how often the predicted digit is right, as net and votes say.
figure, axis = plt.subplots(figsize=(5, 4.6), layout="constrained")
both = {"net": P_new, "votes": Q_new}
ReliabilityDisplay.from_predictions(y_new, both, n_bins=8).plot(axis)

# %%
scores = hetcal.evaluate(y_new, both, baseline="net", n_bootstrap=100)
scores.loc[["log_loss", "brier_score", "accuracy"]].round(3)
