"""How the small parts that everybody holds are stored: scores, voters, the encoder of features."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetcal._stored import expect
from hetcal._stored.checks import check_codes, check_weight
from hetcal._stored.fields import (
    MOST_CLASSES,
    MOST_FEATURES,
    column_names,
    flag,
    instance,
    integers,
    is_array,
    is_whole,
    numbers,
    one_of,
    optional,
    probabilities,
    whole,
)
from hetcal._validation import FeatureEncoder
from hetcal.data import Scores
from hetcal.kernels.votes import Voters
from hetcal.persistence.spec import plain

_MOST_LEVELS = 10_000_000
# A table is predicted column by column, and loading a file predicts once.
_MOST_TABLE_COLUMNS = 50_000
_SCALARS = (str, int, float, bool, type(None), np.generic)


def _check_scores(scores: Scores) -> None:
    expect(scores.proba.shape == scores.log_proba.shape, scores, "do not match their logarithms")


def _check_voters(voters: Voters) -> None:
    check_codes(voters, voters.codes, len(voters.codes), voters.n_classes)
    check_weight(voters, voters.weight, len(voters.codes))


def _check_encoder(encoder: FeatureEncoder) -> None:
    n, levels = encoder.n_features_in_, encoder.levels_
    names: Any = encoder.feature_names_in_
    named = is_array(names, "O", (n,)) and all(isinstance(name, str) for name in names)
    expect(names is None or named, encoder, "has wrong names")
    for column, values in levels.items():
        good = is_whole(column, 0, n - 1) and isinstance(values, list)
        expect(good and all(isinstance(v, _SCALARS) for v in values), encoder, "has wrong levels")
    expect(not levels or n <= _MOST_TABLE_COLUMNS, encoder, "has too many columns")
    width = n - len(levels) + sum(map(len, levels.values()))
    expect(0 < width <= _MOST_LEVELS, encoder, "has too many levels")
    fills = encoder.fill_ is None or len(encoder.fill_) == width
    expect(fills, encoder, "fills wrong")


SPECS = [
    plain(
        Scores,
        {
            "proba": probabilities(None, None),
            "log_proba": numbers(None, None, low=-np.finfo(float).max, high=1e-6),
        },
        check=_check_scores,
    ),
    plain(
        Voters,
        {
            "codes": integers(None, low=0, high=MOST_CLASSES),
            "n_classes": whole(2, MOST_CLASSES),
            "weight": optional(numbers(None, low=0.0)),
        },
        check=_check_voters,
    ),
    plain(
        FeatureEncoder,
        {"n_features_in_": whole(1, MOST_FEATURES)}
        | {
            "missing": one_of("keep", "impute"),
            "allow_sparse": flag,
            "max_levels": whole(0, 1 << 62),
            "feature_names_in_": optional(column_names),
            "levels_": instance(dict),
            "fill_": optional(numbers(None)),
        },
        check=_check_encoder,
    ),
]
