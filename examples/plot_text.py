"""
Text: is my classifier wrong about some topics?
===============================================

A classifier of short texts says how probably a customer complains. It sees words, not topics, and
has no ear for irony. The features are a sparse matrix of word weights: the test of hidden
heterogeneity takes it as it is, and calibrators take its projection to a few columns.

The texts are generated: in reviews of *parcels* the praise is often ironic.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.naive_bayes import MultinomialNB

import hetcal
from hetcal.plotting import ReliabilityDisplay

WORDS = {
    "parcels": ["parcel", "courier", "doorstep", "box", "tracking", "depot", "van"],
    "phones": ["phone", "screen", "battery", "charger", "camera", "signal", "app"],
    "hotels": ["room", "breakfast", "lobby", "pool", "towel", "bed", "reception"],
}
PRAISE = ["great", "lovely", "perfect", "wonderful", "brilliant", "thanks", "excellent", "happy"]
BLAME = ["broken", "late", "awful", "dirty", "never", "refund", "useless", "angry"]


def reviews(n, seed):
    """Return generated texts, whether each is a complaint, and its topic."""
    rng = np.random.default_rng(seed)
    topic = rng.choice(list(WORDS), n)
    complaint = rng.random(n) < 0.5
    ironic = complaint & (topic == "parcels") & (rng.random(n) < 0.45)
    texts = []
    for i in range(n):
        share = 0.25 if complaint[i] and not ironic[i] else 0.75
        tone = [rng.choice(PRAISE if rng.random() < share else BLAME) for _ in range(4)]
        texts.append(" ".join([*rng.choice(WORDS[topic[i]], 5), *tone]))
    return texts, np.where(complaint, "complaint", "praise"), topic


texts, labels, _ = reviews(1500, seed=0)
words = TfidfVectorizer().fit(texts)
model = MultinomialNB().fit(words.transform(texts), labels)

texts, y, topic = reviews(2500, seed=1)
X = words.transform(texts)
y_proba = model.predict_proba(X)
print(f"{type(X).__name__} of {X.shape[0]} x {X.shape[1]}, {X.nnz / np.prod(X.shape):.0%} filled")

# %%
# Is there anything in the words that the probability does not say? The test takes the sparse
# matrix; no dense copy is made.
hidden = hetcal.HiddenHeterogeneity().fit(X, y, y_proba=y_proba)
print(f"p-value {hidden.p_value_:.2g}")

# %%
# Forests and boosting need dense columns. Twenty directions of a truncated SVD keep topics and
# tone apart; it is fitted once, without labels, and used for new texts as well.
projection = TruncatedSVD(20, random_state=0).fit(X)
hybrid = hetcal.HybridCalibrator(n_estimators=100)
hybrid.fit(projection.transform(X), y, y_proba=y_proba)

texts_new, y_new, topic_new = reviews(2500, seed=2)
Z_new = words.transform(texts_new)
before = model.predict_proba(Z_new)
after = hybrid.predict_proba(projection.transform(Z_new), y_proba=before)

figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
for ax, title, P in zip(
    axes, ("as the classifier says", "calibrated"), (before, after), strict=True
):
    display = ReliabilityDisplay.from_predictions(
        y_new, P, pos_label="complaint", by=topic_new, n_bins=6
    )
    display.plot(ax)
    ax.set_title(title, loc="left")

# %%
# The classifier knew no topics, and the calibrator was not told any: it found them in the words.
scores = hetcal.evaluate(y_new, {"before": before, "after": after}, baseline="before")
scores.loc[["brier_score", "log_loss", "accuracy"]].round(3)
