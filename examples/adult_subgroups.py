"""Find who is hidden in the probabilities of a logistic regression on census data.

A logistic regression predicts whether a person earns more than 50 000 dollars a year. Its
probabilities are well calibrated on average. Which people does the average hide?

Needs the `adult` data: from the folder that the environment variable HETCAL_DATA names, or
downloaded.
"""

import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from hetcal.datasets import load_dataset
from hetcal.heterogeneity import HiddenHeterogeneity


def black_box():
    """Return a logistic regression without interactions, as many a scorecard is."""
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
        (StandardScaler(), make_column_selector(dtype_include="number")),
    )
    return make_pipeline(encode, LogisticRegression(max_iter=2000))


def main() -> None:
    """Print how much is hidden, and who is in it."""
    adult = load_dataset("adult")
    X_train, X_rest, y_train, y_rest = train_test_split(
        adult.X, adult.y, train_size=5000, random_state=0
    )
    y_proba = black_box().fit(X_train, y_train).predict_proba(X_rest)

    some = slice(8000)  # enough to measure; names are looked for among all
    hidden = HiddenHeterogeneity().fit(X_rest[some], y_rest[some], y_proba=y_proba[some])
    print(
        f"hidden heterogeneity {hidden.hh_mean_:.4f} (standard error {hidden.standard_error_:.4f})"
    )
    print(f"  of which a global map can repair  {hidden.hh_global_mean_:.4f}")
    print(f"  and only a local one can          {hidden.hh_local_mean_:.4f}")
    print(f"  p-value {hidden.p_value_:.2g}\n")

    pd.set_option("display.width", 160, "display.max_colwidth", 80, "display.max_columns", 20)
    columns = ["rule", "n", "predicted", "observed", "low", "high", "gain", "global_map_repairs"]
    print(hidden.subgroups(X_rest, y_proba, y_rest)[columns].round(3).to_string(index=False), "\n")
    print(
        hidden.subgroups(X_rest, y_proba, y_rest, by=["sex", "marital_status"])[columns]
        .round(3)
        .head(8)
        .to_string(index=False)
    )


if __name__ == "__main__":
    main()
