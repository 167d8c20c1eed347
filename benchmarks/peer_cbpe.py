"""NannyML's CBPE on a table of reference and later rows; for an environment that has NannyML.

    python benchmarks/peer_cbpe.py rows.csv BLOCK    # columns: part, y, p

Prints a line per block of later rows: the accuracy that it expects, and the sampling error by which
it draws its interval (three of them to either side). benchmarks/monitor_expected.py calls it.
"""

from __future__ import annotations

import sys
import warnings

import pandas as pd


def main() -> None:
    """Estimate, and print CSV."""
    warnings.simplefilter("ignore")
    import nannyml

    table, block = pd.read_csv(sys.argv[1]), int(sys.argv[2])
    table["predicted"] = (table["p"] > 0.5).astype(int)
    estimator = nannyml.CBPE(
        problem_type="classification_binary",
        y_pred_proba="p",
        y_pred="predicted",
        y_true="y",
        metrics=["accuracy"],
        chunk_size=block,
    )
    later = table["part"] == "later"
    estimator.fit(table[~later].drop(columns="part").reset_index(drop=True))
    result = estimator.estimate(table[later].drop(columns=["part", "y"]).reset_index(drop=True))
    found = result.filter(period="analysis").to_df()["accuracy"]
    found = found[["value", "sampling_error"]].assign(version=nannyml.__version__)
    sys.stdout.write(found.to_csv(index=False))


if __name__ == "__main__":
    main()
