"""The streams of all groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal._stored import expect, restored, stored
from hetcal._stored.fields import text
from hetcal._typing import Matrix, Rows
from hetcal.monitor.groups import ALL, KINDS, Group, Members
from hetcal.monitor.label_evidence import LabelEvidence
from hetcal.monitor.labels import LabelSums
from hetcal.monitor.stream import Stream

#: Where a file keeps the streams of a kind, by name.
_STORED_AS = {"class": "class_streams_", "by": "named_streams_"}


def _streams(value: Any) -> bool:
    return all(isinstance(stream, Stream) for stream in value.values())


@stored({"by_group": _streams}, inline=True)
@dataclass(frozen=True, eq=False)
class Streams:
    """One stream per group.

    Attributes
    ----------
    by_group : dict
        From the group to its :class:`Stream`.
    """

    by_group: dict[Group, Stream]

    @classmethod
    def start(
        cls,
        bins: Rows,
        members: Members,
        usual: Callable[[NDArray[np.bool_] | None], list[LabelSums]],
    ) -> Streams:
        """Start the streams of all reference items, in these bins, and of each group of them.

        ``usual`` returns the label sums of some reference items, or (None) of all: by calibrated
        probabilities and, where they are known, by those that the classifier has stated.
        """
        own_bins = {ALL: bins} | {group: bins[:, own] for group, own in members.items()}
        streams = {}
        for group, part in own_bins.items():
            sums = usual(members.get(group))
            streams[group] = Stream.start(part, sums[0], LabelEvidence.start(sums))
        return cls(streams)

    @property
    def all(self) -> Stream:
        """The stream of all items."""
        return self.by_group[ALL]

    def of_kind(self, kind: str) -> dict[str, Stream]:
        """Return the streams of one kind of groups by name."""
        return {name: stream for (of, name), stream in self.by_group.items() if of == kind}

    def sorted(self) -> list[tuple[Group, Stream]]:
        """Return groups and streams: all items, classes, sub-populations."""
        return sorted(self.by_group.items(), key=lambda pair: KINDS.index(pair[0][0]))

    def map(self, change: Callable[[Stream], Stream]) -> Streams:
        """Return the streams, each of them changed."""
        return Streams({group: change(stream) for group, stream in self.by_group.items()})

    def with_groups(self, groups: Iterable[Group], most: int) -> Streams:
        """Add streams without reference for new groups, as long as there are few of their kind."""
        streams = dict(self.by_group)
        for group in groups:
            n_of_kind = sum(kind == group[0] for kind, _ in streams)
            if group not in streams and n_of_kind < most:
                streams[group] = self.new_stream()
        return Streams(streams)

    def new_stream(self) -> Stream:
        """Return a stream without reference items: a new group is compared with its own past."""
        nobody = np.zeros((len(self.all.base), 0), dtype=np.int64)
        return Stream.start(nobody, self.all.usual, self.all.label_evidence.reset())

    def counted(self, flags: NDArray[np.bool_], members: Members) -> Streams:
        """Count new items for all and for each group that has a stream."""
        streams = self.by_group | {ALL: self.all.counted(flags)}
        for group, own in members.items():
            if group in streams:
                streams[group] = streams[group].counted(flags[own])
        return Streams(streams)

    def with_labels(self, members: Members, Q: Matrix, codes: Rows) -> Streams:
        """Count labels for all items and for each group that has a stream."""
        streams = self.by_group | {ALL: self.all.with_labels(Q, codes)}
        for group, own in members.items():
            if group in streams:
                streams[group] = streams[group].with_labels(Q[own], codes[own])
        return Streams(streams)

    def merged(self, other: Streams, most: int, width: int) -> Streams:
        """Add the items of another process."""
        streams = self.with_groups(other.by_group, most).by_group
        return Streams(
            {
                group: stream.merged(other.by_group[group], width)
                if group in other.by_group
                else stream
                for group, stream in streams.items()
            }
        )

    def with_reference_of(self, other: Streams) -> Streams:
        """Give each stream the reference items of its group in other streams."""
        nobody = other.new_stream()
        return Streams(
            {
                group: stream.with_reference_of(other.by_group.get(group, nobody))
                for group, stream in self.by_group.items()
            }
        )

    def to_stored(self) -> dict[str, Any]:
        """Return the parts that a file keeps."""
        kinds = {name: self.of_kind(kind) for kind, name in _STORED_AS.items()}
        return {"stream_": self.all} | kinds

    @classmethod
    def from_stored(cls, state: dict[str, Any]) -> Streams:
        """Take the streams out of the parts that a file keeps."""
        by_group = {ALL: state.pop("stream_")}
        for kind, name in _STORED_AS.items():
            streams = state.pop(name)
            named = isinstance(streams, dict) and all(map(text, streams))
            expect(named, cls, "have groups without a name")
            by_group |= {(kind, group): stream for group, stream in streams.items()}
        return restored(cls, by_group=by_group)
