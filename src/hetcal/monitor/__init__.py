"""Support in deployment: conformal p-values, flags, and alarms for a stream of items."""

from hetcal.monitor.monitor import SupportMonitor

__all__ = ["SupportMonitor"]
