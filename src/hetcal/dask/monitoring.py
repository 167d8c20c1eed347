"""Monitoring of dask collections: every partition counts, and the counts are merged as a tree."""

from __future__ import annotations

from typing import Any

from hetcal.batches.packed import Packed
from hetcal.dask._needs import need_dask
from hetcal.dask._shared import as_node, check_collections, check_rows, given_output, pack
from hetcal.monitor import SupportMonitor
from hetcal.monitor.shards import ShardCounts


def update_monitor(
    monitor: SupportMonitor,
    X: Any,
    *,
    y_proba: Any = None,
    logits: Any = None,
    y: Any = None,
    by: Any = None,
) -> Any:
    """Return the monitor after the items of a dask array or DataFrame, lazily.

    Each partition is a shard: an empty monitor with the same reference
    (:meth:`SupportMonitor.shard <hetcal.SupportMonitor.shard>`), updated with the partition's
    items in one batch. Shards are merged in pairs of neighbours, then pairs of pairs, and the last
    one into a copy of ``monitor`` (:meth:`SupportMonitor.merge <hetcal.SupportMonitor.merge>`), so:
    counts add up; the evidence is the mean of the martingales of all partitions; the time of an
    alarm counts from the beginning of its partition. The result is the same, to the bit, wherever
    the partitions are computed.

    Parameters
    ----------
    monitor : SupportMonitor
        Fitted. It stays as it is.
    X, y_proba, logits
        As in :func:`predict_proba`.
    y, by : dask array of shape (n,) or dask Series, optional
        Labels that are known, and the sub-population of each item.

    Returns
    -------
    dask.delayed.Delayed
        ``compute()`` gives a :class:`~hetcal.SupportMonitor`.
    """
    need_dask()
    if not isinstance(monitor, SupportMonitor):
        raise TypeError(
            f"update_monitor needs a SupportMonitor; got {type(monitor).__name__}. Make one with "
            "SupportMonitor(calibrator).fit(X, y_proba=...)."
        )
    if X is None:
        raise TypeError("update_monitor needs X: how well an item is covered is seen in features.")
    from dask.delayed import delayed

    monitor.frame()  # fits itself where that needs nothing, or says what it needs
    name, output = given_output(y_proba, logits)
    given = {"X": X, name: output, "y": y, "by": by}
    given = {key: value for key, value in given.items() if value is not None}
    kind = check_collections(**given)
    parts = {key: _partitions(value, kind) for key, value in given.items()}
    node = as_node(pack(monitor))
    n = len(parts[name])
    count, merge = delayed(_counted, pure=True), delayed(_merged, pure=True)
    counts = [
        count(node, number, n, {key: every[number] for key, every in parts.items()})
        for number in range(n)
    ]
    while len(counts) > 1:
        counts = [merge(node, *pair) if len(pair) == 2 else pair[0] for pair in _pairs(counts)]
    return delayed(_finished, pure=True)(node, counts[0])


def _pairs(things: list[Any]) -> list[list[Any]]:
    return [things[start : start + 2] for start in range(0, len(things), 2)]


def _partitions(value: Any, kind: str) -> list[Any]:
    if kind == "array" and value.ndim > 1:
        value = value.rechunk({1: -1})
    parts = value.to_delayed()
    return parts.ravel().tolist() if kind == "array" else list(parts)


def _counted(packed: Packed, number: int, of: int, part: dict[str, Any]) -> ShardCounts:
    shard = packed.unpack().shard(number, of)
    output = part["y_proba"] if "y_proba" in part else part["logits"]
    check_rows(output, **{name: part.get(name) for name in ("X", "y", "by")})
    if len(output):
        shard.update(**part)
    return ShardCounts.from_shard(shard, of)


def _merged(packed: Packed, first: ShardCounts, second: ShardCounts) -> ShardCounts:
    monitor = packed.unpack()
    return ShardCounts.from_shard(first.to_shard(monitor).merge(second.to_shard(monitor)), first.of)


def _finished(packed: Packed, counts: ShardCounts) -> SupportMonitor:
    import pickle

    # A copy of its own: the unpacked one serves other tasks of the process.
    monitor = pickle.loads(packed.content)
    return monitor.merge(counts.to_shard(monitor))
