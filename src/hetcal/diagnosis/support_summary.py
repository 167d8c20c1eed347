"""How much calibration data stands behind the items, and who has least."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal._typing import Matrix
from hetcal._validation.containers import as_frame, take_rows
from hetcal.diagnosis import findings

_N_BINS = 24
_LOW_SHARE = 0.05
_LEAST_EDGE = 0.01
_N_WEAKEST = 10
_MOST_FEATURES, _LONGEST_VALUE = 5, 40


def support(own: Matrix, of_test: Matrix | None) -> findings.Support:
    """Return histograms on a common scale; "low" is what one in twenty calibration items has."""
    low = float(np.quantile(own, _LOW_SHARE))
    tables = {"calibration set": own} | ({} if of_test is None else {"test table": of_test})
    ends = [np.quantile(values, (0.001, 0.999)) for values in tables.values()]
    top = max(float(max(high for _, high in ends)), _LEAST_EDGE * 2)
    bottom = min(max(float(min(low for low, _ in ends)), _LEAST_EDGE), top / 2)
    edges = np.geomspace(bottom, top, _N_BINS + 1)
    histograms = []
    for name, values in tables.items():
        counts = np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0]
        histograms.append(
            findings.Histogram(
                name,
                edges.tolist(),
                counts.tolist(),
                float(np.median(values)),
                float(np.mean(values < low)),
            )
        )
    return findings.Support(low, histograms)


def weakest(
    table: str,
    X: Any,
    values: Matrix,
    P: Matrix,
    Q: Matrix,
    classes: NDArray,
    rows: NDArray[np.int64],
) -> list[findings.WeakItem]:
    """Return the items with least support; ``rows`` are their places in the user's table."""
    order = np.argsort(values, kind="stable")[:_N_WEAKEST]
    shown = _features(X, order)
    items = []
    for place, i in enumerate(order):
        k = 1 if P.shape[1] == 2 else int(P[i].argmax())
        items.append(
            findings.WeakItem(
                table,
                int(rows[i]),
                float(values[i]),
                float(P[i, k]),
                float(Q[i, k]),
                str(classes.tolist()[k]),
                shown[place],
            )
        )
    return items


def _features(X: Any, rows: NDArray[np.int64]) -> list[dict[str, str]]:
    """Return a few features of some rows as text."""
    if not isinstance(rows, np.ndarray) or hasattr(X, "tocsr"):
        return [{} for _ in rows]
    part = take_rows(X, rows)
    frame = as_frame(part)
    if frame is not None:
        chosen = list(frame.iter_columns())[:_MOST_FEATURES]
        names, columns = [c.name for c in chosen], [c.to_list() for c in chosen]
    else:
        matrix = np.asarray(part)[:, :_MOST_FEATURES]
        names = [f"x{j}" for j in range(matrix.shape[1])]
        columns = [matrix[:, j].tolist() for j in range(matrix.shape[1])]
    return [
        {str(name): _short(column[i]) for name, column in zip(names, columns, strict=True)}
        for i in range(len(rows))
    ]


def _short(value: Any) -> str:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return "missing"
    text = _positional(value) if isinstance(value, float) else str(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


def _positional(value: float) -> str:
    """Return a number as tables write it: 106250, not 1.062e+05.

    Examples
    --------
    >>> _positional(106250.0), _positional(1234.567), _positional(0.123456)
    ('106250', '1234.6', '0.1235')
    """
    if value.is_integer() and abs(value) < 1e15:
        return f"{value:.0f}"
    return f"{value:.1f}" if 1e3 <= abs(value) < 1e15 else f"{value:.4g}"
