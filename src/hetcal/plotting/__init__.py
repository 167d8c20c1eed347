"""Displays: objects that hold computed data; ``plot()`` draws it, ``frame()`` returns it.

matplotlib is imported when something is drawn, not before (``pip install 'hetcal[plot]'``).
"""

from hetcal.plotting.comparison import ComparisonDisplay
from hetcal.plotting.heterogeneity_curve import HeterogeneityCurveDisplay
from hetcal.plotting.heterogeneity_map import HeterogeneityMapDisplay
from hetcal.plotting.learning_curve import LearningCurveDisplay
from hetcal.plotting.monitor import MonitorDisplay
from hetcal.plotting.reliability import ReliabilityDisplay
from hetcal.plotting.subgroups import SubgroupsDisplay
from hetcal.plotting.support import SupportDisplay

__all__ = [
    "ComparisonDisplay",
    "HeterogeneityCurveDisplay",
    "HeterogeneityMapDisplay",
    "LearningCurveDisplay",
    "MonitorDisplay",
    "ReliabilityDisplay",
    "SubgroupsDisplay",
    "SupportDisplay",
]
