"""How far long work is, for whoever wants to know: one context for all estimators and functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[int, int, str], object]

_listener: ContextVar[Listener | None] = ContextVar("hetcal progress", default=None)


@contextmanager
def report_progress(listener: Listener) -> Iterator[None]:
    """Call ``listener(done, total, what)`` while hetcal works inside the ``with`` block.

    Work inside work reports too: the experts of a hybrid while it is fitted, neighbourhoods while
    hidden heterogeneity is measured. Other threads and processes do not.

    Examples
    --------
    >>> import hetcal
    >>> from hetcal.datasets import make_hidden_heterogeneity
    >>> data = make_hidden_heterogeneity(100, random_state=0)
    >>> hybrid = hetcal.HybridCalibrator("neighbours", n_estimators=5)
    >>> with hetcal.report_progress(lambda done, total, what: print(f"{done}/{total} {what}")):
    ...     hybrid = hybrid.fit(data.X, data.y, y_proba=data.y_proba)
    1/3 global
    2/3 5-nearest-log
    3/3 5-nearest-p
    """
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


def progressed(done: int, total: int, what: str) -> None:
    """Tell the listener, where there is one."""
    listener = _listener.get()
    if listener is not None:
        listener(done, total, what)
