"""The command line."""

from __future__ import annotations

import atexit
import gc
import os
from collections.abc import Sequence

__all__ = ["main"]

# Objects made since the last look for unused ones; more than the start of a command makes.
_COLLECT_AFTER = 500_000


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``hetcal`` with the given arguments (those of the process when None).

    Always ends with ``SystemExit``: 0 done, 1 could not be done, 2 the command was not understood,
    130 interrupted.
    """
    # Before scikit-learn is loaded. Threads of OpenMP that wait in a loop take the processor from
    # those that they wait for where cores are shared with others; sleeping ones do not.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # Else the collector looks through all modules again and again while they load, and once more
    # at the end, when the memory is given back anyhow: an eighth of the time for a few rows.
    gc.set_threshold(_COLLECT_AFTER)
    atexit.register(gc.freeze)
    from hetcal.cli._app import run

    run(arguments)
