"""Parts of a monitor in other processes: an empty one to begin with, its counts to send back."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal.monitor.stream import Stream

_SEED = 4  # the monitor's own draws use 0 to 3


def new_shard(monitor: Any, number: int, of: int) -> Any:
    """Return a monitor with the same reference that has seen nothing."""
    shard = copy.copy(monitor)
    seeds = np.random.SeedSequence([monitor.random_state, _SEED, number])
    shard.random_state = int(seeds.generate_state(1)[0])
    # Half of the rate for the look at the merged evidence, half for all shards together.
    shard._alarm_share = monitor._alarm_share / (2 * of)
    shard.stream_ = monitor.stream_.emptied()
    for kind in ("class_streams_", "named_streams_"):
        streams = getattr(monitor, kind)
        setattr(shard, kind, {name: stream.emptied() for name, stream in streams.items()})
    shard.alarms_, shard.history_, shard._origins = [], monitor.history_[:0], []
    return shard


@dataclass(frozen=True)
class ShardCounts:
    """What a shard has counted, without the calibrator and the reference, which all have."""

    of: int
    stream: Stream
    class_streams: dict[str, Stream]
    named_streams: dict[str, Stream]
    alarms: list[dict[str, Any]]
    history: NDArray[np.float64]
    origins: list[str]

    @classmethod
    def taken(cls, shard: Any, of: int) -> ShardCounts:
        """Return the counts of a shard."""
        return cls(
            of,
            _light(shard.stream_),
            {name: _light(stream) for name, stream in shard.class_streams_.items()},
            {name: _light(stream) for name, stream in shard.named_streams_.items()},
            shard.alarms_,
            shard.history_,
            shard._origins,
        )

    def given_to(self, monitor: Any) -> Any:
        """Return the shard again, by the monitor that it was made from."""
        shard = new_shard(monitor, 0, self.of)
        shard.stream_ = _whole(self.stream, monitor.stream_)
        nobody = monitor._empty_stream()
        for kind, counted in (
            ("class_streams_", self.class_streams),
            ("named_streams_", self.named_streams),
        ):
            known = getattr(monitor, kind)
            streams = {name: _whole(s, known.get(name, nobody)) for name, s in counted.items()}
            setattr(shard, kind, streams)
        shard.alarms_, shard.history_ = list(self.alarms), self.history
        shard._origins = list(self.origins)
        return shard


def _light(stream: Stream) -> Stream:
    """Leave out what the reference tells."""
    return replace(stream, base=stream.base[:, :0], usual=stream.labels)


def _whole(stream: Stream, like: Stream) -> Stream:
    return replace(stream, base=like.base, usual=like.usual)
