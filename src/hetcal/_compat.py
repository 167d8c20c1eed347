"""The one place that knows about versions of other libraries."""

from __future__ import annotations

import sklearn
from sklearn.utils.fixes import parse_version
from threadpoolctl import threadpool_limits  # a requirement of scikit-learn itself

__all__ = ["SKLEARN_VERSION", "threadpool_limits"]

SKLEARN_VERSION = parse_version(sklearn.__version__)
