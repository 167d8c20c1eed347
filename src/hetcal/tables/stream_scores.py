"""How good a model's probabilities are over a stream of rows of any length, in bounded memory.

Which class a label means is known when the last row has been seen; so sums are kept for each
spelling of a label, and put together at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal.tables.class_columns import ClassMatch

Matrix = NDArray[np.float64]

_N_BINS = 15
_MOST_CLASSES_BINNED = 100  # a table of labels x predicted classes x bins is kept


class StreamScores:
    """Sums over rows, one set per spelling of a label.

    Parameters
    ----------
    n_classes : int
        Columns of the probabilities.

    Attributes
    ----------
    labels : list of str
        The spellings seen, in order of appearance.
    n_rows : int
        Rows that have been counted.
    """

    def __init__(self, n_classes: int):
        self.n_classes, self.n_rows = n_classes, 0
        self.labels: list[str] = []
        self._sums: dict[str, dict[str, NDArray]] = {}

    def update(self, texts: Sequence[str], P: Matrix, weight: Matrix | None = None) -> None:
        """Count rows: the spelling of each label, its probabilities, its weight."""
        from scipy import sparse

        from hetcal.metrics.scores import LOG_LOSS_EPS

        n = len(texts)
        if n == 0:
            return
        self.n_rows += n
        weight = np.ones(n) if weight is None else weight
        codes, names = pd.factorize(np.asarray(texts, dtype=object))
        shape = (len(names), n)
        of_label = sparse.csr_array((weight, (codes, np.arange(n))), shape=shape)
        P = P / P.sum(axis=1, keepdims=True)
        top, predicted = P.max(axis=1), P.argmax(axis=1)
        chosen = np.eye(self.n_classes)[predicted]
        parts = {
            "rows": np.bincount(codes, minlength=len(names)),
            "weight": np.bincount(codes, weights=weight, minlength=len(names)),
            "squares": of_label @ (P**2).sum(axis=1),
            "proba": of_label @ P,
            "log_proba": of_label @ np.log(np.clip(P, LOG_LOSS_EPS, 1 - LOG_LOSS_EPS)),
            "predicted": of_label @ chosen,
        }
        if self.n_classes <= _MOST_CLASSES_BINNED:
            # Bins as in metrics.expected_calibration_error: (0, 1/15], (1/15, 2/15], ...
            bins = np.searchsorted(np.linspace(0, 1, _N_BINS + 1)[1:-1], top, side="left")
            cell = (codes * self.n_classes + predicted) * _N_BINS + bins
            size, binned = len(names) * self.n_classes * _N_BINS, (len(names), -1, _N_BINS)
            for name, values in (("bin_weight", weight), ("bin_score", weight * top)):
                parts[name] = np.bincount(cell, weights=values, minlength=size).reshape(binned)
        for j, label in enumerate(names.tolist()):
            self._add(label, {name: values[j] for name, values in parts.items()})

    def _add(self, label: str, parts: dict[str, Any]) -> None:
        if label not in self._sums:
            self.labels.append(label)
            self._sums[label] = {name: np.array(value) for name, value in parts.items()}
            return
        for name, value in parts.items():
            self._sums[label][name] = self._sums[label][name] + value

    def overall(self, match: ClassMatch) -> dict[str, Any]:
        """Return the scores over all rows, ready for JSON; labels that mean no class are left out.

        The keys: ``rows``, ``class_counts``, ``mean_proba`` (by class), ``brier`` (summed over
        classes), ``log_loss``, ``accuracy``; ``ece`` (top label, 15 bins of equal width) and
        ``reliability`` (one entry per bin that holds rows) up to 100 classes.
        """
        classes = match.classes
        place = {name: k for k, name in enumerate(classes)}
        known = [
            (place[match.of_label[t]], self._sums[t]) for t in self.labels if t in match.of_label
        ]
        total = {name: sum(sums[name] for _, sums in known) for name in known[0][1]}
        mass = float(total["weight"])
        mean = np.asarray(total["proba"]) / mass
        counts = np.zeros(len(classes), dtype=np.int64)
        for k, sums in known:
            counts[k] += sums["rows"]
        of_truth = sum(sums["proba"][k] for k, sums in known)
        found = {
            "rows": int(total["rows"]),
            "class_counts": dict(zip(classes, counts.tolist(), strict=True)),
            "mean_proba": dict(zip(classes, mean.tolist(), strict=True)),
            "brier": float((total["squares"] - 2 * of_truth) / mass + 1),
            "log_loss": float(-sum(sums["log_proba"][k] for k, sums in known) / mass),
            "accuracy": float(sum(sums["predicted"][k] for k, sums in known) / mass),
        }
        return found | (self._reliability(known) if "bin_weight" in total else {})

    def _reliability(self, known: list[tuple[int, dict[str, NDArray]]]) -> dict[str, Any]:
        weight = sum(sums["bin_weight"].sum(axis=0) for _, sums in known)
        score = sum(sums["bin_score"].sum(axis=0) for _, sums in known)
        right = sum(sums["bin_weight"][k] for k, sums in known)
        some = np.flatnonzero(weight)
        share = weight[some] / weight.sum()
        said, seen = score[some] / weight[some], right[some] / weight[some]
        return {
            "ece": float(share @ np.abs(said - seen)),
            "reliability": [
                {
                    "above": b / _N_BINS,
                    "share": float(share[j]),
                    "confidence": float(said[j]),
                    "accuracy": float(seen[j]),
                }
                for j, b in enumerate(some.tolist())
            ],
        }
