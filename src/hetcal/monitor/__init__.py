"""Support in deployment: conformal p-values, flags, and alarms for a stream of items."""

from hetcal.monitor.dependence import suggest_dependence
from hetcal.monitor.expected import Estimate, ExpectedPerformance
from hetcal.monitor.monitor import SupportMonitor

__all__ = ["Estimate", "ExpectedPerformance", "SupportMonitor", "suggest_dependence"]
