"""What a data set is, and what is raised when one cannot be had."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

__all__ = ["Dataset", "DatasetUnavailableError"]


class DatasetUnavailableError(FileNotFoundError):
    """A data set is neither in the data folder nor in the cache, and could not be downloaded."""


@dataclass(frozen=True)
class Dataset:
    """A named data set.

    Attributes
    ----------
    name : str
        The name it was loaded by.
    X : ndarray of shape (n_samples, n_features), DataFrame, or None
        Features. A DataFrame with ``category`` columns for the tables, the network's latents for
        the network outputs (None where only probabilities are known).
    y : ndarray of shape (n_samples,)
        Labels, in the spelling of `classes`.
    classes : ndarray of shape (n_classes,)
        Sorted labels; the column order of `logits` and `y_proba`.
    feature_names : tuple of str
        One name per column of X.
    class_names : tuple of str
        What the classes stand for, in the order of `classes`; empty where the labels say it.
    logits, y_proba : ndarray of shape (n_samples, n_classes) or None
        A network's output, for the sets that are network outputs.
    frame : DataFrame or None
        For the tables: every column of the file, those left out of X included.
    description : str
        Where it comes from, and what to know before using it.
    """

    name: str
    X: np.ndarray | pd.DataFrame | None
    y: np.ndarray
    classes: np.ndarray
    feature_names: tuple[str, ...] = ()
    class_names: tuple[str, ...] = ()
    logits: np.ndarray | None = None
    y_proba: np.ndarray | None = None
    frame: pd.DataFrame | None = field(default=None, repr=False)
    description: str = field(default="", repr=False)

    @property
    def latents(self) -> np.ndarray | pd.DataFrame | None:
        """The network's last hidden layer, which is X of a network output (else None)."""
        return self.X if self.logits is not None else None

    def __repr__(self) -> str:
        shape = None if self.X is None else tuple(self.X.shape)
        return (
            f"Dataset(name={self.name!r}, X={shape}, "
            f"n_samples={len(self.y)}, n_classes={len(self.classes)})"
        )
