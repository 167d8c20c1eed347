"""One prediction under the lamp: what the classifier said, who voted, and what came of it.

Draws docs/_static/one_prediction.png: ``python examples/one_prediction.py [FILE.png]``.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.linear_model import LogisticRegression

from hetcal import SimilarityCalibrator
from hetcal.similarity import ForestProximity

NOISE = 0.3
COLOURS = {"upper": "#0072B2", "lower": "#D55E00"}
INK = "#333333"

# Two moons, a straight line as classifier, and a thousand items whose outcome is known.
X, codes = make_moons(1500, noise=NOISE, random_state=0)
y = np.array(["upper", "lower"])[codes]
model = LogisticRegression().fit(X[:500], y[:500])
X_cal, y_cal = X[500:], y[500:]
# Out-of-bag voters: no weight depends on its owner's label, so the interval is this vote's own.
swc = SimilarityCalibrator(ForestProximity(voters="out-of-bag"), classes=model.classes_)
swc.fit(X_cal, y_cal, y_proba=model.predict_proba(X_cal))

# One new item, at the tip of the lower moon and on the wrong side of the line.
item = np.array([[-0.05, 0.42]])
p = model.predict_proba(item)
q, support = swc.predict_proba(item, y_proba=p, return_support=True)
low, high = swc.predict_smoothed_interval(item, y_proba=p)
voters = swc.evidence(item, y_proba=p, top=len(y_cal))
effective = swc.effective_sample_size(item, y_proba=p)[0]

lower = list(swc.classes_).index("lower")
p_lower, q_lower = p[0, lower], q[0, lower]
print(f"the classifier says  P(lower) = {p_lower:.2f}")
print(f"similar items say    P(lower) = {q_lower:.2f}   (95 % interval of the vote ", end="")
print(f"{low[0, lower]:.2f} to {high[0, lower]:.2f})")
print(f"support {support[0]:.1f}: {len(voters)} voters, worth {effective:.0f} equal votes\n")
print(voters.head(8).round(3).to_string(index=False))


def true_probability(point):
    """P(lower | x), from the arcs and the noise that the moons are drawn with."""
    arcs, moon = make_moons(4000, noise=None)
    density = np.exp(-((point - arcs) ** 2).sum(axis=1) / (2 * NOISE**2))
    return density[moon == 1].sum() / density.sum()


def draw_plane(axes):
    """Draw the calibration items, those that voted sized by their similarity."""
    for label, colour in COLOURS.items():
        axes.scatter(
            *X_cal[y_cal == label].T, s=7, color=colour, alpha=0.22, linewidths=0, zorder=1
        )
        own = voters[voters["label"] == label]
        axes.scatter(
            *X_cal[own["calibration_item"]].T,
            s=10 + 230 * own["similarity"] ** 1.3,
            color=colour,
            alpha=0.8,
            edgecolors="white",
            linewidths=0.7,
            zorder=2,
        )
        where = (0.1, 1.62) if label == "upper" else (1.0, -1.1)
        axes.text(*where, label, color=colour, ha="center", fontsize=12, weight="bold")
    axes.scatter(*item.T, marker="*", s=210, color="#F0E442", edgecolors=INK, zorder=4)
    xs = np.array([-1.9, 2.9])
    slope = -model.coef_[0, 0] / model.coef_[0, 1]
    axes.plot(xs, slope * xs - model.intercept_[0] / model.coef_[0, 1], "--", color=INK, lw=1)
    axes.annotate("the classifier's line", (2.0, 1.12), color=INK, fontsize=9, ha="center")
    axes.annotate(
        "the new item",
        item[0],
        (-1.4, 1.5),
        color=INK,
        fontsize=10,
        ha="center",
        arrowprops={"arrowstyle": "-", "color": INK, "lw": 0.8, "shrinkB": 8},
    )
    axes.set(xlim=(-1.9, 2.9), ylim=(-1.35, 1.85), aspect="equal", xticks=[], yticks=[])
    axes.set_title(
        f"{len(voters)} of {len(y_cal)} calibration items vote: the larger, the more similar",
        fontsize=10.5,
        color=INK,
    )
    axes.spines[:].set_visible(False)


def draw_scale(axes):
    """Draw p, q with its interval, and the truth on one scale."""
    rows = {
        "classifier": (p_lower, INK, None),
        "similar items": (q_lower, COLOURS["lower"], (low[0, lower], high[0, lower])),
        "truth": (true_probability(item[0]), "#009E73", None),
    }
    for place, (name, (value, colour, interval)) in enumerate(rows.items()):
        axes.hlines(-place, 0, 1, color="#EEEEEE", lw=9, zorder=0, capstyle="round")
        if interval:
            axes.hlines(-place, *interval, color=colour, alpha=0.35, lw=9, capstyle="round")
        axes.scatter(value, -place, s=95, color=colour, zorder=3, linewidths=0)
        axes.text(0, -place + 0.3, name, color=INK, fontsize=10.5)
        axes.text(
            1, -place + 0.3, f"{value:.2f}", color=colour, fontsize=12, weight="bold", ha="right"
        )
    axes.text(
        0,
        -2.75,
        f"support {support[0]:.1f}, worth {effective:.0f} equal votes",
        color=INK,
        fontsize=10,
    )
    axes.set(xlim=(-0.04, 1.04), ylim=(-3, 0.75), xticks=[], yticks=[])
    axes.set_title("P(lower) of the new item", fontsize=10.5, color=INK)
    axes.spines[:].set_visible(False)


figure, (plane, scale) = plt.subplots(
    1, 2, figsize=(9.2, 4.1), width_ratios=(1.75, 1), layout="constrained"
)
draw_plane(plane)
draw_scale(scale)
target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs/_static/one_prediction.png")
figure.savefig(target, dpi=100)
