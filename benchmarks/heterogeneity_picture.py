"""Draw one case where a fixed global map is mistaken for heterogeneity and a saturated one is not.

The black box is a decision tree of sixteen leaves, each wrong in its own way: P(y | x) = h(p)
exactly. Left: h, and the curve of five hinges per log-odds that tests of hidden heterogeneity
used to take for it. Right: p-values of one learner's test of what that curve leaves, and of
`heterogeneity_test`, over the same draws. Usage::

    python benchmarks/heterogeneity_picture.py PNG
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from hetcal.datasets import make_problem
from heterogeneity_rivals import boosting, functions_of_p, new

N, DRAWS, PROBLEM = 1000, 40, "tree-black-box"


def five_hinges(data) -> np.ndarray:
    """Probability of the second class by a logistic regression on five hinges."""
    B = functions_of_p(data.y_proba)
    return LogisticRegression(C=10, max_iter=300).fit(B, data.y).predict_proba(B)[:, 1]


def p_values(test) -> np.ndarray:
    """p-values over the draws, sorted."""
    found = []
    for seed in range(DRAWS):
        data = make_problem(PROBLEM, N, seed)
        found.append(test(data.X, data.y, data.y_proba, None, None, 0)["p"])
    return np.sort(found)


def draw(target: str) -> None:
    data = make_problem(PROBLEM, 5000, 0)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    order = np.argsort(data.y_proba[:, 1])
    p = data.y_proba[order, 1]
    left.plot(p, data.true_proba[order, 1], "o", label="P(y | p), one value per leaf")
    left.plot(p, five_hinges(data)[order], label="best curve of five hinges")
    left.set(xlabel="p, what the tree says", ylabel="probability of the class", ylim=(0, 1))
    left.legend()
    for test, name in ((boosting, "five hinges, boosted trees"), (new, "heterogeneity_test")):
        values = p_values(test)
        share = np.mean(values <= 0.05)
        right.step(values, np.arange(1, DRAWS + 1) / DRAWS, where="post",
                   label=f"{name}: {share:.0%} at 5 %")  # fmt: skip
    right.plot([0, 1], [0, 1], ":", color="grey", label="what a valid test gives")
    right.set(xlabel="p-value", ylabel=f"share of {DRAWS} draws, n = {N}", xlim=(0, 1), ylim=(0, 1))
    right.legend(loc="lower right")
    figure.savefig(target, dpi=120)


if __name__ == "__main__":
    draw(sys.argv[1])
