"""Hidden heterogeneity: how much, is it real, where, and who."""

from hetcal.heterogeneity.estimator import HeterogeneityTest, HiddenHeterogeneity
from hetcal.heterogeneity.subgroups import find_subgroups

__all__ = ["HeterogeneityTest", "HiddenHeterogeneity", "find_subgroups"]
