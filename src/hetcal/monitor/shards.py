"""The counts of a shard on their way between processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hetcal.monitor.counts import Counts

if TYPE_CHECKING:
    from hetcal.monitor.monitor import SupportMonitor


@dataclass(frozen=True, eq=False)
class ShardCounts:
    """What a shard has counted, without the calibrator and the reference, which all have."""

    of: int
    counts: Counts

    @classmethod
    def from_shard(cls, shard: SupportMonitor, of: int) -> ShardCounts:
        """Return the counts of one of so many shards."""
        return cls(of, shard.counts_.without_reference())

    def to_shard(self, monitor: SupportMonitor) -> SupportMonitor:
        """Return the shard again, by the monitor that it was made from."""
        shard = monitor.shard(0, self.of)
        shard.counts_ = self.counts.with_reference_of(monitor.counts_)
        return shard
