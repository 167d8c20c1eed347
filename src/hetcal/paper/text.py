"""Numbers in words, and tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd


def number_of_trials(trials: pd.Series) -> str:
    """Return how many trials some means rest on.

    Examples
    --------
    >>> import pandas as pd
    >>> number_of_trials(pd.Series([2, 10])), number_of_trials(pd.Series([10]))
    ('2 to 10 trials', '10 trials')
    """
    low, high = int(trials.min()), int(trials.max())
    if high == 1:
        return "1 trial"
    return f"{high} trials" if low == high else f"{low} to {high} trials"


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it.

    Examples
    --------
    >>> duration(90), duration(4000), duration(90_000), duration(9e5)
    ('90 seconds', '67 minutes', '25.0 hours', '10 days')
    """
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    if seconds < 2 * 3600:
        return f"{seconds / 60:.0f} minutes"
    if seconds < 72 * 3600:
        return f"{seconds / 3600:.1f} hours"
    return f"{seconds / 86400:.0f} days"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> str:
    """Return a table in Markdown.

    Parameters
    ----------
    head : sequence of str
    rows : iterable of sequence of str
    left : int, default=1
        How many columns are flush left; the others are flush right.

    Examples
    --------
    >>> print(markdown_table(["a", "b"], [["x", "1"]]))
    | a | b |
    | --- | ---: |
    | x | 1 |
    """
    rule = ["---"] * left + ["---:"] * (len(head) - left)
    lines = [head, rule, *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
