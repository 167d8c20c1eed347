"""At which probability is something hidden, and for whom? Two displays on census income.

A small forest is trained on 3000 people of `adult`; 4000 others tell what it hides. Draws
docs/_static/adult_displays.png: ``python examples/adult_displays.py [FILE.png]``.

Needs the `adult` data: from the folder that the environment variable HETCAL_DATA names, or
downloaded.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from hetcal.datasets import load_dataset
from hetcal.plotting import HeterogeneityCurveDisplay, SubgroupsDisplay


def main() -> None:
    """Fit, measure and draw."""
    data = load_dataset("adult")
    X_train, X_rest, y_train, y_rest = train_test_split(
        data.X, data.y, train_size=3000, random_state=0
    )
    X, y = X_rest[:4000], y_rest[:4000]
    encoded = pd.get_dummies(X_train)
    model = RandomForestClassifier(50, max_depth=6, random_state=0).fit(encoded, y_train)
    P = model.predict_proba(pd.get_dummies(X).reindex(columns=encoded.columns, fill_value=0))

    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.2), layout="constrained")
    HeterogeneityCurveDisplay.from_predictions(X[:1500], y[:1500], P[:1500]).plot(left)
    SubgroupsDisplay.from_predictions(X, y, P, classes=model.classes_).plot(right)
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs/_static/adult_displays.png")
    figure.savefig(target, dpi=80)


if __name__ == "__main__":
    main()
