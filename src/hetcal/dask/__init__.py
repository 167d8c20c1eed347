"""Calibration and monitoring on dask: lazily on arrays and DataFrames, and Parquet to Parquet.

Needs ``pip install 'hetcal[dask]'``.
"""

from hetcal.dask.apply import Applied, apply_parquet
from hetcal.dask.monitoring import update_monitor
from hetcal.dask.predict import predict_proba

__all__ = ["Applied", "apply_parquet", "predict_proba", "update_monitor"]
