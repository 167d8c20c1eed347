"""What a calibrator's file says about itself; read without the calibrators and their libraries."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hetcal._exceptions import FileFormatError
from hetcal.persistence import container


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a file holds and how it was made, without loading its arrays.

    Returns
    -------
    dict
        - ``format_version``, ``file_bytes``, ``array_bytes`` (in memory), ``n_arrays``;
        - ``made``: versions of hetcal, NumPy and scikit-learn, and the date;
        - ``calibrator``: ``kind``, ``n_items``, ``classes``, ``input`` (y_proba or logits),
          ``features`` (name, kind, number of levels), ``n_features``, ``settings``,
          ``forget_features``, ``leaf_numbers`` (whether the file says in which leaves each
          calibration item lies);
        - ``metadata``: the notes of whoever saved it.
    """
    try:
        manifest, size, version = container.read_manifest(Path(path))
        table = manifest["arrays"]
        described = {
            "format_version": version,
            "file_bytes": size,
            "n_arrays": len(table),
            "array_bytes": sum(container.raw_bytes(entry, i) for i, entry in enumerate(table)),
        }
        told = {name: manifest[name] for name in ("made", "calibrator", "metadata")}
        if not all(isinstance(part, dict) for part in told.values()):
            raise TypeError("It is no mapping.")
        return described | told
    except FileFormatError as error:
        raise FileFormatError(f"{Path(path).name}: {error}") from error
    except (KeyError, TypeError) as error:
        raise FileFormatError(f"{Path(path).name}: the description is incomplete.") from error
