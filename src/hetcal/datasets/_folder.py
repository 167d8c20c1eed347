"""Reading and writing the files of a data folder (the cache is one, too)."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

__all__ = ["data_folder", "read", "user_cache_folder", "write"]

Content = dict[str, np.ndarray] | pd.DataFrame


def data_folder() -> Path | None:
    """Folder named by the environment variable ``HETCAL_DATA``, or None."""
    value = os.environ.get("HETCAL_DATA")
    return Path(value).expanduser() if value else None


def user_cache_folder() -> Path:
    """Where downloads are kept: ``HETCAL_CACHE``, else the platform's cache folder."""
    value = os.environ.get("HETCAL_CACHE")
    if value:
        return Path(value).expanduser()
    if os.name == "nt":
        local = os.environ.get("LOCALAPPDATA")
        base = Path(local) if local else Path.home() / "AppData" / "Local"
    else:
        xdg = os.environ.get("XDG_CACHE_HOME")
        base = Path(xdg) if xdg else Path.home() / ".cache"
    return base / "hetcal" / "datasets"


def read(path: Path) -> Content:
    """Arrays of an ``.npz`` file, or the table of a ``.csv.gz`` file.

    The arrays are read-only, because the last files read are kept in memory: ten trials on MNIST
    should not unpack it ten times.
    """
    if path.suffix == ".npz":
        return _read_arrays(path, path.stat().st_mtime_ns)
    return pd.read_csv(path, keep_default_na=False, na_values=[""])


@lru_cache(maxsize=2)
def _read_arrays(path: Path, _modified: int) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as stored:
        arrays = {key: stored[key] for key in stored.files}
    for array in arrays.values():
        array.setflags(write=False)
    return arrays


def write(path: Path, content: Content) -> None:
    """Write so that a reader sees the whole file or none (another process may be loading)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # The suffix stays last: both writers choose the format, or refuse to, by it.
    part = path.with_name(f".{os.getpid()}-{path.name}")
    try:
        if isinstance(content, pd.DataFrame):
            content.to_csv(part, index=False)
        else:
            np.savez_compressed(part, **content)  # type: ignore[arg-type]
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
