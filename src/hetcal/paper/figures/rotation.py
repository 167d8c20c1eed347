"""Figure 6: calibration support when more and more test items are turned."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hetcal.paper.figures import DrawnFigure
from hetcal.paper.figures._digits import CalibratedDigits
from hetcal.plotting import SupportDisplay
from hetcal.plotting.style import require_pyplot

SHARES = (0.0, 0.1, 0.5, 1.0)
_UPRIGHT, _TURNED = "as it was", "turned by 90°"


def draw(name: str, results: Path, trials: int, progress: Callable[[str], object]) -> DrawnFigure:
    """Draw four histograms of the first trial, on one scale; the facts hold every trial."""
    displays, facts = {}, []
    for seed in range(trials):
        progress(f"rotation: trial {seed + 1} of {trials}")
        digits = CalibratedDigits.trial(seed)
        for share in SHARES:
            support, turned = support_after_rotation(digits, share)
            facts.append(_fact(seed, share, support, turned))
            if seed == 0:
                displays[share] = _display(support, turned)
    return DrawnFigure(_plot(displays), pd.DataFrame(facts))


def _display(support: np.ndarray, turned: np.ndarray) -> SupportDisplay:
    return SupportDisplay.from_support(
        support,
        groups=np.where(turned, _TURNED, _UPRIGHT),
        order=(_UPRIGHT, _TURNED),
        n_bins=round(_largest(support) / 50),
        largest=_largest(support),
    )


def _fact(seed: int, share: float, support: np.ndarray, turned: np.ndarray) -> dict[str, float]:
    largest = _largest(support)
    wide = SupportDisplay.from_support(support, n_bins=round(largest / 100), largest=largest)
    return {
        "seed": seed,
        "share": share,
        "peak": wide.peak,  # of bins 100 wide
        "median": float(np.median(support)),
        "median_upright": _median(support[~turned]),
        "median_turned": _median(support[turned]),
    }


def support_after_rotation(digits: CalibratedDigits, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the support of the test items, and which were turned by 90° counter-clockwise.

    The same generator decides at every share, so the turned items of 10 % are among those of 50 %.
    """
    n_items = len(digits.images)
    order = np.random.default_rng(0).permutation(n_items)
    turned = np.zeros(n_items, dtype=bool)
    turned[order[: round(share * n_items)]] = True
    images = digits.images.copy()
    images[turned] = np.rot90(images[turned], k=1, axes=(1, 2))
    return digits.support(images), turned


def _largest(support: np.ndarray) -> float:
    """Return where the axis ends: bins of 50 or 100 fill it, and most trials have one scale."""
    return max(1200.0, float(np.ceil(support.max() / 100) * 100))


def _median(values: np.ndarray) -> float:
    return float(np.median(values)) if len(values) else float("nan")


def _plot(displays: dict[float, SupportDisplay]) -> Any:
    plt = require_pyplot("The figure 'rotation'")
    figure, axes = plt.subplots(
        1, len(displays), figsize=(12.5, 3.3), layout="constrained", sharey=True
    )
    for number, (ax, (share, display)) in enumerate(zip(axes, displays.items(), strict=True)):
        display.plot(ax)
        ax.set_title(f"{share:.0%} turned")
        if number:
            ax.set_ylabel("")
            ax.get_legend().remove()
    axes[0].legend(frameon=False, loc="upper left", bbox_to_anchor=(0, 0.86))
    axes[0].set_ylim(0, 1.22 * max(map(_tallest, displays.values())))
    figure.suptitle(
        "Calibration support of 500 test items, more and more of them turned by 90° "
        "(mnist-1v7, linear SVM, 3000 calibration items)"
    )
    return figure


def _tallest(display: SupportDisplay) -> float:
    return float(np.sum(list(display.counts.values()), axis=0).max())
