"""What has changed where support has fallen: features, ranked by their part in it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._validation.containers import as_array, without_tensor

#: Flagged items that are looked at.
_MOST = 500
_COLUMNS = ("feature", "recovered", "distance", "before", "now", "unseen")


def feature_changes(
    monitor: Any, X: Any, before: Any, output: dict[str, Any], seed: int
) -> pd.DataFrame:
    """Return one row per feature; see :meth:`SupportMonitor.what_changed`."""
    X = without_tensor(X, "X")
    now, old = pd.DataFrame(X), pd.DataFrame(without_tensor(before, "before"))
    if list(now.columns) != list(old.columns):
        raise ValueError(
            "SupportMonitor.what_changed needs the same features in X and before; got "
            f"{list(now.columns)[:5]} and {list(old.columns)[:5]}."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about categories, which the table counts
        recovered = _recovered(monitor, X, old, output, np.random.default_rng(seed))
    rows = [
        {"feature": name, "recovered": recovered[name]} | _shift(old[name], now[name])
        for name in now.columns
    ]
    table = pd.DataFrame(rows, columns=list(_COLUMNS))
    ranked = table.sort_values(["recovered", "distance"], ascending=False, kind="stable")
    return ranked.reset_index(drop=True)


def _recovered(
    monitor: Any, X: Any, old: pd.DataFrame, output: dict[str, Any], rng: np.random.Generator
) -> dict[Any, float]:
    """Return the share of flagged items that are usual with a usual value of each feature."""
    chosen = np.flatnonzero(monitor.p_values(X, **output) <= monitor.rate)[:_MOST]
    items = pd.DataFrame(X).iloc[chosen].reset_index(drop=True)
    own = {kind: as_array(values, kind)[chosen] for kind, values in output.items()}

    def flagged(features: pd.DataFrame) -> NDArray[np.bool_]:
        given = features.to_numpy() if isinstance(X, np.ndarray) else features
        return monitor.p_values(given, **own) <= monitor.rate

    # Ties are broken by an item's place in its batch: compared are batches of the same items.
    still = flagged(items)
    shares = {}
    for name in items.columns:
        values = old[name].iloc[rng.integers(0, len(old), len(items))].to_numpy()
        replaced = items.copy()
        replaced[name] = values
        usual = ~flagged(replaced)
        shares[name] = float(usual[still].mean()) if still.any() else 0.0
    return shares


def _shift(old: Any, now: Any) -> dict[str, Any]:
    """Return how far apart the values are, 0 to 1, typical ones, and the share of unseen ones."""
    if pd.api.types.is_numeric_dtype(old) and pd.api.types.is_numeric_dtype(now):
        outside = float(((now < old.min()) | (now > old.max())).mean())
        middle = {"before": old.median(), "now": now.median()}
        return {"distance": _largest_gap(old, now)} | middle | {"unseen": outside}
    shares = [part.astype(str).value_counts(normalize=True) for part in (old, now)]
    gap = shares[0].subtract(shares[1], fill_value=0.0)
    typical = [share.index[0] if len(share) else None for share in shares]
    return {
        "distance": float(gap.abs().sum() / 2),
        "before": typical[0],
        "now": typical[1],
        "unseen": float((~now.isin(old.unique()) & now.notna()).mean()),
    }


def _largest_gap(old: Any, now: Any) -> float:
    """Return the distance of Kolmogorov and Smirnov; 1 where one of them has no values."""
    pair = [np.sort(part.dropna().to_numpy(float)) for part in (old, now)]
    if not all(map(len, pair)):
        return 1.0
    points = np.concatenate(pair)
    below = [np.searchsorted(part, points, side="right") / len(part) for part in pair]
    return float(np.abs(below[0] - below[1]).max())
