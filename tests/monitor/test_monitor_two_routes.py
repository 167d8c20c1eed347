"""Counts and evidence of a monitor by two routes: parts and wholes, labels now and later."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from hetcal.monitor.changes import feature_changes
from hetcal.monitor.conformal import discoveries
from hetcal.monitor.expected import Expectation
from hetcal.monitor.in_words import changes_sentences
from hetcal.monitor.label_evidence import LabelEvidence, bounded_excesses
from hetcal.monitor.labels import LabelSums


def test_evidence_begins_with_the_label_after_which_capital_only_grew():
    """From the 31st on all labels are of one class; that one finds both sides alike."""
    codes = np.append(np.tile([1, 0], 15), np.ones(40, dtype=int))
    evidence = LabelEvidence.start([LabelSums.empty(2)])
    after, _ = evidence.after(bounded_excesses([np.full((70, 2), 0.5)], codes))
    assert after.found(["a", "b"])["since"] == 32


def test_each_source_is_tested_on_its_own():
    rng = np.random.default_rng(0)
    sources, codes = rng.dirichlet(np.ones(3), (2, 20)), rng.integers(0, 3, 20)
    np.testing.assert_array_equal(
        bounded_excesses(sources, codes),
        np.vstack([bounded_excesses([one], codes) for one in sources]),
    )


def test_who_has_seen_nothing_adds_nothing_to_the_evidence(watch, data):
    shard = watch().shard(0, 2)
    shard.update(data.new.X + 4.0, y_proba=data.new.y_proba, y=data.new.y)
    own = shard.counts_.streams.all
    whole = watch().merge(shard).counts_.streams.all
    assert own.martingale.log_value > 1
    for mine, theirs in (
        (whole.martingale, own.martingale),
        (whole.label_evidence, own.label_evidence),
    ):
        assert mine.log_value == pytest.approx(theirs.log_value)


def test_discoveries_follow_their_own_rate(watch, data):
    X, P = data.new.X + np.linspace(0, 3, len(data.new.X))[:, None], data.new.y_proba
    for rate, fdr in ((0.01, 0.5), (0.5, 0.01)):
        items = watch(rate=rate, fdr=fdr).update(X, y_proba=P)
        assert items["flag"].tolist() == (items["p"] <= rate).tolist()
        assert items["discovery"].tolist() == discoveries(items["p"], fdr).tolist()
        assert not items["flag"].equals(items["discovery"])


def test_labels_that_are_missing_are_as_if_their_rows_had_none(watch, data):
    """Known labels count with the probabilities and the sub-population of their own rows."""
    X, P, names = data.new.X, data.new.y_proba, data.new_by
    known = np.arange(len(X)) % 3 == 2
    some = np.where(known, data.new.y.astype(object), None)
    together, later = watch(), watch()
    together.update(X, y_proba=P, y=some, by=names)
    later.update(X, y_proba=P, by=names)
    later.update_labels(X[known], data.new.y[known], y_proba=P[known], by=names[known])
    assert together.summary()["labels"] == later.summary()["labels"]
    assert together.groups().equals(later.groups())


def expectation():
    rng = np.random.default_rng(0)
    Q = rng.dirichlet(np.ones(3), 200)
    codes = (rng.random((200, 1)) >= Q.cumsum(axis=1)[:, :-1]).sum(axis=1)
    classes = np.array(list("abc"))
    return Expectation(
        SimpleNamespace(
            out_of_sample_proba_=Q, classes_=classes, calibration_labels=lambda: classes[codes]
        )
    )


def test_expected_confusions_are_of_predicted_and_true_classes():
    Q = np.random.default_rng(1).dirichlet([5, 2, 1], 60)
    expected = expectation()
    table = expected.performance(expected.sums(Q, 0), 0.95, 0.01).confusion
    np.testing.assert_allclose(table.sum(axis=0), Q.sum(axis=0))
    predicted = np.bincount(Q.argmax(axis=1), minlength=3)
    np.testing.assert_allclose(table.sum(axis=1), predicted)


def test_intervals_of_what_is_expected_widen_with_the_level():
    expected = expectation()
    sums = expected.sums(np.random.default_rng(1).dirichlet(np.ones(3), 60), 0)
    half, usual = (expected.performance(sums, level, 0.01).brier for level in (0.5, 0.95))
    assert half.value == usual.value
    assert (usual.high - usual.low) / (half.high - half.low) == pytest.approx(1.96 / 0.6745, 1e-3)


def test_a_few_flags_of_few_items_are_no_reason_for_distrust():
    expected, rng = expectation(), np.random.default_rng(1)
    for n, distrusted in ((20, False), (2000, True)):
        sums = expected.sums(rng.dirichlet(np.ones(3), n), n // 20)
        assert (expected.performance(sums, 0.95, 0.01).note is not None) == distrusted


def test_new_calibration_items_join_the_reference_of_their_sub_population(watch, swc, data):
    monitor = watch(copy.copy(swc))
    before = monitor.groups().set_index("name")["reference"]
    X, y, P, names = (part[:90] for part in (data.new.X, data.new.y, data.new.y_proba, data.new_by))
    monitor.extend(X, y, y_proba=P, by=names)
    after = monitor.groups().set_index("name")["reference"]
    for name in ("north", "south"):
        assert after[name] - before[name] == (names == name).sum()


def test_shares_of_predicted_classes_are_those_of_the_rows():
    changes = pd.DataFrame({"feature": [], "distance": []})
    groups = [
        {"kind": "class", "name": "a", "reference": 900, "seen": 20},
        {"kind": "class", "name": "b", "reference": 100, "seen": 20},
        {"kind": "all", "name": "all items", "reference": 1000, "seen": 40},
    ]
    said = changes_sentences(changes, groups)
    assert said[0].split(" is the ")[0] in ("a", "b")
    assert "class of 50% of the rows" in said[0]
    assert said[0].endswith(("10% before.", "90% before."))


def test_of_flagged_rows_those_count_that_are_flagged_among_themselves():
    class Monitor:
        rate = 0.1

        def p_values(self, X, y_proba):
            low = X["x"].to_numpy() > 4  # 5 to 9; of these alone, only 6 to 9
            return np.where(low & ((X["x"].to_numpy() != 5) | (len(X) > 5)), 0.0, 1.0)

    X, before = pd.DataFrame({"x": np.arange(10.0)}), pd.DataFrame({"x": np.array([1.0, 9.0])})
    table = feature_changes(Monitor(), X, before, {"y_proba": np.zeros((10, 2))}, seed=0)
    drawn = np.random.default_rng(0).integers(0, 2, 5)[1:]  # 0: a usual value
    assert table["recovered"][0] == np.mean(drawn == 0)
