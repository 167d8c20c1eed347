"""Who computes: threads of this process, or workers of the joblib backend that the user chose.

Kernels use threads of their own. Where :func:`joblib.parallel_config` names a backend whose workers
are other processes ("loky", "dask", "ray"), the long loops are cut into pieces that go through
``joblib.Parallel``; each piece runs with one thread there. Either way every piece is computed by
the same code with the same seeds, so that results do not depend on it, to the last bit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, cpu_count, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from numpy.typing import ArrayLike

from hetcal.kernels._backend import native
from hetcal.kernels._checks import aligned

_Result = TypeVar("_Result")
_PIECES_PER_WORKER = 4  # so that workers that had easy pieces can take others


def n_threads(n_jobs: int | None) -> int:
    """Return how many threads a kernel may use here: never more than this machine has cores.

    A file or a user may ask for thousands, a cluster may have more workers than this machine has
    cores; a task that runs in a worker itself has one core.
    """
    if n_jobs == 1:
        return 1
    if _other_processes() and _inside_dask():
        return 1
    return min(effective_n_jobs(n_jobs), cpu_count())


def n_workers(n_jobs: int | None) -> int:
    """Return how many workers in other processes the work can be spread over; 1 for none."""
    if n_jobs == 1 or not _other_processes() or _inside_dask():
        return 1
    return effective_n_jobs(n_jobs)


def pieces(cost: ArrayLike, workers: int) -> list[slice]:
    """Cut a list of tasks into pieces of about equal cost, several per worker.

    Examples
    --------
    >>> pieces([7, 0, 0, 0, 0, 0, 0, 0], workers=1)
    [slice(0, 1, None), slice(1, 5, None), slice(5, 8, None)]
    """
    done = np.cumsum(np.asarray(cost, dtype=np.float64) + 1)  # a task is never for nothing
    n = min(len(done), _PIECES_PER_WORKER * workers)
    if n == 0:
        return []
    edges = np.searchsorted(done, done[-1] * np.arange(1, n) / n, side="left") + 1
    edges = np.unique(np.concatenate([[0], edges, [len(done)]]))
    return [slice(int(a), int(b)) for a, b in pairwise(edges)]


def spread(
    function: Callable[..., _Result], arguments: Iterable[tuple], n_jobs: int | None
) -> Iterator[_Result]:
    """Yield ``function(*arguments)`` of each piece, computed by the workers, in order.

    Large arrays should be arguments of their own, the same object in each piece: backends then send
    them once.
    """
    compiled = native() is not None
    return iter(
        Parallel(n_jobs=n_jobs, return_as="generator")(
            delayed(_in_worker)(function, compiled, *given) for given in arguments
        )
    )


def _in_worker(function: Callable[..., _Result], compiled: bool, *arguments: Any) -> _Result:
    if (native() is not None) != compiled:
        raise RuntimeError(
            f"hetcal {'uses' if compiled else 'does not use'} its compiled core here, but a worker "
            "does the opposite, and the results would differ. Install the same hetcal on all "
            "machines, or set HETCAL_CORE=pure everywhere."
        )
    return function(*aligned(*arguments))


def _other_processes() -> bool:
    """Return whether the user chose a backend whose workers do not share our memory."""
    backend = get_active_backend(prefer="threads")[0]
    return not any(getattr(backend, name, False) for name in ("uses_threads", "supports_sharedmem"))


def _inside_dask() -> bool:
    """Return whether this is a task of a dask worker, where joblib's backend is dask's again."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return False
    try:
        distributed.get_worker()
    except (AttributeError, ValueError):
        return False
    return True
