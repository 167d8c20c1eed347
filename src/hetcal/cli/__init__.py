"""The command line."""

from __future__ import annotations

import os
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``hetcal`` with the given arguments (those of the process when None).

    Always ends with ``SystemExit``: 0 done, 1 could not be done, 2 the command was not understood,
    130 interrupted.
    """
    # Before scikit-learn is loaded. Threads of OpenMP that wait in a loop take the processor from
    # those that they wait for where cores are shared with others; sleeping ones do not.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from hetcal.cli._app import run
    from hetcal.cli._deferred import defer

    # A third of the start; scikit-learn loads it for one function that predictions do not call.
    defer("scipy.stats")
    run(arguments)
