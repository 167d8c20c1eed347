"""The monitor as people use it: quiet when all is well, quick when it is not, and it remembers."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import hetcal
from hetcal.monitor import window
from hetcal.plotting import MonitorDisplay


def stream(monitor):
    """Return the stream of all items."""
    return monitor.counts_.streams.all


def feed(monitor, X, P, size=100, **more):
    """Update batch by batch."""
    for start in range(0, len(X), size):
        part = slice(start, start + size)
        given = {name: values[part] for name, values in more.items()}
        monitor.update(X[part], y_proba=P[part], **given)
    return monitor


def test_quiet_when_nothing_changes(watch, data, swc, hybrid):
    for calibrator in (swc, hybrid):
        for distance in ("nearest", "isolation", None):
            monitor = watch(calibrator, distance=distance)
            feed(monitor, data.new.X, data.new.y_proba, y=data.new.y, by=data.new_by)
            assert monitor.alarm_ is None
            table = monitor.frame()
            assert table["seen"].tolist() == [100, 200, 300, 400]
            assert table["flagged"].sum() == stream(monitor).n_flagged <= 14
            assert monitor.groups().set_index("name").loc["all items", "labels"] == 400
            assert np.abs(stream(monitor).label_z()).max() < 4


def test_support_is_blind_to_what_is_far_outside_and_the_distance_is_not(watch, data):
    far = data.new.X.copy()
    far[:, -1] += 30
    alone, pair = watch(distance=None), watch()
    assert (alone.p_values(far, y_proba=data.new.y_proba) <= 0.01).mean() < 0.5
    assert (pair.p_values(far, y_proba=data.new.y_proba) <= 0.01).mean() > 0.95
    items = pair.update(far, y_proba=data.new.y_proba)
    assert pair.alarm_["time"] <= 20
    assert pair.alarm_["score"] == "distance"
    assert items["flag"].mean() > 0.95
    assert items["discovery"].mean() > 0.95
    # A distance, not a score of how usual an item is; one column does not outweigh all others.
    assert items["distance"].min() > 3
    farther = far + 1e6 * (np.arange(far.shape[1]) == far.shape[1] - 1)
    distance = pair.update(farther, y_proba=data.new.y_proba)["distance"]
    np.testing.assert_allclose(distance, items["distance"])
    assert any("far outside" in note for note in alone.summary()["notes"])
    assert not pair.summary()["notes"]


def test_low_support_raises_an_alarm_without_any_distance(data):
    cal, new = data.cal, data.new
    inside = np.linalg.norm(cal.X, axis=1) < np.quantile(np.linalg.norm(cal.X, axis=1), 0.6)
    part = hetcal.SimilarityCalibrator("rbf")
    part.fit(cal.X[inside], cal.y[inside], y_proba=cal.y_proba[inside])
    outside = np.linalg.norm(new.X, axis=1) > np.quantile(np.linalg.norm(new.X, axis=1), 0.6)
    monitor = hetcal.SupportMonitor(part, distance=None)
    monitor.update(new.X[outside], y_proba=new.y_proba[outside])
    assert monitor.alarm_["score"] == "support"
    assert {"evidence", "window"} >= {alarm["test"] for alarm in monitor.alarms_}


def test_the_alarm_says_who_drifts(watch, data):
    moved = data.new.X.copy()
    moved[data.new_by == "south", -1] += 8
    monitor = feed(watch(), moved, data.new.y_proba, by=data.new_by)
    groups = monitor.groups().query("kind == 'by'").set_index("name")
    assert groups.loc["south", "alarm"]
    assert not groups.loc["north", "alarm"]
    assert groups["seen"].sum() == 400
    classes = monitor.groups().query("kind == 'class'")
    assert classes["seen"].sum() == 400
    assert classes["reference"].sum() == groups["reference"].sum() == 375


def test_a_new_name_is_compared_with_its_own_past(watch, data):
    monitor = watch(max_groups=3)
    names = np.array(["west", "east"])[np.arange(400) % 2]
    feed(monitor, data.new.X, data.new.y_proba, by=names)
    assert set(monitor.counts_.streams.of_kind("by")) == {"north", "south", "west"}
    assert monitor.counts_.streams.of_kind("by")["west"].base.sum() == 0


def test_the_window_alone_can_tell(watch, data):
    monitor = watch(window=20)
    weak = data.new.X.copy()
    weak[:, -1] += 3
    feed(monitor, weak, data.new.y_proba)
    assert {"evidence", "window"} <= {alarm["test"] for alarm in monitor.alarms_}


def test_split_reference(swc, data):
    held = data.cal.sample(300, random_state=5)
    monitor = hetcal.SupportMonitor(swc, reference="split")
    with pytest.raises(ValueError, match="has not seen"):
        monitor.p_values(data.new.X, y_proba=data.new.y_proba)
    monitor.fit(held.X, y_proba=held.y_proba, by=["a"] * 300)
    assert monitor.summary()["reference"] == {"kind": "split", "items": 200}
    assert feed(monitor, data.new.X, data.new.y_proba).alarm_ is None
    p = monitor.p_values(data.new.X, y_proba=data.new.y_proba, score="support")
    assert abs(p.mean() - 0.5) < 0.1


def test_p_values_count_nothing_and_are_the_same_twice(watch, data):
    monitor = watch()
    X, P = data.new.X, data.new.y_proba
    np.testing.assert_array_equal(monitor.p_values(X, y_proba=P), monitor.p_values(X, y_proba=P))
    assert monitor.n_seen_ == 0
    with pytest.raises(ValueError, match="'all' or one of"):
        monitor.p_values(X, y_proba=P, score="luck")


def test_tables_logits_and_empty_batches(data):
    table = pd.DataFrame(data.cal.X).rename(columns=str)
    table["region"] = data.by
    logits = np.log(data.cal.y_proba)
    swc = hetcal.SimilarityCalibrator().fit(table, data.cal.y, logits=logits)
    monitor = hetcal.SupportMonitor(swc).fit(table, logits=logits)
    items = monitor.update(table[:7], logits=logits[:7], y=[data.cal.y[0], None, *[np.nan] * 5])
    assert len(items) == 7
    assert stream(monitor).labels.n == 1
    assert len(monitor.update(table[:0], logits=logits[:0])) == 0
    assert monitor.frame()["items"].tolist() == [7]


def test_a_restart_loses_nothing(watch, data, tmp_path):
    X, P = data.new.X, data.new.y_proba
    for distance in ("nearest", "isolation", None):
        monitor = watch(distance=distance)
        monitor.update(X[:200], y_proba=P[:200], y=data.new.y[:200], by=data.new_by[:200])
        hetcal.save(monitor, tmp_path / "m.hetcal")
        loaded = hetcal.load(tmp_path / "m.hetcal")
        one, two = (m.update(X[200:] + 1, y_proba=P[200:]) for m in (monitor, loaded))
        pd.testing.assert_frame_equal(one, two)
        assert loaded.summary() == monitor.summary()
        assert loaded.frame()["seen"].tolist() == [200, 400]
        assert repr(loaded) == repr(monitor)


def test_files_without_features(watch, data, tmp_path):
    with pytest.raises(ValueError, match="distance='isolation'"):
        hetcal.save(watch(), tmp_path / "m.hetcal", forget_features=True)
    monitor = watch(distance="isolation")
    hetcal.save(monitor, tmp_path / "m.hetcal", forget_features=True)
    X, P = data.new.X, data.new.y_proba
    loaded = hetcal.load(tmp_path / "m.hetcal")
    np.testing.assert_array_equal(loaded.p_values(X, y_proba=P), monitor.p_values(X, y_proba=P))


TESTS_OF_LABELS = ("low", "high", "capital", "least", "since")


def _spoil(part, **values):
    """Change a part that does not change otherwise."""
    for name, value in values.items():
        object.__setattr__(part, name, value)


def _spoil_counts(monitor):
    _spoil(stream(monitor), past=stream(monitor).past.astype(np.float64))


def _spoil_capital(monitor):
    martingale = stream(monitor).martingale
    _spoil(martingale, capital=np.full_like(martingale.capital, np.nan))


def _spoil_bets(monitor):
    evidence = stream(monitor).label_evidence
    _spoil(evidence, capital=np.full_like(evidence.capital, np.inf))


def _spoil_bands(monitor):
    evidence = stream(monitor).label_evidence
    _spoil(evidence, low=evidence.low + 1.5)


def _spoil_tests(monitor):
    evidence = stream(monitor).label_evidence
    _spoil(evidence, **{name: vars(evidence)[name][:2] for name in TESTS_OF_LABELS})


def _spoil_since(monitor):
    evidence = stream(monitor).label_evidence
    _spoil(evidence, since=evidence.since + 7)


def _spoil_landmarks(monitor):
    monitor.scorer_.distance.landmarks = monitor.scorer_.distance.landmarks[:, :1]


def _spoil_trees(monitor):
    _spoil(monitor.reference_, n_trees=[np.full(3, 2)] * 2)


def _spoil_alarms(monitor):
    alarm = {"time": "now", "who": "me", "test": "a", "score": "b"}
    _spoil(monitor.counts_.alarms, raised=[alarm])


def _spoil_rate(monitor):
    monitor.rate = 7.0


def _spoil_history(monitor):
    _spoil(monitor.counts_.history, rows=np.full((1, 13), np.inf))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_spoil_counts, "Stream has a wrong past"),
        (_spoil_capital, "Martingale has a wrong capital"),
        (_spoil_bets, "LabelEvidence has a wrong capital"),
        (_spoil_bands, "LabelEvidence has a wrong low"),
        (_spoil_tests, "tests the labels of other classes"),
        (_spoil_since, "LabelEvidence began after its last label"),
        (_spoil_landmarks, "NearestScore has no scale"),
        (_spoil_trees, "Reference knows other items"),
        (_spoil_alarms, "Alarms has a wrong raised"),
        (_spoil_rate, "rate must lie between 0 and 1"),
        (_spoil_history, "History has a wrong rows"),
    ],
)
def test_files_that_no_monitor_could_have_written_are_refused(
    watch, tmp_path, monkeypatch, spoil, said
):
    monitor = watch()
    spoil(monitor)
    # Saving looks at the history, which cannot be shown any more; the file is what counts here.
    monkeypatch.setattr(hetcal.SupportMonitor, "frame", lambda self: None)
    with pytest.raises(ValueError, match=f"could not be loaded again.*{said}"):
        hetcal.save(monitor, tmp_path / "m.hetcal")
    monkeypatch.setattr("hetcal.persistence.file._check_readable", lambda *parts: None)
    hetcal.save(monitor, tmp_path / "m.hetcal")
    with pytest.raises(hetcal.FileFormatError, match=said):
        hetcal.load(tmp_path / "m.hetcal")


def test_merging_adds_counts_and_averages_evidence(watch, data):
    X, P = data.new.X, data.new.y_proba
    shards = [watch() for _ in range(3)]
    for number, shard in enumerate(shards):
        shard.update(X[number::3], y_proba=P[number::3], by=data.new_by[number::3])
    evidence = [np.exp(stream(shard).martingale.log_value) for shard in shards]
    whole = watch().update(X, y_proba=P)
    merged = watch()  # an empty start counts for nothing
    for shard in shards:
        merged.merge(shard)
    assert merged.n_seen_ == 400
    assert merged.groups()["seen"].tolist()[0] == 400
    assert np.exp(stream(merged).martingale.log_value) == pytest.approx(np.mean(evidence))
    assert len(merged.frame()) == 3
    assert abs(stream(merged).n_flagged - whole["flag"].sum()) <= 6
    tree = shards[0].merge(shards[1].merge(shards[2]))
    assert stream(tree).martingale.log_value == pytest.approx(stream(merged).martingale.log_value)
    np.testing.assert_array_equal(stream(tree).past, stream(merged).past)


def test_merging_needs_one_reference(watch, hybrid):
    with pytest.raises(ValueError, match="same reference"):
        watch().merge(watch(hybrid))
    for name, value in (("window", 30), ("rate", 0.02), ("fdr", 0.2), ("alarm_rate", 0.02)):
        with pytest.raises(ValueError, match=f"equal window.*{name} is"):
            watch().merge(watch(**{name: value}))


def test_wrong_labels_are_refused_before_anything_is_counted(watch, data):
    monitor = watch()
    for labels in (["nobody"] * 400, data.new.y[:3]):
        with pytest.raises(ValueError, match="labels that are not|one label per row"):
            monitor.update(data.new.X, y_proba=data.new.y_proba, y=labels)
    assert monitor.n_seen_ == 0
    assert monitor.frame().empty


def test_an_update_that_fails_counts_nothing(watch, data, monkeypatch):
    """The labels are compared last; where that fails, the items are not counted either."""
    monitor = watch()
    before = monitor.counts_

    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr(type(monitor.calibrator_), "predict_items", fail)
    with pytest.raises(MemoryError):
        monitor.update(data.new.X, y_proba=data.new.y_proba, y=data.new.y)
    assert monitor.counts_ is before
    assert (monitor.n_seen_, monitor.groups()["seen"].sum(), len(monitor.frame())) == (0, 0, 0)


def test_reset_keeps_counts(watch, data):
    monitor = feed(watch(), data.new.X + 20, data.new.y_proba)
    assert monitor.alarm_ is not None
    monitor.reset()
    assert monitor.alarm_ is None
    assert monitor.n_seen_ == 400
    assert len(monitor.frame()) == 4
    feed(monitor, data.new.X, data.new.y_proba)
    assert monitor.alarm_ is None


def test_extending_refreshes_the_reference(data):
    cal, new = data.cal, data.new
    swc = hetcal.SimilarityCalibrator().fit(cal.X, cal.y, y_proba=cal.y_proba)
    for distance, before in (("nearest", 375), ("isolation", 500), (None, 900)):
        monitor = hetcal.SupportMonitor(swc, distance=distance, rate=0.2)
        if distance is not None:
            swc.fit(cal.X, cal.y, y_proba=cal.y_proba)
            monitor.fit(cal.X, y_proba=cal.y_proba)
            monitor.update(new.X, y_proba=new.y_proba)
        assert monitor.summary()["reference"]["items"] == before
        seen, flagged = monitor.n_seen_, monitor.summary()["flagged"]
        assert (flagged > 0) == (seen > 0) == (distance is not None)
        monitor.extend(new.X, new.y, y_proba=new.y_proba)
        assert monitor.summary()["reference"]["items"] == before + 400
        assert (monitor.n_seen_, monitor.summary()["flagged"]) == (seen, flagged)
        monitor.update(new.X, y_proba=new.y_proba)


def test_an_extension_remembers_over_how_many_trees_it_counted(data, monkeypatch):
    cal, new = data.cal, data.new
    swc = hetcal.SimilarityCalibrator().fit(cal.X, cal.y, y_proba=cal.y_proba)
    monitor = hetcal.SupportMonitor(swc, distance="isolation").fit(cal.X, y_proba=cal.y_proba)
    counted = []
    kind, score = type(monitor.scorer_.distance), type(monitor.scorer_.distance).score

    def watched(self, F, n_trees, rng):
        counted.append(n_trees)
        return score(self, F, n_trees, rng)

    monkeypatch.setattr(kind, "score", watched)
    monitor.extend(new.X, new.y, y_proba=new.y_proba)
    np.testing.assert_array_equal(monitor.reference_.n_trees[1][-400:], np.concatenate(counted))


def test_an_extension_that_is_refused_changes_nothing(data):
    cal, new = data.cal, data.new
    swc = hetcal.SimilarityCalibrator().fit(cal.X, cal.y, y_proba=cal.y_proba)
    monitor = hetcal.SupportMonitor(swc).fit(cal.X, y_proba=cal.y_proba, by=data.by)
    X, y, P = new.X[:9], new.y[:9], new.y_proba[:9]
    for more in ({"by": ["a"]}, {"by": np.zeros((9, 2))}):
        with pytest.raises(ValueError, match=r"one name per item|1d array"):
            monitor.extend(X, y, y_proba=P, **more)
    for bad in (
        (X, y[:3], P),
        (X, ["nobody"] * 9, P),
        (X[:, :1], y, P),
        (X, y, P[:3]),
        (X, y, None),
    ):
        with pytest.raises(ValueError):  # noqa: PT011
            monitor.extend(bad[0], bad[1], y_proba=bad[2])
    assert len(swc.calibration_labels()) == 500
    monitor.update(new.X, y_proba=new.y_proba)
    monitor.extend(X, y, y_proba=P, by=["a"] * 9)
    assert len(swc.calibration_labels()) == 509


def test_a_calibrator_that_was_extended_elsewhere_is_noticed(data):
    cal, new = data.cal, data.new
    swc = hetcal.SimilarityCalibrator().fit(cal.X, cal.y, y_proba=cal.y_proba)
    monitor = hetcal.SupportMonitor(swc).fit()
    swc.extend(new.X, new.y, y_proba=new.y_proba)
    with pytest.raises(ValueError, match=r"SupportMonitor\.extend"):
        monitor.update(new.X, y_proba=new.y_proba)


def test_state_is_bounded(watch, data):
    monitor = watch(max_history=20)
    X, P = data.new.X[:5], data.new.y_proba[:5]
    for _ in range(60):
        monitor.update(X, y_proba=P, by=list("abcde"))
    assert len(monitor.frame()) == 20
    assert monitor.frame()["seen"].iloc[-1] == 300
    assert all(len(tail) <= 100 for tail in stream(monitor).window.tails)


def test_json_is_json(watch, data):
    monitor = feed(watch(), data.new.X, data.new.y_proba, by=data.new_by)
    facts = json.loads(monitor.to_json())
    assert facts["seen"] == 400
    assert facts["alarm"] is None
    assert facts["reference"] == {"kind": "oob", "items": 375}
    assert len(facts["groups"]) == 5


def test_the_display_shows_the_history(watch, data):
    import matplotlib.pyplot as plt

    plt.switch_backend("agg")

    monitor = feed(watch(), data.new.X + 5, data.new.y_proba)
    display = MonitorDisplay.from_monitor(monitor)
    flagged = monitor.frame()["flagged"]
    assert flagged[1:].min() > 0
    np.testing.assert_allclose(display.frame()["share_flagged"], flagged / 100)
    above, below = display.plot()
    assert "alarm at item" in above.get_title(loc="left")
    assert len(below.patches) == 4
    plt.close("all")
    with pytest.raises(ValueError, match="seen no items"):
        MonitorDisplay.from_monitor(watch())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"reference": "guess"}, "reference must be"),
        ({"distance": "luck"}, "distance must be"),
        ({"rate": 0}, "rate must lie"),
        ({"alarm_rate": 1.5}, "alarm_rate must lie"),
        ({"window": 1}, "window must be an integer"),
        ({"random_state": None}, "random_state must be"),
    ],
)
def test_wrong_parameters_are_said(swc, options, words):
    with pytest.raises(ValueError, match=words):
        hetcal.SupportMonitor(swc, **options).fit()


def test_wrong_input_is_said(swc, data, watch):
    cal = data.cal
    platt = hetcal.PlattScaling().fit(None, cal.y, y_proba=cal.y_proba)
    with pytest.raises(TypeError, match="PlattScaling has none"):
        hetcal.SupportMonitor(platt).fit()
    with pytest.raises(ValueError, match="500 calibration items"):
        hetcal.SupportMonitor(swc).fit(cal.X[:100], y_proba=cal.y_proba[:100])
    with pytest.raises(ValueError, match="in their order"):
        hetcal.SupportMonitor(swc).fit(cal.X[::-1], y_proba=cal.y_proba[::-1])
    with pytest.raises(ValueError, match="one name per item"):
        watch().update(cal.X, y_proba=cal.y_proba, by=["a"])
    with pytest.raises(ValueError, match="needs features"):
        hetcal.SupportMonitor(swc, distance="nearest").fit()
    few = hetcal.SimilarityCalibrator().fit(cal.X[:12], cal.y[:12], y_proba=cal.y_proba[:12])
    with pytest.raises(ValueError, match="at least 20"):
        hetcal.SupportMonitor(few).fit()


def test_groups_share_the_rate_of_false_alarms(watch, data):
    """One item at a time: a name alarms when its evidence passes the bound, and not before."""
    monitor = watch(max_groups=20, alarm_rate=0.05)
    moved = data.new.X.copy()
    moved[:, -1] += 4
    south = np.flatnonzero(data.new_by == "south")
    bound = np.log10(2 * 20 / 0.05)
    between = 0
    for row in south[:80]:
        item = slice(row, row + 1)
        monitor.update(moved[item], y_proba=data.new.y_proba[item], by=data.new_by[item])
        named = monitor.groups().query("kind == 'by'").set_index("name").loc["south"]
        assert named["alarm"] == (named["log10_evidence"] >= bound)
        between += bool(monitor.summary()["log10_bound"] < named["log10_evidence"] < bound)
        if named["alarm"]:
            break
    assert named["alarm"]
    assert between  # it had passed the bound of all items before
    assert monitor.summary()["log10_bound"] == pytest.approx(np.log10(2 / 0.05))


@pytest.mark.parametrize("distance", ["nearest", None])
def test_scores_share_the_rate_of_the_window(watch, data, distance):
    monitor = watch(distance=distance, window=50)
    monitor.update(data.new.X[:50], y_proba=data.new.y_proba[:50])
    largest = max(tail.sum() for tail in stream(monitor).window.tails)
    rate = monitor.alarm_rate / 2 / len(monitor.scores_)
    assert monitor.frame()["window"][0] == pytest.approx(
        largest / window.bound(50, monitor.horizon, rate)
    )


def test_labels_are_compared_with_those_of_the_calibration_items(watch, data):
    monitor = watch()
    X, P, y = data.new.X[:100], data.new.y_proba[:100], data.new.y[:100]
    monitor.update(X, y_proba=P, y=y)
    swc = monitor.calibrator_

    def excess(Q, labels):
        """Return the mean surplus of right top labels, and the variance of that mean."""
        top = Q.max(axis=1)
        right = swc.classes_[Q.argmax(axis=1)] == labels
        return np.mean(right - top), np.sum(top * (1 - top)) / len(Q) ** 2

    new = excess(swc.predict_proba(X, y_proba=P), y)
    old = excess(swc.out_of_sample_proba_, data.cal.y)
    z = (new[0] - old[0]) / np.sqrt(new[1] + old[1])
    assert monitor.summary()["labels"]["accuracy"]["z"] == pytest.approx(z)
    assert monitor.frame()["accuracy_z"][0] == pytest.approx(z)


@pytest.mark.parametrize("distance", ["nearest", "isolation", None])
def test_a_monitor_forgets_with_its_calibrator(data, distance):
    cal, new = data.cal, data.new
    swc = hetcal.SimilarityCalibrator().fit(cal.X, cal.y, y_proba=cal.y_proba)
    monitor = hetcal.SupportMonitor(swc, distance=distance)
    monitor.fit(cal.X, y_proba=cal.y_proba, by=data.by)
    before = monitor.reference_
    monitor.extend(new.X, new.y, y_proba=new.y_proba, window=600)  # 500 and 400, less the oldest
    reference, stay = monitor.reference_, before.calibration_rows() >= 300
    assert reference.scores.shape[1] == stay.sum() + 400
    np.testing.assert_array_equal(reference.by[: stay.sum()], before.by[stay])
    np.testing.assert_array_equal(reference.top[: stay.sum()], before.top[stay])
    support = swc.out_of_sample_support()
    assert len(support) == 600
    np.testing.assert_array_equal(reference.scores[0], support[reference.calibration_rows()])
    np.testing.assert_array_equal(
        reference.calibration_rows()[: stay.sum()], before.calibration_rows()[stay] - 300
    )
    monitor.update(new.X, y_proba=new.y_proba)


def test_items_that_were_replaced_elsewhere_by_as_many_are_noticed(data):
    cal, new = data.cal, data.new
    swc = hetcal.SimilarityCalibrator().fit(cal.X, cal.y, y_proba=cal.y_proba)
    monitor = hetcal.SupportMonitor(swc).fit()
    swc.extend(new.X, new.y, y_proba=new.y_proba, window=500)
    with pytest.raises(ValueError, match=r"SupportMonitor\.extend"):
        monitor.update(new.X, y_proba=new.y_proba)


def test_the_history_has_expected_and_observed_scores_of_each_update(data):
    cal, new = data.cal, data.new
    swc = hetcal.SimilarityCalibrator().fit(cal.X, cal.y, y_proba=cal.y_proba)
    monitor = hetcal.SupportMonitor(swc, max_history=3).fit()
    Q = swc.predict_proba(new.X, y_proba=new.y_proba)
    hit = Q.argmax(axis=1) == swc.classes_.searchsorted(new.y)

    def update(rows, y=None):
        monitor.update(new.X[rows], y_proba=new.y_proba[rows], y=y)

    def usual(monitor):
        sums = monitor.counts_.streams.all.usual
        return sums.excess / sums.n

    first, second = slice(0, 100), slice(100, 150)
    update(first)
    monitor.update_labels(new.X[first], new.y[first], y_proba=new.y_proba[first])
    update(second, new.y[second])
    for rows in (first, second):
        update(rows)
    table = monitor.frame()
    # Labels that came between two updates belong to the later; the oldest row is gone.
    together = slice(0, 150)
    assert np.isnan(table["accuracy"][0])  # of which labels is not known any more
    assert np.isnan(table["accuracy"][2])
    monitor = hetcal.SupportMonitor(swc).fit()
    update(first)
    monitor.update_labels(new.X[first], new.y[first], y_proba=new.y_proba[first])
    update(second, new.y[second])
    row = monitor.frame().iloc[1]
    assert row["accuracy"] == pytest.approx(hit[together].mean())
    expected = Q[together].max(axis=1).mean(), (1 - (Q[together] ** 2).sum(axis=1)).mean()
    assert row["expected_accuracy"] == pytest.approx(expected[0] + usual(monitor)[0])
    assert row["expected_brier"] == pytest.approx(expected[1] + usual(monitor)[1])
    assert row["log10_label_evidence"] == pytest.approx(
        monitor.summary()["labels"]["log10_evidence"]
    )
    monitor.extend(new.X, new.y, y_proba=new.y_proba)  # labels are counted anew
    update(second, new.y[second])
    Q = swc.predict_proba(new.X[second], y_proba=new.y_proba[second])
    expected = Q.max(axis=1).mean() + usual(monitor)[0]
    assert monitor.frame()["expected_accuracy"].iloc[-1] == pytest.approx(expected)
