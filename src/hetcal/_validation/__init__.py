"""Tables and arrays in, checked arrays out; every error text about input lives here."""

from hetcal._validation.column_order import find_column_order, warn_column_order
from hetcal._validation.features import (
    FeatureEncoder,
    check_finite_numeric,
    propose_projection,
    warn_of_scales,
)
from hetcal._validation.labels import check_labels, check_two_classes
from hetcal._validation.options import check_choice
from hetcal._validation.proba import (
    PASS_LOGITS,
    check_columns_match_classes,
    check_logits,
    check_one_kind,
    check_predicted_proba,
    check_proba,
    check_proba_names,
)
from hetcal._validation.rows import (
    check_groups,
    check_same_order,
    check_same_rows,
    check_sample_weight,
    relative_weights,
    warn_large_counts,
    warn_uneven_weights,
    weights_as_counts,
)

__all__ = [
    "PASS_LOGITS",
    "FeatureEncoder",
    "check_choice",
    "check_columns_match_classes",
    "check_finite_numeric",
    "check_groups",
    "check_labels",
    "check_logits",
    "check_one_kind",
    "check_predicted_proba",
    "check_proba",
    "check_proba_names",
    "check_same_order",
    "check_same_rows",
    "check_sample_weight",
    "check_two_classes",
    "find_column_order",
    "propose_projection",
    "relative_weights",
    "warn_column_order",
    "warn_large_counts",
    "warn_of_scales",
    "warn_uneven_weights",
    "weights_as_counts",
]
