"""The one place that knows about versions of other libraries."""

from __future__ import annotations

import sklearn
from sklearn.utils.fixes import parse_version

SKLEARN_VERSION = parse_version(sklearn.__version__)
