"""Displays: objects that hold computed data; ``plot()`` draws it, ``frame()`` returns it.

matplotlib is imported when something is drawn, not before (``pip install 'hetcal[plot]'``).
"""

from hetcal.plotting.heterogeneity_map import HeterogeneityMapDisplay
from hetcal.plotting.reliability import ReliabilityDisplay

__all__ = ["HeterogeneityMapDisplay", "ReliabilityDisplay"]
