"""What a test of hidden heterogeneity found: the answer, and what was learned of each item."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from hetcal._typing import Matrix
from hetcal.heterogeneity.regions import Regions


@dataclass(frozen=True, eq=False)
class HeterogeneityTest:
    r"""What a test of hidden heterogeneity found.

    Attributes
    ----------
    p_value : float
        Of the null hypothesis that P(y | x) = h(p) for *some* function h.
    statistic : float
        The same as a quantile of the standard normal distribution.
    grouping_loss_low : float
        One-sided lower bound (at the level ``1 - alpha``) on the grouping loss
        :math:`E|P(y|x) - P(y|p)|^2`: what an ideal local model gains in Brier score beyond the best
        global map. 0 unless the test rejects at ``alpha``.
    grouping_loss_found : float
        Estimate of the part of it that lies along functions of a few columns; what these miss is
        not in it. Without bias where something is there, about 0 where nothing is.
    global_part : float
        Estimate of :math:`E|p - P(y|p)|^2`, what the best global map gains.
    global_part_interval : tuple of float
        95 % interval of it.
    brier : float
        Brier score of the classifier on the items.
    carried_by : tuple of (str, label, float)
        Directions that carry it, the most important first: in words, the class whose frequency
        differs along it, and its studentised score.
    parts : dict
        p-values of the parts that were combined: the dictionary's families, and each learner.
    n_items, n_groups : int
        Items with a weight; groups among them, or 0.
    n_null : int
        Draws under the null.
    notes : tuple of str
        What limits the answer, if anything does.
    """

    p_value: float
    statistic: float
    grouping_loss_low: float
    grouping_loss_found: float
    global_part: float
    global_part_interval: tuple[float, float]
    brier: float
    carried_by: tuple[tuple[str, Any, float], ...] = field(repr=False)
    parts: dict[str, float] = field(repr=False)
    n_items: int
    n_groups: int
    n_null: int
    notes: tuple[str, ...] = ()

    @property
    def directions(self) -> pd.DataFrame:
        """The directions that carry it as a table: ``direction``, ``class``, ``z``."""
        return pd.DataFrame(list(self.carried_by), columns=["direction", "class", "z"])

    @property
    def shares(self) -> dict[str, float]:
        """The bound, the found part and the global part as shares of the Brier score."""
        names = ("grouping_loss_low", "grouping_loss_found", "global_part")
        return {name: getattr(self, name) / max(self.brier, 1e-300) for name in names}


@dataclass(frozen=True, eq=False)
class Analysis:
    r"""A test, and what it learned about each item.

    Attributes
    ----------
    test : HeterogeneityTest
    gains : ndarray of shape (n, 2)
        Gain in squared error from the classifier to the best global map, and from there to the
        local model h(p) + d: :math:`2 r \cdot d - |d|^2` with d found on other folds.
    regions : Regions
    by_region : DataFrame
        Test and bound in each region of p.
    """

    test: HeterogeneityTest
    gains: Matrix
    regions: Regions
    by_region: pd.DataFrame
