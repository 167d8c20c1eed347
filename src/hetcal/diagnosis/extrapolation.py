"""From measured sizes to the next doubling: a power law, and what is not known about it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hetcal._typing import Matrix
from hetcal.diagnosis.scoring import HIGHER_IS_BETTER, METRIC_WORDS

# Exponents of the law; losses of parametric maps fall like 1/n, of local ones more slowly.
_EXPONENTS = np.arange(0.25, 1.51, 0.25)
_N_DRAWS = 2000
_FEWEST_SIZES = 3
_LITTLE = 0.01  # of the loss: too little to be worth twice the data
_RIDGE = 1e-6


@dataclass(frozen=True)
class MoreData:
    """Whether more calibration items would help; ``print`` it for a sentence.

    Attributes
    ----------
    method, metric : str
    from_size, to_size : int
        The last doubling that was measured (or what comes closest to one).
    gain, gain_se : float
        What it brought (above 0: better) and its standard error, paired on the same tested items.
    n_items : int
        Items that the user has.
    expected_gain, expected_low, expected_high : float
        What twice ``n_items`` may bring beyond ``n_items``: the law ``a + b n^-c`` fitted to all
        sizes, with the middle 95 % of refits to values redrawn within their errors. NaN with fewer
        than three sizes.
    verdict : {"yes", "no", "unclear"}
        "yes": the last doubling gained more than two standard errors, and all of the interval lies
        above 0. "no": the interval ends below 1 % of the loss. "unclear": everything else.
    """

    method: str
    metric: str
    from_size: int
    to_size: int
    gain: float
    gain_se: float
    n_items: int
    expected_gain: float
    expected_low: float
    expected_high: float
    verdict: str

    def __str__(self) -> str:
        measured = (
            f"From {self.from_size} to {self.to_size} calibration items {self.method} gained "
            f"{_figure(self.gain)} ± {_figure(self.gain_se)} in "
            f"{METRIC_WORDS[self.metric]}."
        )
        if np.isnan(self.expected_gain):
            return f"{measured} Too few sizes to say what more would bring."
        words = {
            "yes": "More data would help",
            "no": "More data would bring little",
            "unclear": "Whether more data would help is unclear",
        }
        return (
            f"{measured} {words[self.verdict]}: {2 * self.n_items} instead of {self.n_items} items "
            f"may bring {_figure(self.expected_gain)} ({_figure(self.expected_low)} to "
            f"{_figure(self.expected_high)})."
        )


def gain_of_more_data(
    sizes: NDArray[np.int64],
    values: Matrix,
    spread: Matrix,
    *,
    n_items: int,
    method: str,
    metric: str,
    random_state: int = 0,
) -> MoreData:
    """Return the gain of the last doubling and of the next one.

    Parameters
    ----------
    sizes, values : ndarray of shape (S,)
        The curve, sizes growing.
    spread : ndarray of shape (S, S)
        Covariance of the values.
    n_items : int
        The size that would be doubled.
    """
    if sizes.shape[0] < 2:
        raise ValueError(
            f"{method!r} has values at {sizes.shape[0]} size(s); at least two are needed. Pass "
            "more sizes, or look at the notes in frame()."
        )
    losses = -values if metric in HIGHER_IS_BETTER else values
    half = int(np.argmin(np.abs(np.log(2 * sizes[:-1] / sizes[-1]))))
    contrast = np.zeros(sizes.shape[0])
    contrast[half], contrast[-1] = 1.0, -1.0
    gain, error = float(contrast @ losses), float(np.sqrt(contrast @ spread @ contrast))
    expected = low = high = np.nan
    if sizes.shape[0] >= _FEWEST_SIZES:
        rng = np.random.default_rng(random_state)
        drawn = rng.multivariate_normal(losses, spread, size=_N_DRAWS, method="eigh")
        gains = _next_doubling(sizes, np.vstack([losses, drawn]), spread, n_items)
        expected = float(gains[0])
        low, high = (float(bound) for bound in np.quantile(gains[1:], [0.025, 0.975]))
    scale = float(abs(1 - values[-1] if metric in HIGHER_IS_BETTER else values[-1]))
    verdict = "unclear"
    if high < _LITTLE * scale:
        verdict = "no"
    elif low > 0 and gain > 2 * error:
        verdict = "yes"
    return MoreData(
        method,
        metric,
        int(sizes[half]),
        int(sizes[-1]),
        gain,
        error,
        n_items,
        expected,
        low,
        high,
        verdict,
    )


def _next_doubling(
    sizes: NDArray[np.int64], curves: Matrix, spread: Matrix, n_items: int
) -> Matrix:
    """Return f(n) - f(2 n) of the law a + b n^-c fitted to each row of ``curves``."""
    # Errors at different sizes go together (the same tested items): generalised least squares.
    typical = max(float(np.trace(spread)) / sizes.shape[0], 1e-30)
    root = np.linalg.cholesky(spread + _RIDGE * typical * np.eye(sizes.shape[0]))
    target = np.linalg.solve(root, curves.T)
    misfit, gains = [], []
    for exponent in _EXPONENTS:
        fall = (sizes / n_items) ** -exponent
        design = np.linalg.solve(root, np.column_stack([np.ones_like(fall), fall]))
        found, *_ = np.linalg.lstsq(design, target, rcond=None)
        misfit.append(((design @ found - target) ** 2).sum(axis=0))
        gains.append(found[1] * (1 - 2.0**-exponent))
    chosen = np.argmin(misfit, axis=0)
    return np.array(gains)[chosen, np.arange(curves.shape[0])]


def _figure(value: float) -> str:
    return f"{value:z.4f}"  # never "-0.0000"
