"""A comparison as a table for a paper, in LaTeX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

_SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"} | {
    character: f"\\{character}" for character in "&%$#_{}"
}


def latex_table(rows: pd.DataFrame, methods: Sequence[str], metrics: Sequence[str]) -> str:
    """Return a tabular of the package booktabs: a row per method, a column per metric.

    Parameters
    ----------
    rows : DataFrame
        From :meth:`hetcal.diagnosis.comparison.Comparison.frame`.
    methods, metrics : sequence of str
        Rows and columns, in order.
    """
    found = rows.set_index(["method", "metric"]).to_dict("index")
    lines = [_line(["method", *(metric.replace("_", " ") for metric in metrics)]), r"\midrule"]
    for method in methods:
        cells = [_cell(found[(method, metric)], metric) for metric in metrics]
        lines.append(_line([escaped(method), *cells]))
    start = rf"\begin{{tabular}}{{l{'r' * len(metrics)}}}"
    return "\n".join([start, r"\toprule", *lines, r"\bottomrule", r"\end{tabular}"])


def escaped(text: str) -> str:
    r"""Return text such that LaTeX prints it as it stands.

    Examples
    --------
    >>> print(escaped("100 % of x_1"))
    100 \% of x\_1
    """
    return "".join(_SPECIAL.get(character, character) for character in text)


def _cell(row: Mapping[Any, Any], metric: str) -> str:
    if np.isnan(row["value"]):
        return "--"
    value = f"{row['value']:.4f}"
    value = rf"\textbf{{{value}}}" if row["within_one_se"] else value
    # Calibration errors are biased, which a standard error would not tell.
    return value if metric == "ece" else f"{value} ({row['standard_error']:.4f})"


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"
