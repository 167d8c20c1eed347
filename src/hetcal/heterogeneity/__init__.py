"""Hidden heterogeneity: how much, is it real, where, and who."""

from hetcal.heterogeneity.estimator import HiddenHeterogeneity
from hetcal.heterogeneity.orthogonal_test import heterogeneity_test, heterogeneity_test_set
from hetcal.heterogeneity.result import HeterogeneityTest
from hetcal.heterogeneity.subgroups import find_subgroups

__all__ = [
    "HeterogeneityTest",
    "HiddenHeterogeneity",
    "find_subgroups",
    "heterogeneity_test",
    "heterogeneity_test_set",
]
