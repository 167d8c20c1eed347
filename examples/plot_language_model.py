"""
Language model: where is it over-confident?
===========================================

A language model answers multiple-choice questions; an API lists the log-probabilities of its
first tokens. How probable is it that an answer is right, and about what does the model only
believe that it knows? Topic and embedding of a question are the features.

Questions and answers are generated here (no model is run): it knows history well, law hardly, and
says the same either way. With your own, keep the code from ``from_logprobs`` on.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.special import log_softmax
from sklearn.decomposition import PCA

import hetcal
from hetcal.plotting import ReliabilityDisplay, SubgroupsDisplay

TOPICS, KNOWN = ["history", "biology", "law"], np.array([1.0, 0.7, 0.15])
PLACES = np.random.default_rng(0).normal(size=(3, 256))


def questions(n, seed):
    """Return topics, embeddings, the right options, and the top tokens of generated answers."""
    rng = np.random.default_rng(seed)
    topic = rng.integers(0, 3, n)
    embedding = (PLACES[topic] + rng.normal(scale=1.5, size=(n, 256))).astype(np.float32)
    right = rng.integers(0, 4, n)
    strength = rng.gamma(4.0, 0.6, n)
    knows = rng.random(n) < KNOWN[topic] * (0.55 + 0.45 * (strength > 2))
    believed = np.where(knows, right, rng.integers(0, 4, n))
    scores = rng.normal(scale=0.5, size=(n, 4))
    scores[np.arange(n), believed] += strength
    logprobs = log_softmax(np.column_stack([scores, np.full(n, -1.0)]), axis=1)
    tokens = [dict(zip([*[" A", " B", " C", " D"], "The"], row, strict=True)) for row in logprobs]
    top = [dict(sorted(row.items(), key=lambda pair: -pair[1])[:3]) for row in tokens]
    return np.array(TOPICS)[topic], embedding, np.array(list("ABCD"))[right], top


topic, embedding, y, tokens = questions(3000, seed=0)
print({token: round(float(value), 2) for token, value in tokens[0].items()}, "right:", y[0])

# %%
# Only the three most probable tokens are known, and one may be no option. ``from_logprobs`` makes
# probabilities of the four options, and ``from_confidence`` of these the probability of being
# right: the letters A to D themselves mean nothing.
_, options, letters = hetcal.from_logprobs(y, tokens)
answer, confidence = letters[options.argmax(axis=1)], options.max(axis=1)
right, P, classes = hetcal.from_confidence(y, answer, confidence)
print(f"mean confidence {confidence.mean():.2f}, right {right.mean():.2f}")

# %%
# An embedding has hundreds of columns; its first principal components hold what items share.
projection = PCA(10, random_state=0).fit(embedding)


def features(topic, embedding):
    """Return the table by which questions are compared."""
    columns = pd.DataFrame(projection.transform(embedding)).add_prefix("e")
    return columns.assign(topic=pd.Categorical(topic, TOPICS))


X = features(topic, embedding)
hybrid = hetcal.HybridCalibrator(n_estimators=100, classes=classes).fit(X, right, y_proba=P)

topic_new, embedding_new, y_new, tokens_new = questions(3000, seed=1)
_, options, _ = hetcal.from_logprobs(None, tokens_new, classes=letters)
answer = letters[options.argmax(axis=1)]
_, P_new, _ = hetcal.from_confidence(None, answer, options.max(axis=1), classes=classes)
after = hybrid.predict_proba(features(topic_new, embedding_new), y_proba=P_new)
right_new = answer == y_new

figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
for ax, title, Q in zip(axes, ("stated confidence", "calibrated"), (P_new, after), strict=True):
    ReliabilityDisplay.from_predictions(right_new, Q, by=topic_new, n_bins=6).plot(ax)
    ax.set_title(title, loc="left")

# %%
# Who is over-confident where, in words. Rings: the stated confidence; dots: how often it was right.
hidden = hetcal.HiddenHeterogeneity(classes=classes).fit(X, right, y_proba=P)
figure, axis = plt.subplots(figsize=(7.5, 3.2), layout="constrained")
SubgroupsDisplay.from_estimator(hidden, X, P, right, by="topic").plot(axis)

# %%
scores = hetcal.evaluate(right_new, {"stated": P_new, "calibrated": after}, baseline="stated")
scores.loc[["brier_score", "log_loss", "accuracy"]].round(3)
