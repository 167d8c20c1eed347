"""Whether the columns of a table belong to the classes that they are read as."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import numpy as np

from hetcal._exceptions import InputError
from hetcal._validation.text import as_text
from hetcal.tables.class_columns import as_list
from hetcal.tables.selection import listed

if TYPE_CHECKING:
    from hetcal._validation.column_order import ColumnOrder
    from hetcal.tables.labelled_table import LabelledTable

_INSIST = "if it is right as it stands, pass --accept-order (accept_order=True)"


def check_order(labelled: LabelledTable, *, accept: bool) -> None:
    """Raise where the labels clearly go with other columns than their own, or note it.

    Where they go with no column at all, that is noted too: it may be a wrong column of labels.
    """
    from hetcal._validation.column_order import (  # which loads scikit-learn
        auc_of_chance,
        find_column_order,
    )

    codes = np.argmax(labelled.y[:, None] == labelled.classes[None, :], axis=1)
    groups = None
    if labelled.groups is not None:
        groups = np.unique(labelled.groups, return_inverse=True)[1]
    given = codes, labelled.proba, labelled.weight, groups
    found = find_column_order(*given)
    if found is None:
        auc = auc_of_chance(*given)
        labelled.notes.extend([] if auc is None else [_no_knowledge(labelled, auc)])
        return
    if not accept:
        raise InputError(f"{_seen(labelled, found)} {_question(labelled, found)}; {_INSIST}.")
    labelled.notes.append(f"{_seen(labelled, found)} It was accepted so (--accept-order).")


def _no_knowledge(labelled: LabelledTable, auc: float) -> str:
    columns = labelled.roles.output
    ranked = f"the labels in {labelled.roles.label!r}"
    if labelled.roles.being_right:
        ranked = "right before wrong answers"
    return (
        f"{listed(columns, 5)} {'do' if len(columns) > 1 else 'does'} not rank {ranked} better "
        f"than chance (AUC {auc:.2f}). Is it the right column?"
    )


def _seen(labelled: LabelledTable, found: ColumnOrder) -> str:
    roles = labelled.roles
    if len(roles.output) > 1:
        return (
            f"The labels in {roles.label!r} go with other columns than their own (p < 0.001): read "
            f"as {listed(_names(labelled), 5)}, the columns {listed(roles.output, 5)} are right in "
            f"{found.right:.0%} of the rows."
        )
    of = repr(as_text(roles.classes[1])) if roles.predicted is None else "the predicted class"
    return (
        f"{roles.output[0]!r} ranks the labels the wrong way round: read as the probability of "
        f"{of}, its AUC is {found.auc:.2f} (p < 0.001)."
    )


def _question(labelled: LabelledTable, found: ColumnOrder) -> str:
    names = [_names(labelled)[k] for k in found.class_of]
    if labelled.roles.predicted is not None:
        return (
            "Is it the probability of being wrong, or of a class? Name a column that is higher "
            "where the model is surer"
        )
    if len(labelled.roles.output) > 1:
        return (
            f"Read as {listed(names, 5)} they would be in {found.right_then:.0%}: pass --classes "
            f"{as_list(names)} (classes=), or correct the labels"
        )
    return (
        f"Is it the probability of {names[1]!r}? Then pass --positive {shlex.quote(names[1])} "
        "(positive=)"
    )


def _names(labelled: LabelledTable) -> list[str]:
    return [as_text(label) for label in labelled.classes.tolist()]
