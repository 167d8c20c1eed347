"""What is not installed is said once, with the remedy."""

from __future__ import annotations

from importlib.util import find_spec

_NEEDED = ("dask", "distributed", "pyarrow")


def need_dask() -> None:
    """Raise where dask is not installed, and say how to get it."""
    absent = [name for name in _NEEDED if find_spec(name) is None]
    if absent:
        raise ImportError(
            f"hetcal.dask needs {' and '.join(absent)}. Install with: pip install 'hetcal[dask]'."
        )
