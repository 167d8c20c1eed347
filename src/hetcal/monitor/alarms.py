"""When a stream raises an alarm, and the alarms that were raised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal._stored import stored
from hetcal._stored.fields import count, list_of, number, text
from hetcal._typing import Matrix, Rows
from hetcal.monitor import window
from hetcal.monitor.groups import ALL, Group, title

MOST_ALARMS = 1000
_ALARM = {"time": count, "who": text, "test": text, "score": text}
_OF_LABELS = {"labels": count, "since": count, "log10_evidence": number()}


@dataclass(frozen=True)
class AlarmRule:
    """What the tests are compared with.

    Attributes
    ----------
    rate : float
        Probability of a false alarm of the stream of all items, and again of any group. Half of it
        belongs to the martingale, half to the windowed test. And once more that of any test of
        labels.
    width, horizon : int
        Of the windowed test.
    max_groups : int
        Groups of a kind that share the rate.
    scores : list of str
        The names of the scores.
    classes : list
        The class labels.
    every : int
        Of so many items in a row the tests see one.
    """

    rate: float
    width: int
    horizon: int
    max_groups: int
    scores: list[str]
    classes: list[Any]
    every: int = 1

    def tested(self, before: int, n_items: int) -> NDArray[np.bool_]:
        """Return which of the items after so many others the tests see."""
        return (before + np.arange(n_items)) % self.every == 0

    def log_bound(self, group: Group = ALL) -> float:
        """Return the logarithm of the martingale at which a group alarms."""
        return float(np.log(2 * (1.0 if group == ALL else self.max_groups) / self.rate))

    def log_label_bound(self, group: Group = ALL) -> float:
        """Return the logarithm of the label evidence at which a group alarms.

        The rate is given once more to labels: half of it to the stream of all items, half in equal
        parts to the classes and names that there may be.
        """
        return float(np.log(2 * (1.0 if group == ALL else 2 * self.max_groups) / self.rate))

    def window_bound(self) -> float:
        """Return the windowed statistic at which the stream of all items alarms."""
        return window.bound(self.width, self.horizon, self.rate / 2 / len(self.scores))


def _alarm(value: Any) -> bool:
    fields = _ALARM | _OF_LABELS
    known = isinstance(value, dict) and set(_ALARM) <= set(value) <= set(fields)
    return known and all(fields[name](part) for name, part in value.items())


@stored({"raised": list_of(_alarm, MOST_ALARMS)}, inline=True)
@dataclass(frozen=True)
class Alarms:
    """The alarms since the last reset, by time; at most one per group and test.

    Attributes
    ----------
    raised : list of dict
        ``time`` (items since the beginning), ``who`` (the group), ``test``, ``score``. An alarm
        from labels also has ``labels`` (counted by then), ``since`` (the label at which the change
        most likely began; not after a merge) and ``log10_evidence``.
    """

    raised: list[dict[str, Any]]

    @property
    def first(self) -> dict[str, Any] | None:
        """The first one."""
        return self.raised[0] if self.raised else None

    def have_named(self, group: Group) -> bool:
        """Tell whether a group has raised an alarm."""
        return any(alarm["who"] == title(group) for alarm in self.raised)

    def plus(self, group: Group, test: str, score: str, time: int, **more: Any) -> Alarms:
        """Add an alarm, unless this group and test have raised one."""
        alarm = {"time": time, "who": title(group), "test": test, "score": score} | more
        known = any((a["who"], a["test"]) == (alarm["who"], test) for a in self.raised)
        if known or len(self.raised) >= MOST_ALARMS:
            return self
        return Alarms(_by_time([*self.raised, alarm]))

    def plus_first(
        self,
        group: Group,
        test: str,
        by_score: Matrix,
        over: NDArray[np.bool_],
        times: Rows,
        rule: AlarmRule,
    ) -> Alarms:
        """Add an alarm for the first item that is over the bound; it names the larger score."""
        if not over.any():
            return self
        first = int(over.argmax())
        score = rule.scores[int(by_score[:, first].argmax())]
        return self.plus(group, test, score, int(times[first]))

    def merged(self, other: Alarms) -> Alarms:
        """Return the alarms of both."""
        return Alarms(_by_time(self.raised + other.raised)[:MOST_ALARMS])


def _by_time(alarms: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(alarms, key=lambda alarm: alarm["time"])
