"""Half-life and window as the options give them: text that is a number or a duration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from hetcal._exceptions import InputError
from hetcal.calibration.forgetting import are_dates, as_plain_number


def check_span(option: str, span: Any, times: Any) -> Any:
    """Return a span in rows or in the unit of times, or say what is wrong with it.

    Parameters
    ----------
    option : str
        Its name, for errors.
    span : str, number, duration or None
    times : ndarray of shape (n,) or None
        When the new rows were seen; None where rows are counted.
    """
    if span is None:
        return None
    number, dates = as_plain_number(span), times is not None and are_dates(times)
    if times is None:
        expected = "a number of rows above 0 (durations need --time COLUMN)"
    elif dates:
        expected = "a duration with its unit, such as '30 days', since the times are dates"
    else:
        expected = "a number above 0 in the unit of the times, or a duration such as '30 days'"
    is_number = 0 < number < np.inf and not dates
    is_duration = np.isnan(number) and times is not None and _is_duration(span)
    if not (is_number or is_duration):
        raise InputError(f"{option} expected {expected}; got {span!r}.")
    return number if is_number else span


def _is_duration(span: Any) -> bool:
    try:
        return pd.Timedelta(span) > pd.Timedelta(0)
    except (TypeError, ValueError):
        return False
