"""Waiting for other processes and threads, on a machine however busy."""

from __future__ import annotations

import time
from collections.abc import Callable

# Seconds after which what does not come is called missing. Nothing that works takes as long, even
# where a hundred processes share a core; only a test that fails anyway waits to the end.
PATIENCE = 600.0


def wait_until(there: Callable[[], object], what: str) -> None:
    """Return as soon as ``there()`` is true; what is waited for is named when it never is."""
    end = time.monotonic() + PATIENCE
    while not there():
        assert time.monotonic() < end, f"waited in vain: {what}"
        time.sleep(0.005)
