"""Reports: what was found, as plain data, and its views as text, HTML and JSON."""

from hetcal.report.diagnose import diagnose
from hetcal.report.model import Report

__all__ = ["Report", "diagnose"]
