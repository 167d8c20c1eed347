"""Reports: what was found, as plain data, and its views as text, HTML and JSON."""

from hetcal.report.diagnose import diagnose
from hetcal.report.model import Report
from hetcal.report.monitor_report import MonitorReport

__all__ = ["MonitorReport", "Report", "diagnose"]
