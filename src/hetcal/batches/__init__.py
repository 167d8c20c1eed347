"""Rows in, rows with calibrated columns out: one implementation for the command, dask and Spark."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hetcal.batches.additions import Additions
    from hetcal.batches.arrow import BatchCalibrator
    from hetcal.batches.model import LoadedModel, load_model

__all__ = ["Additions", "BatchCalibrator", "LoadedModel", "load_model"]

_HOME = {
    "Additions": "additions",
    "BatchCalibrator": "arrow",
    "LoadedModel": "model",
    "load_model": "model",
}


def __getattr__(name: str) -> Any:
    # On first use: a command that only describes a file does not wait for the calibrators.
    if name not in _HOME:
        raise AttributeError(f"module 'hetcal.batches' has no attribute {name!r}")
    return getattr(import_module(f"hetcal.batches.{_HOME[name]}"), name)
