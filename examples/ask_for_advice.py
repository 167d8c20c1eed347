"""Ask what to do with a classifier's probabilities.

A logistic regression is good at what it can see, and hides the rest. `hetcal.advise` says what a
repair would bring; the code that it recommends is then run as it stands.
"""

from sklearn.datasets import make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import hetcal
from hetcal.metrics import brier_score


def main() -> None:
    """Print the advice, follow it, and compare."""
    X_all, y_all = make_moons(2000, noise=0.3, random_state=0)
    X_train, X_rest, y_train, y_rest = train_test_split(
        X_all, y_all, train_size=500, random_state=0
    )
    X, X_new, y, y_new = train_test_split(X_rest, y_rest, train_size=800, random_state=0)
    model = LogisticRegression().fit(X_train, y_train)
    y_proba, y_proba_new = model.predict_proba(X), model.predict_proba(X_new)

    advice = hetcal.advise(X, y, y_proba=y_proba, X_new=X_new, y_proba_new=y_proba_new)
    print(advice)

    names = {"X": X, "y": y, "y_proba": y_proba, "X_new": X_new, "y_proba_new": y_proba_new}
    exec(advice.call, names)
    print(f"\nBrier score on new items before: {brier_score(y_new, y_proba_new):.4f}")
    print(f"                          after: {brier_score(y_new, names['q_new']):.4f}")
    print(f"                      promised: {advice.expected_brier:.4f}")


if __name__ == "__main__":
    main()
