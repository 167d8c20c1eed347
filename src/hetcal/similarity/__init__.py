"""Similarities between new items and the calibration items.

Every one is fitted on the calibration items in the augmented space and can then vote; see
:class:`hetcal.similarity.BaseSimilarity` for the protocol.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.base import clone

from hetcal.similarity.base import BaseSimilarity, Neighbours
from hetcal.similarity.combined import CombinedSimilarity
from hetcal.similarity.forest import ForestProximity, IsolationProximity
from hetcal.similarity.metric import (
    CallableSimilarity,
    CosineSimilarity,
    EuclideanSimilarity,
    PrecomputedSimilarity,
    RBFSimilarity,
)

__all__ = [
    "BaseSimilarity",
    "CallableSimilarity",
    "CombinedSimilarity",
    "CosineSimilarity",
    "EuclideanSimilarity",
    "ForestProximity",
    "IsolationProximity",
    "Neighbours",
    "PrecomputedSimilarity",
    "RBFSimilarity",
    "make_similarity",
]

_BY_NAME: dict[str, Callable[..., BaseSimilarity]] = {
    "forest": ForestProximity,
    "extra-trees": lambda **kw: ForestProximity(trees="extra", **kw),
    "isolation": IsolationProximity,
    "euclidean": lambda **_: EuclideanSimilarity(),
    "cosine": lambda **_: CosineSimilarity(),
    "rbf": lambda **_: RBFSimilarity(),
    "precomputed": lambda **_: PrecomputedSimilarity(),
}


def make_similarity(
    similarity: Any, *, random_state: int | None = 0, n_jobs: int | None = None
) -> BaseSimilarity:
    """Return an unfitted similarity from a name, an instance (cloned) or a function.

    Examples
    --------
    >>> make_similarity("rbf")
    RBFSimilarity()
    """
    if isinstance(similarity, BaseSimilarity):
        return clone(similarity)
    if isinstance(similarity, str) and similarity in _BY_NAME:
        return _BY_NAME[similarity](random_state=random_state, n_jobs=n_jobs)
    if callable(similarity) and not isinstance(similarity, type):
        return CallableSimilarity(similarity)
    raise ValueError(
        f"similarity must be one of {', '.join(_BY_NAME)}, an instance from hetcal.similarity, or "
        f"a function of two arrays; got {similarity!r}."
    )
