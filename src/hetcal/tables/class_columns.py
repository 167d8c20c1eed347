"""Classes by the names of the probability columns, matched with the labels.

``p_yes`` and ``p_no`` belong to the labels ``yes`` and ``no``; ``p_0`` and ``p_1`` to 0 and 1. What
is common to all names is not part of a class. Names and labels that differ only in case, in
spaces or in how truth is written (``True`` and 1) are taken to be the same, with a word about it.
"""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from hetcal._exceptions import InputError
from hetcal._validation.spelling import folded, spelled_alike, truth_folded
from hetcal._validation.text import MISSING, as_text, infer_column
from hetcal.tables.selection import listed

Fold = Callable[[str], str]

_MOST_CLASSES = 1000


@dataclass(frozen=True)
class ClassMatch:
    """Which class each column belongs to, and which class each label text is.

    Attributes
    ----------
    classes : list of str
        One per column of probabilities.
    of_label : dict
        From the text of a label to its class; labels that are missing are not in it.
    notes : list of str
        What had to be assumed.
    """

    classes: list[str]
    of_label: dict[str, str]
    notes: list[str] = field(default_factory=list)


def match_classes(
    columns: Sequence[str],
    labels: Sequence[str],
    *,
    label_column: str,
    stars: Sequence[str] | None = None,
) -> ClassMatch:
    """Match columns of probabilities with the distinct labels.

    Parameters
    ----------
    columns : sequence of str
        Two or more columns, one per class.
    labels : sequence of str
        The distinct labels, as text.
    stars : sequence of str, optional
        What the star of the pattern stood for in each column.

    Examples
    --------
    >>> match_classes(["p_no", "p_yes"], ["yes", "no"], label_column="y").classes
    ['no', 'yes']
    >>> match_classes(["p_10", "p_1"], ["1", "10"], label_column="y").classes
    ['10', '1']
    """
    for wanted in (list(labels), [label for label in labels if label not in MISSING]):
        for same in (str, folded, truth_folded):
            found = _match(columns, wanted, stars, same)
            if found is not None:
                return found
    raise InputError(
        f"The labels in {label_column!r} are {listed(sorted(labels))}, but the probability columns "
        f"{listed(columns)} are named after {listed(_shown_names(columns, stars))}. Name their "
        f"classes in the order of the columns, for example --classes "
        f"{as_list(_suggested(labels, len(columns)))} (classes=)."
    )


def match_given_classes(
    columns: Sequence[str], labels: Sequence[str], classes: Sequence[str], *, label_column: str
) -> ClassMatch:
    """Match the labels with classes that were named in the order of the columns.

    Examples
    --------
    >>> match_given_classes(["p0", "p1"], ["Hi", "lo"], ["lo", "hi"], label_column="y").of_label
    {'Hi': 'hi', 'lo': 'lo'}
    """
    if len(classes) != len(columns) or len(set(classes)) != len(classes):
        raise InputError(
            f"--classes names {len(classes)} classes ({listed(classes)}) for {len(columns)} "
            f"columns of probabilities ({listed(columns)}). Name each class once, in the order of "
            "the columns."
        )
    find = class_finder(classes)
    of_label = {label: find(label) for label in labels}
    unknown = [k for k, name in of_label.items() if name is None and k not in MISSING]
    if unknown:
        raise InputError(
            f"{label_column!r} holds {listed(sorted(unknown), 5)}, which --classes does not name "
            f"({listed(classes)}). Name every class, in the order of the columns {listed(columns)}."
        )
    unseen = [name for name in classes if name not in of_label.values()]
    notes = []
    if unseen:
        notes.append(f"No row has the label {listed(unseen, 5)}; the class is kept all the same.")
    known = {label: name for label, name in of_label.items() if name is not None}
    return ClassMatch(list(classes), known, notes)


def split_classes(classes: str | Sequence[Any] | None) -> list[str] | None:
    """Return names that may be separated by commas; quoted, a name may hold a comma.

    Examples
    --------
    >>> split_classes('low, "medium, or so",high')
    ['low', 'medium, or so', 'high']
    """
    if classes is None:
        return None
    if isinstance(classes, str):
        return [name.strip() for name in next(csv.reader([classes], skipinitialspace=True), [])]
    return [as_text(name) for name in classes]


def match_positive(
    column: str, labels: Sequence[str], positive: Any, *, label_column: str
) -> ClassMatch:
    """Match a single column with the label that it is the probability of.

    ``positive`` may be that label as text, or the number or truth value itself.

    Examples
    --------
    >>> match_positive("score", ["0", "1"], 1, label_column="y").classes
    ['0', '1']
    >>> match_positive("score", ["yes", "no"], "yes", label_column="y").classes
    ['no', 'yes']
    """
    known = [label for label in labels if label not in MISSING] if len(labels) > 2 else list(labels)
    of_label = _one_spelling(known) if len(known) > 2 else {label: label for label in known}
    known = list(dict.fromkeys(of_label.values()))
    if len(known) == 1:
        raise InputError(
            f"Only one outcome occurs: every label in {label_column!r} is {known[0]!r}, so nothing "
            "can be measured. Pass a table in which both outcomes occur."
        )
    if len(known) != 2:
        raise InputError(
            f"One column of probabilities ({column!r}) is enough for two classes, but "
            f"{label_column!r} holds {len(known)}: {listed(sorted(known))}. Name one column per "
            f"class, e.g. --proba 'p_*'; {_if_confidence(column)}; or correct the labels."
        )
    notes = [_spellings(of_label)] if len(of_label) > 2 else []
    if positive is None:
        positive = _obvious_positive(column, known)
        if positive is None:
            raise InputError(
                f"Is {column!r} the probability of {known[0]!r} or of {known[1]!r}? Say so: "
                f"--positive {shlex.quote(known[1])} (positive=...). Or {_if_confidence(column)}."
            )
        notes.append(f"{column} is read as the probability of {positive!r} (--positive).")
    positive = as_text(positive)
    chosen = [label for label in known if label == positive] or [
        label for label in known if spelled_alike(label) == spelled_alike(positive)
    ]
    if len(chosen) != 1:
        raise InputError(
            f"--positive {shlex.quote(positive)} is not a label; {label_column!r} holds "
            f"{listed(sorted(known))}."
        )
    other = next(label for label in known if label != chosen[0])
    return ClassMatch([other, chosen[0]], of_label, notes)


def _one_spelling(labels: Sequence[str]) -> dict[str, str]:
    """Return one spelling for those that mean the same, where that leaves two classes."""
    alike: dict[str, list[str]] = {}
    for label in sorted(labels, key=lambda text: (text != text.strip(), text)):
        alike.setdefault(truth_folded(label), []).append(label)
    if len(alike) != 2:
        return {label: label for label in labels}
    return {label: group[0] for group in alike.values() for label in group}


def _spellings(of_label: dict[str, str]) -> str:
    pairs = [f"{label!r} as {name!r}" for label, name in of_label.items() if label != name]
    return f"Labels that differ in spelling only are read as one class: {', '.join(pairs[:5])}."


def positive_of(classes: Sequence[str], positive: Any) -> str:
    """Return the class that a single column is the probability of: the second of two."""
    if positive is not None:
        raise InputError("--positive and --classes say the same of a single column. Pass one.")
    if len(classes) != 2:
        raise InputError(
            f"--classes names {len(classes)} classes ({listed(classes)}) for a single column of "
            "probabilities. Name two: the column is the probability of the second."
        )
    return classes[1]


def class_finder(classes: Sequence[Any]) -> Callable[[str | None], Any]:
    """Return a function from the text of a later label to its class, None where there is none.

    A text is read as ``hetcal fit`` would read a column of it: 1.0 is 1, and what differs only in
    case, in spaces or in how truth is written is the same, where no two classes are.

    Examples
    --------
    >>> find = class_finder([0, 1])
    >>> find("1.0"), find(" 0"), find("True"), find("yes"), find(None)
    (1, 0, 1, None, None)
    """
    names = [as_text(label) for label in classes]
    known = [
        (same, dict(zip(map(same, names), classes, strict=True)))
        for same in (str.strip, folded, truth_folded)
        if len(set(map(same, names))) == len(names)
    ]

    @lru_cache(maxsize=_MOST_CLASSES)
    def find(text: str | None) -> Any:
        if text is None:
            return None
        for spelled in (text, as_text(infer_column([text])[0])):
            for same, of_name in known:
                if same(spelled) in of_name:
                    return of_name[same(spelled)]
        return None

    return find


def _match(
    columns: Sequence[str], labels: Sequence[str], stars: Sequence[str] | None, same: Fold
) -> ClassMatch | None:
    if not labels or len(labels) > _MOST_CLASSES:
        return None
    wanted = {same(label) for label in labels}
    for names in _candidates(columns, stars):
        by_name = {same(name): name for name in names}
        if len(by_name) == len(names) and wanted <= set(by_name):
            return _agreed(names, labels, same)
    return None


def _agreed(names: Sequence[str], labels: Sequence[str], same: Fold) -> ClassMatch:
    meant: dict[str, list[str]] = {}
    for label in labels:
        meant.setdefault(same(label), []).append(label)
    # One spelling in the labels is the class; several are put together under the column's.
    classes = [
        meant[same(name)][0] if len(meant.get(same(name), [])) == 1 else name for name in names
    ]
    by_fold = {same(name): label for name, label in zip(names, classes, strict=True)}
    notes = []
    changed = [label for label in labels if label not in names]
    if changed:
        notes.append(
            f"Labels {listed(sorted(changed), 5)} are matched with the columns' names "
            f"{listed(names, 5)} although they are written differently."
        )
    unseen = [name for name in classes if same(name) not in meant]
    if unseen:
        notes.append(f"No row has the label {listed(unseen, 5)}; the class is kept all the same.")
    return ClassMatch(classes, {label: by_fold[same(label)] for label in labels}, notes)


def _candidates(columns: Sequence[str], stars: Sequence[str] | None) -> Iterator[list[str]]:
    """Yield readings of the columns' names: the pattern's, then without beginnings and ends."""
    if stars is not None:
        yield list(stars)
    before = len(_common_beginning(columns))
    after = len(_common_beginning([name[::-1] for name in columns]))
    shortest = min(map(len, columns))
    for end in range(after + 1):
        for start in range(min(before, shortest - end), -1, -1):
            yield [name[start : len(name) - end] for name in columns]


def _shown_names(columns: Sequence[str], stars: Sequence[str] | None) -> list[str]:
    if stars is not None:
        return list(stars)
    common = _common_beginning(columns)
    cut = len(re.sub(r"[^_\W]+$", "", common)) if common not in columns else 0
    return [name[cut:] for name in columns]


def _common_beginning(names: Sequence[str]) -> str:
    first, last = min(names), max(names)
    length = next((i for i, c in enumerate(first) if last[i : i + 1] != c), len(first))
    return first[:length]


def _obvious_positive(column: str, labels: Sequence[str]) -> str | None:
    named = [label for label in labels if column in (label, f"p_{label}", f"proba_{label}")]
    if len(named) == 1:
        return named[0]
    ones = [label for label in labels if truth_folded(label) == "1"]
    zeros = [label for label in labels if truth_folded(label) == "0"]
    return ones[0] if len(ones) == 1 and len(zeros) == 1 else None


def _if_confidence(column: str) -> str:
    return (
        "if it is the confidence in a predicted class, pass --predicted COLUMN --confidence "
        f"{shlex.quote(column)}"
    )


def _suggested(labels: Sequence[str], n: int) -> list[str]:
    """Return as many names as there are columns, in the hope that they are in order."""
    known = sorted(label for label in labels if label not in MISSING)
    return known if len(known) == n else [*known, "..."]


def as_list(names: Sequence[str]) -> str:
    """Return names as an option takes them, ready for a shell."""
    cells = [f'"{name}"' if "," in name else name for name in names]
    return shlex.quote(",".join(cells))
