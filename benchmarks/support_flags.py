"""How many new items are flagged for low support although nothing has changed.

    python benchmarks/support_flags.py                # 20 draws per row
    python benchmarks/support_flags.py --draws 4      # a first look

New items come from the same law as the calibration items; with groups they come in groups of their
own. An item is flagged where its support lies below the 5 % quantile of what the calibration items
have out of sample, as ``hetcal fit`` and ``hetcal apply`` do it (theirs is 1 %). Printed per
setting and method: the mean share of flagged items, its standard error over draws, the share by the
same calibrator saved and loaded, and the same at 1 %. Nothing was chosen by these draws, whose
seeds begin at 7000.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import hetcal
from hetcal.metrics.standard_errors import mean_and_error

N_NEW, FIRST_SEED = 2000, 7000
LEVELS = (0.05, 0.01)
# The support of a hybrid is that of its proximity forest, whatever its other experts are.
METHODS: dict[str, dict[str, Any]] = {"swc": {}, "hybrid": {"experts": ["proximity"]}}


class Setting(NamedTuple):
    """A law of items in groups; of size 1, they are independent."""

    n: int
    largest_group: int
    alike: float  # share of the variance of a feature that a group has in common
    n_features: int = 5
    n_classes: int = 2

    def items(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Return features, labels, probabilities and group numbers of items of this law."""
        sizes = rng.integers(1, self.largest_group + 1, n)
        groups = np.repeat(np.arange(n), sizes)[:n]
        shape = (n, self.n_features)
        X = np.sqrt(self.alike) * rng.normal(size=shape)[groups]
        X += np.sqrt(1 - self.alike) * rng.normal(size=shape)
        P = np.exp(X[:, [0]] * np.linspace(-1, 1, self.n_classes))
        P /= P.sum(axis=1, keepdims=True)
        y = (rng.random(n)[:, None] > P.cumsum(axis=1)[:, :-1]).sum(axis=1)
        return X, y, P, groups


SETTINGS = [
    Setting(n=300, largest_group=1, alike=0.0),
    Setting(n=1000, largest_group=1, alike=0.0),
    Setting(n=600, largest_group=1, alike=0.0, n_features=20, n_classes=4),
    Setting(n=300, largest_group=5, alike=0.8),
    Setting(n=1000, largest_group=5, alike=0.8),
    Setting(n=600, largest_group=5, alike=0.2),
    Setting(n=600, largest_group=5, alike=0.0),
    Setting(n=600, largest_group=30, alike=0.8),
    Setting(n=600, largest_group=5, alike=0.8, n_features=20, n_classes=4),
]


def main() -> None:
    """Print one row per setting and method."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    n_draws = parser.parse_args().draws
    warnings.simplefilter("ignore")
    print("items  groups of  alike  features  classes  method   at 5 %          loaded   at 1 %")
    for setting in SETTINGS:
        for method, options in METHODS.items():
            draws = flagged(setting, method, options, n_draws)
            (at_5, loaded, at_1), errors = map(np.array, mean_and_error(np.transpose(list(draws))))
            print(
                f"{setting.n:5}  {f'1 to {setting.largest_group}':9}  {setting.alike:5.1f}  "
                f"{setting.n_features:8}  {setting.n_classes:7}  {method:7}  "
                f"{at_5:6.2%} +- {errors[0]:.2%}  {loaded:6.2%}  {at_1:6.2%}",
                flush=True,
            )


def flagged(
    setting: Setting, method: str, options: dict[str, Any], n_draws: int
) -> Iterator[tuple[float, float, float]]:
    """Yield the shares of new items that are flagged: at 5 %, at 5 % after loading, at 1 %."""
    for seed in range(FIRST_SEED, FIRST_SEED + n_draws):
        rng = np.random.default_rng(seed)
        X, y, P, groups = setting.items(setting.n, rng)
        X_new, _, P_new, _ = setting.items(N_NEW, rng)
        named = {"y_proba": P} | ({"groups": groups} if setting.largest_group > 1 else {})
        calibrator = hetcal.get_calibrator(method, **options).fit(X, y, **named)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "calibrator.hetcal"
            hetcal.save(calibrator, path)
            loaded = hetcal.load(path)
        new = {"X": X_new, "y_proba": P_new}
        yield share(calibrator, new, LEVELS[0]), *(share(loaded, new, a) for a in LEVELS)


def share(calibrator: Any, new: dict[str, np.ndarray], level: float) -> float:
    """Return the share of new items below a quantile of the out-of-sample support."""
    low = np.quantile(calibrator.out_of_sample_support(), level)
    return float(np.mean(calibrator.support(**new) < low))


if __name__ == "__main__":
    main()
