"""Hidden heterogeneity in files: what classes declare, and what files of format 1 called it.

Until format 1's last release the default estimate grew forests in every neighbourhood and kept
draws of labels. Of such a file the table of cells is read, which serves predictions near the
calibration items as before; predictions far from all of them have no value any more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hetcal._stored import stored
from hetcal._stored.fields import is_array, probabilities
from hetcal._stored.reader import Spec, declared
from hetcal._typing import Matrix, Vector
from hetcal.heterogeneity import HiddenHeterogeneity
from hetcal.heterogeneity.neighborhood_means import MeasuredItems

_FORMER_PARAMETERS = {"neighbourhoods": "neighborhoods"}
_FORMER_PARTS = {"table": "_table", "items": "_items", "centres": "_centres"}
_NOT_READ = ("local_model", "fold", "global_map", "terms", "variances", "null_means")


def _some(value: Any) -> bool:
    return is_array(value, "f", (None,)) and not np.isinf(value).any()


@stored(
    {
        "centres": probabilities(None, None),
        "total": _some,
        "part_global": _some,
        "variance": _some,
    }
)
@dataclass(frozen=True)
class NullMeans:
    """A part of files of format 1 that nothing looks at any more."""

    centres: Matrix
    total: Vector
    part_global: Vector
    variance: Vector


def _of_today(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a file of format 1 in the words of today."""
    if not {"neighbourhoods", "local_model", "items"} & set(state):
        return state
    names = _FORMER_PARAMETERS | _FORMER_PARTS
    found = {names.get(k, k): value for k, value in state.items() if k not in _NOT_READ}
    if found.get("estimate") == "oob":
        found["estimate"] = "orthogonal"
    if "_items" in found:
        found = {"_edges": None, "regions_": None, "hh_local_low_": np.nan} | found
    return found


def _reading_format_1(spec: Spec) -> Spec:
    def unpack(state: dict[str, Any]) -> Any:
        return spec.unpack(_of_today(state))

    def needs(state: dict[str, Any]) -> int:
        return spec.needs(_of_today(state))

    return replace(spec, unpack=unpack, needs=needs)


SPECS = [
    _reading_format_1(declared(HiddenHeterogeneity)),
    declared(MeasuredItems),
    declared(NullMeans),
]
