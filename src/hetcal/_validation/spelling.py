"""Names of classes that are written differently and mean the same."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np

from hetcal._validation.text import MISSING, as_text, infer_column

_TRUTH = {"true": "1", "false": "0"}
# "none" may well be a class.
_NOTHING = MISSING - {"None", "none"}


def folded(text: str) -> str:
    """Return the same for spellings that differ in case or in spaces."""
    return re.sub(r"[\s_\-]+", " ", text).strip().casefold()


def truth_folded(text: str) -> str:
    """Return the same for spellings that differ in case, in spaces or in how truth is written."""
    plain = folded(text)
    return _TRUTH.get(plain, plain)


@lru_cache(maxsize=10_000)
def spelled_alike(text: str | None) -> str | None:
    """Return the same for two spellings of a class; None where nothing is said.

    Examples
    --------
    >>> spelled_alike(" New_York") == spelled_alike("new york"), spelled_alike("1.0")
    (True, '1')
    >>> spelled_alike("-1"), spelled_alike("True"), spelled_alike("NA")
    ('-1', '1', None)
    """
    if text is None or text.strip() in _NOTHING:
        return None
    value = infer_column([text])[0]
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return as_text(value) if is_number else truth_folded(text)


def key_of_class(label: Any) -> str:
    """Return the same for all spellings of a class; a word for "missing" is a class here.

    Examples
    --------
    >>> key_of_class("Yes ") == key_of_class("yes"), key_of_class(True) == key_of_class(1.0)
    (True, True)
    >>> key_of_class("NA")
    'NA'
    """
    text = as_text(label)
    return spelled_alike(text) or text.strip()
