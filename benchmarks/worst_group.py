"""Worst-group smooth calibration error on bank-marketing and credit-default.

    HETCAL_DATA=/folder python benchmarks/worst_group.py
    python benchmarks/worst_group.py --methods uncalibrated isotonic     # without the hybrid, quick

The question of Hansen et al. (2024), When is multicalibration post-processing necessary?: after
calibration on average, how wrong is the worst of the groups that a person would name? A model is
trained on half of the rows, calibrated on 5000 others, and measured on the rest (one split).
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from hetcal import evaluate, get_calibrator
from hetcal.datasets import load_dataset

COLUMNS = {
    "bank-marketing": ["job", "marital", "education", "housing", "loan", "age"],
    "credit-default": ["SEX", "EDUCATION", "MARRIAGE", "AGE"],
}
MODELS = {
    "logistic regression": LogisticRegression(max_iter=1000),
    "random forest": RandomForestClassifier(min_samples_leaf=5, random_state=0, n_jobs=1),
}
SMALLEST = 0.01  # of the rows; smaller groups are worst by chance
METRIC = "smooth_calibration_error_binary"


def named_groups(X: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Return the columns by which groups are compared; ages in four ranges."""
    groups = X[columns].copy()
    for name in columns:
        if groups[name].dtype.kind in "if":
            groups[name] = pd.cut(groups[name], [0, 30, 40, 50, 120]).astype(str)
    return groups.astype(str)


def predictions(name: str, model, methods: list[str]):
    """Return labels, groups and what each method says about the test rows."""
    data = load_dataset(name)
    order = np.random.default_rng(0).permutation(data.X.shape[0])
    half = order.shape[0] // 2
    train, cal, test = order[:half], order[half : half + 5000], order[half + 5000 :]
    categories = make_column_selector(dtype_include="category")
    encode = make_column_transformer(
        (OneHotEncoder(sparse_output=False, handle_unknown="ignore"), categories),
        remainder=StandardScaler(),
    )
    fitted = make_pipeline(encode, model).fit(data.X.iloc[train], data.y[train])
    P_cal, P_test = (fitted.predict_proba(data.X.iloc[rows]) for rows in (cal, test))
    said = {}
    for method in methods:
        calibrator = get_calibrator(method).fit(data.X.iloc[cal], data.y[cal], y_proba=P_cal)
        said[method] = calibrator.predict_proba(data.X.iloc[test], y_proba=P_test)
    return data.y[test], named_groups(data.X.iloc[test], COLUMNS[name]), said


def rows(name: str, model_name: str, methods: list[str]):
    """Yield for each method: error of all, of the worst of the large groups, bounds, the group."""
    y, groups, said = predictions(name, MODELS[model_name], methods)
    table = evaluate(y, said, groups_by=groups)
    for method in methods:
        found = table[table["method"] == method].loc[METRIC]
        large = found[(found["part"] == "group") & (found["n"] >= SMALLEST * len(y))]
        worst = large.loc[large["value"].to_numpy() == large["value"].max()].iloc[0]
        overall = found.loc[found["part"] == "overall", "value"].iloc[0]
        bounds = f"{worst['value']:.3f} ({worst['low']:.3f} to {worst['high']:.3f})"
        group = f"{worst['by']}: {worst['group']} ({worst['n']})"
        yield name, model_name, method, f"{overall:.3f}", bounds, group


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", default=["uncalibrated", "isotonic", "hybrid"])
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    options = parser.parse_args()
    print("| data | model | calibration | all | worst group | which (rows) |")
    print("|---|---|---|---|---|---|")
    for name in COLUMNS:
        for model_name in options.models:
            for cells in rows(name, model_name, options.methods):
                print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
