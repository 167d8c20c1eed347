"""Fitted global maps as ONNX graphs, plain Python and SQL, for where hetcal is not installed."""

from hetcal.export.onnx_model import to_onnx
from hetcal.export.python_source import to_python
from hetcal.export.sql import to_sql

__all__ = ["to_onnx", "to_python", "to_sql"]
