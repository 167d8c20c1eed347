"""Make a log such as a deployed model leaves behind, and a report on it.

A naive Bayes classifier is trained on 5000 people of the census data `adult` (or of
`credit-default`, if you name it). What it says about others, and what is true, goes into a table;
a second table holds other people, on whom the report scores what was learned from the first. Then:

    python examples/report_on_adult.py adult
    hetcal diagnose adult.csv --label outcome --proba 'p_*' --test adult-new.csv

Needs the data: from the folder that the environment variable HETCAL_DATA names, or downloaded.
"""

import sys

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from hetcal.datasets import load_dataset


def black_box():
    """Return naive Bayes, which is known to be far too sure of itself."""
    encode = make_column_transformer(
        (
            OneHotEncoder(handle_unknown="ignore", sparse_output=False),
            make_column_selector(dtype_exclude="number"),
        ),
        (StandardScaler(), make_column_selector(dtype_include="number")),
    )
    return make_pipeline(encode, GaussianNB(var_smoothing=1e-3))


def main() -> None:
    """Write the two tables and say what to type."""
    name = sys.argv[1] if len(sys.argv) > 1 else "adult"
    data = load_dataset(name)
    X_train, X_rest, y_train, y_rest = train_test_split(
        data.X, data.y, train_size=5000, random_state=0, stratify=data.y
    )
    model = black_box().fit(X_train, y_train)
    table = X_rest.reset_index(drop=True)
    P = model.predict_proba(X_rest)
    for k, label in enumerate(model.classes_):
        table[f"p_{label}"] = P[:, k]
    table["outcome"] = np.asarray(y_rest)
    table[:10_000].to_csv(f"{name}.csv", index=False)
    table[10_000:15_000].to_csv(f"{name}-new.csv", index=False)
    print(f"Wrote {name}.csv and {name}-new.csv. Now type:")
    print(f"  hetcal diagnose {name}.csv --label outcome --proba 'p_*' --test {name}-new.csv")


if __name__ == "__main__":
    main()
