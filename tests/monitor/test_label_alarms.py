"""Alarms from labels: their rate, what they find, and that looking often costs nothing."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import hetcal
from hetcal.monitor.alarms import AlarmRule, Alarms
from hetcal.monitor.groups import ALL
from hetcal.monitor.label_evidence import BETS, LabelEvidence, bounded_excesses
from hetcal.monitor.label_testing import run_label_tests
from hetcal.monitor.labels import LabelSums
from hetcal.monitor.streams import Streams

RULE = AlarmRule(0.1, 100, 1000, 20, ["support"], [0, 1])


def draw(rng, n, shift=0.0):
    """Return probabilities of two classes, and labels whose log-odds are shifted."""
    z = rng.normal(0.0, 1.5, n)
    q = 1 / (1 + np.exp(-z))
    codes = (rng.random(n) < 1 / (1 + np.exp(-z - shift))).astype(np.int64)
    return np.column_stack([1 - q, q]), codes


def exact():
    """Return tests that tolerate nothing, of one source."""
    return LabelEvidence.start([LabelSums.empty(2)])


def bet_in_a_loop(excess, low, high):
    """Bet one label at a time, in plain numbers."""
    capital = np.append(0.5, np.full(len(BETS), 0.5 / len(BETS)))
    totals = []
    for n, r in enumerate(excess):
        paid = capital[0] * 0.5 / (n + 1 + 50)
        capital[0] -= paid
        capital[1:] += paid / len(BETS)
        capital[1:] *= (1 + BETS * r) / (1 + BETS * np.where(BETS > 0, high, low))
        totals.append(capital.sum())
    return np.array(totals)


def test_evidence_is_that_of_a_loop_whatever_the_batches():
    Q, codes = draw(np.random.default_rng(0), 2500)
    evidence = LabelEvidence.start([LabelSums.over(Q[:50], codes[:50])])
    q, y = Q[:, 1], codes
    by_hand = [((q > 0.5) == y) - Q.max(axis=1), -(2 * q - 1) * (y - q), y - q]
    after, logs = evidence.after(bounded_excesses([Q], codes))  # more than are bet on at once
    for test, excess in enumerate(by_hand):
        expected = bet_in_a_loop(excess, evidence.low[test], evidence.high[test])
        np.testing.assert_allclose(np.exp(logs[test]), expected)
        assert after.since[test] == expected.argmin() + 1
    half, _ = evidence.after(bounded_excesses([Q[:900]], codes[:900]))
    rest, last = half.after(bounded_excesses([Q[900:]], codes[900:]))
    np.testing.assert_allclose(last, logs[:, 900:])
    np.testing.assert_array_equal(rest.since, after.since)


def test_no_bet_is_expected_to_win_while_the_mean_is_within_the_band():
    usual = LabelSums(400, np.array([8.0, -40.0, 0.0, -20.0]), np.full(4, 100.0), np.zeros(4))
    evidence = LabelEvidence.start([usual])
    # Mean -+ two deviations, and 0; Brier excess is halved, and class 0 says what class 1 does.
    np.testing.assert_allclose(evidence.low, [0.02 - 0.05, (-0.1 - 0.05) / 2, -0.05 - 0.05])
    np.testing.assert_allclose(evidence.high, [0.02 + 0.05, 0.0, 0.0])
    for test, (low, high) in enumerate(zip(evidence.low, evidence.high, strict=True)):
        for mean in (low, 0.0, high):
            # A label of +1 or -1 with this mean: the widest scatter that there is.
            grown = [
                np.exp(evidence.after(np.full((3, 1), r))[0].capital[test, 1:]) for r in (-1.0, 1.0)
            ]
            expected = (1 - mean) / 2 * grown[0] + (1 + mean) / 2 * grown[1]
            entered = (0.5 + 0.5 * 0.5 / 51) / len(BETS)
            assert (expected <= entered * (1 + 1e-12)).all()
            assert (grown[0] > 0).all()


def test_false_alarms_stay_below_the_rate_however_often_one_looks():
    rng = np.random.default_rng(1)
    nobody = np.zeros((1, 0), dtype=np.int64)
    streams = Streams.start(nobody, {}, lambda own: [LabelSums.empty(2)])
    streams = streams.with_groups([("by", "a"), ("by", "b"), ("class", "1")], 20)
    n_alarms = 0
    for _ in range(100):
        Q, codes = draw(rng, 500)
        named = rng.random(500) < 0.5
        members = {("by", "a"): named, ("by", "b"): ~named, ("class", "1"): Q[:, 1] > 0.5}
        n_alarms += bool(run_label_tests(streams, Alarms([]), [Q], codes, members, RULE)[1].raised)
    assert n_alarms <= 0.1 * 100 + 2 * np.sqrt(0.1 * 0.9 * 100)


@pytest.mark.parametrize(
    ("shift", "says"),
    [
        (1.0, "share of 1 higher than the calibrated"),
        (-1.0, "share of 1 lower than the calibrated"),
    ],
)
def test_a_change_is_found_named_and_dated(shift, says):
    rng = np.random.default_rng(2)
    parts = draw(rng, 400), draw(rng, 600, shift)
    Q, codes = (np.concatenate(pair) for pair in zip(*parts, strict=True))
    nobody = np.zeros((1, 0), dtype=np.int64)
    streams = Streams.start(nobody, {}, lambda own: [LabelSums.empty(2)])
    whole = run_label_tests(streams, Alarms([]), [Q], codes, {}, RULE)[1]
    alarm = whole.first
    assert (alarm["who"], alarm["test"]) == ("all items", "labels")
    assert alarm["score"].startswith(says)
    assert 400 < alarm["labels"] < 600
    assert 300 < alarm["since"] < 450
    assert alarm["log10_evidence"] >= RULE.log_label_bound() / np.log(10)
    alarms = Alarms([])
    for row in range(len(codes)):  # one label at a time
        streams, alarms = run_label_tests(
            streams, alarms, [Q[row : row + 1]], codes[row : row + 1], {}, RULE
        )
    assert alarms.first["labels"] == alarm["labels"]
    assert alarms.first["since"] == alarm["since"]


def flipped(data):
    """Return new items with labels of the other class."""
    classes = np.unique(data.cal.y)
    return np.where(data.new.y == classes[0], classes[1], classes[0])


def test_a_monitor_alarms_when_late_labels_contradict_its_probabilities(watch, data, tmp_path):
    monitor = watch()
    X, P = data.new.X, data.new.y_proba
    monitor.update(X, y_proba=P, y=data.new.y, by=data.new_by)
    assert monitor.alarm_ is None
    north = data.new_by == "north"
    monitor.update_labels(X[north], flipped(data)[north], y_proba=P[north], by=data.new_by[north])
    who = {alarm["who"] for alarm in monitor.alarms_}
    assert "by north" in who
    assert "by south" not in who
    assert {alarm["test"] for alarm in monitor.alarms_} == {"labels"}
    hetcal.save(monitor, tmp_path / "m.hetcal")
    again = hetcal.load(tmp_path / "m.hetcal")
    assert again.alarms_ == monitor.alarms_
    assert again.summary() == monitor.summary()
    assert monitor.n_seen_ == len(X)  # labels are no items
    assert monitor.reset().alarm_ is None
    assert monitor.summary()["labels"]["log10_evidence"] == pytest.approx(0.0)


def test_stated_probabilities_are_tested_beside_the_calibrated_ones(watch, hybrid, data):
    for calibrator in (hybrid, watch().calibrator_):
        evidence = watch(calibrator).counts_.streams.all.label_evidence
        assert len(evidence.low) == 6
        P, codes = data.cal.y_proba, np.searchsorted(calibrator.classes_, data.cal.y)
        stated = LabelEvidence.start([LabelSums.over(P, codes)])
        np.testing.assert_allclose(evidence.low[3:], stated.low)


def test_shards_average_their_evidence_and_look_at_half_of_the_rate(watch, data):
    monitor = watch()
    X, P = data.new.X, data.new.y_proba
    shards = [monitor.shard(number, 2) for number in range(2)]
    labels = data.new.y, flipped(data)
    for shard, y in zip(shards, labels, strict=True):
        shard.update_labels(X, y, y_proba=P)
    values = [np.exp(s.counts_.streams.all.label_evidence.log_value) for s in shards]
    monitor.merge(shards[0])
    assert monitor.alarm_ is None
    monitor.merge(shards[1])
    assert monitor.alarm_["test"] == "labels"
    value = monitor.counts_.streams.all.label_evidence.log_value
    assert value == pytest.approx(np.log(np.mean(values)))


def test_a_merge_looks_at_the_labels_of_all(watch, data):
    monitor = watch()
    for number in range(2):
        shard = monitor.shard(number, 2)
        shard.update_labels(data.new.X, flipped(data), y_proba=data.new.y_proba)
        _forget_alarms(shard)
        monitor.merge(shard)
    assert [alarm["test"] for alarm in monitor.alarms_] == ["labels"]
    assert "since" not in monitor.alarm_  # each process has counted labels of its own


def _forget_alarms(shard):
    shard.counts_ = dataclasses.replace(shard.counts_, alarms=Alarms([]))


def test_monitors_that_test_other_labels_are_not_merged(watch, data, hybrid):
    bare = hetcal.SupportMonitor(hybrid, distance=None)
    full = bare.shard(0, 1).fit(data.cal.X, y_proba=data.cal.y_proba)
    with pytest.raises(ValueError, match="monitors that test labels alike"):
        full.merge(bare)


def test_files_of_old_have_no_evidence_and_start_it(watch, data):
    stream = watch().counts_.streams.all
    old = object.__new__(type(stream))
    for name, value in vars(stream).items():
        if name != "label_evidence":
            object.__setattr__(old, name, value)
    old._restore()
    assert len(old.label_evidence.low) == 3  # what was stated of the calibration items is gone
    np.testing.assert_array_equal(old.label_evidence.low, stream.label_evidence.low[:3])


def test_the_rate_is_divided_among_all_that_may_alarm():
    parts = [np.exp(-RULE.log_label_bound(ALL))]
    parts += [np.exp(-RULE.log_label_bound((kind, "a"))) * 20 for kind in ("class", "by")]
    assert sum(parts) == pytest.approx(RULE.rate)


def test_many_classes_are_not_tested_one_by_one():
    assert len(LabelEvidence.start([LabelSums.empty(3)]).low) == 5
    assert len(LabelEvidence.start([LabelSums.empty(30)]).low) == 2
    rng = np.random.default_rng(0)
    Q = rng.dirichlet(np.ones(30), 10)
    assert bounded_excesses([Q], rng.integers(0, 30, 10)).shape == (2, 10)
