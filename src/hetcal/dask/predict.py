"""Calibrated probabilities of dask collections."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal.batches.packed import Packed
from hetcal.dask._needs import need_dask
from hetcal.dask._shared import (
    as_node,
    check_collections,
    check_rows,
    given_output,
    packed_calibrator,
)


def predict_proba(calibrator: Any, X: Any, *, y_proba: Any = None, logits: Any = None) -> Any:
    """Return calibrated probabilities of a dask array or DataFrame; nothing is computed yet.

    Partition by partition this is the calibrator's own ``predict_proba``, to the bit. The
    calibrator is packed now: what becomes of it later does not matter. It goes to each worker once
    and is unpacked once in each process.

    Parameters
    ----------
    calibrator : fitted calibrator, or path
        A path is that of a file from :func:`hetcal.save`; workers need not see it.
    X : dask array or DataFrame of shape (n, d), or None
        The features; None for calibrators that need none.
    y_proba, logits : dask array or DataFrame of shape (n, K)
        The classifier's output, as the calibrator was fitted with; of the same kind as X, with the
        same rows in the same partitions.

    Returns
    -------
    dask array of shape (n, K), or dask DataFrame
        An array for arrays, chunked like X. For DataFrames one with the classes as columns, and the
        index and partitions of X.

    Examples
    --------
    >>> import dask.array as da
    >>> import hetcal.dask
    >>> from hetcal import get_calibrator
    >>> from hetcal.datasets import make_hidden_heterogeneity
    >>> data = make_hidden_heterogeneity(400, random_state=0)
    >>> swc = get_calibrator("swc").fit(data.X, data.y, y_proba=data.y_proba)
    >>> X, P = (da.from_array(a, chunks=(100, -1)) for a in (data.X, data.y_proba))
    >>> Q = hetcal.dask.predict_proba(swc, X, y_proba=P)
    >>> Q.shape, Q.chunks[0]
    ((400, 2), (100, 100, 100, 100))
    >>> bool((Q.compute(scheduler="sync") == swc.predict_proba(data.X, y_proba=data.y_proba)).all())
    True
    """
    need_dask()
    name, output = given_output(y_proba, logits)
    given = {name: output} if X is None else {"X": X, name: output}
    kind = check_collections(**given)
    packed = packed_calibrator(calibrator)
    classes = packed.unpack().classes_
    made = _of_arrays if kind == "array" else _of_frames
    return made(as_node(packed), X, output, name, classes)


def _of_arrays(node: Any, X: Any, output: Any, name: str, classes: NDArray) -> Any:
    import dask.array as da

    pairs: list[Any] = [] if X is None else [X, "ij"]
    pairs += [output, "ik"[: output.ndim]]
    return da.blockwise(
        _block_alone if X is None else _block,
        "il",
        *pairs,
        node,
        None,
        name,
        None,
        new_axes={"l": len(classes)},
        concatenate=True,  # columns in several chunks
        align_arrays=False,
        dtype=np.float64,
        meta=np.empty((0, len(classes))),
    )


def _of_frames(node: Any, X: Any, output: Any, name: str, classes: NDArray) -> Any:
    import dask.dataframe as dd

    columns = pd.Index(classes)
    index = (output if X is None else X)._meta.index
    meta = pd.DataFrame(np.empty((0, len(classes))), columns=columns, index=index)
    frames = [output] if X is None else [X, output]
    return dd.map_partitions(
        _part_alone if X is None else _part,
        *frames,
        node,
        name,
        meta=meta,
        align_dataframes=False,
    )


def _block_alone(output: Any, packed: Packed, name: str) -> NDArray[np.float64]:
    return _block(None, output, packed, name)


def _block(X: Any, output: Any, packed: Packed, name: str) -> NDArray[np.float64]:
    check_rows(output, X=X)
    calibrator = packed.unpack()
    if not len(output):  # an empty partition
        return np.empty((0, len(calibrator.classes_)))
    return np.asarray(calibrator.predict_proba(X, **{name: output}))


def _part_alone(output: Any, packed: Packed, name: str) -> pd.DataFrame:
    return _part(None, output, packed, name)


def _part(X: Any, output: Any, packed: Packed, name: str) -> pd.DataFrame:
    Q = _block(X, output, packed, name)
    return pd.DataFrame(Q, columns=pd.Index(packed.unpack().classes_), index=output.index)
