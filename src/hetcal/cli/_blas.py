"""How many threads products of matrices may use in a command: one, many for a wide table.

On a few dozen columns the matrices are small: threads double the processor time, and where cores
are shared with others they wait for each other. With hundreds of columns they are a gain. Whoever
sets the number in the environment decides.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping

# Of these libraries the first two come with numpy and scipy; the variable of OpenMP is for all.
_LIBRARIES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_DECIDE = ("OMP_NUM_THREADS", *_LIBRARIES, "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_WIDE = 300  # columns
_OURS = "HETCAL_ONE_BLAS_THREAD"


def start_with_one_thread(environment: MutableMapping[str, str] = os.environ) -> None:
    """Ask for one thread, unless the user has asked for a number; before numpy is loaded."""
    if not any(name in environment for name in _DECIDE):
        environment.update(dict.fromkeys((*_LIBRARIES, _OURS), "1"))


def allow_threads(n_columns: int, n_threads: int) -> None:
    """Let a wide table have the threads that :func:`start_with_one_thread` has put off."""
    if n_columns < _WIDE or _OURS not in os.environ:
        return
    import scipy.linalg  # noqa: F401 - it brings a BLAS of its own

    from hetcal._compat import threadpool_limits

    threadpool_limits(n_threads, user_api="blas")
