"""What ``LocallyCalibratedClassifier.fit`` passes on, by itself and with metadata routing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.datasets import make_classification
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold, cross_validate
from sklearn.naive_bayes import GaussianNB

from hetcal import LocallyCalibratedClassifier, PlattScaling

X, Y = make_classification(120, 4, n_informative=3, n_redundant=1, random_state=0)
WEIGHT = np.linspace(0.5, 3, 120)
GROUPS = np.arange(120) // 4
SEEN: list[dict] = []


class Listening(LogisticRegression):
    """A model that notes what its fit was given; scikit-learn clones it, so in one list."""

    def fit(self, X, y, sample_weight=None, price=None, note=None, table=None):
        SEEN.append({"rows": X.shape[0], "weight": sample_weight, "price": price} | {"note": note})
        SEEN[-1]["table"] = table
        return super().fit(X, y, sample_weight=sample_weight)


class ListeningPlatt(PlattScaling):
    """A calibrator that notes weights and groups."""

    def fit(self, X, y, *, y_proba=None, logits=None, sample_weight=None, groups=None):
        SEEN.append({"weight": sample_weight, "groups": groups})
        return super().fit(X, y, y_proba=y_proba, logits=logits, sample_weight=sample_weight)


@pytest.fixture(autouse=True)
def _forget():
    SEEN.clear()


@pytest.mark.parametrize("kind", [list, np.asarray])
def test_fit_parameters_reach_the_model_cut_to_its_rows(kind):
    table = sparse.csr_matrix(np.arange(120.0)[:, None])
    clf = LocallyCalibratedClassifier(Listening(), "platt", cv=KFold(3))
    clf.fit(X, Y, price=kind(range(120)), note="as it is", table=table)
    assert [seen["rows"] for seen in SEEN] == [80, 80, 80, 120]
    assert list(SEEN[0]["price"]) == list(range(40, 120))
    assert SEEN[1]["table"].toarray()[:, 0].tolist() == [*range(40), *range(80, 120)]
    assert list(SEEN[3]["price"]) == list(range(120))
    assert {seen["note"] for seen in SEEN} == {"as it is"}


def test_fit_parameters_of_a_model_that_is_not_fitted_are_refused():
    frozen = FrozenEstimator(GaussianNB().fit(X, Y))
    with pytest.raises(TypeError, match="'price' for a classifier that is not fitted here"):
        LocallyCalibratedClassifier(frozen, "platt").fit(X, Y, price=1.0)


@pytest.mark.parametrize("cv", [13, KFold(13)])
def test_more_folds_than_members_of_a_class(cv):
    rare = np.where(np.arange(120) < 12, "rare", np.where(Y == 1, "b", "a"))
    clf = LocallyCalibratedClassifier(GaussianNB(), "platt", cv=cv)
    with pytest.raises(ValueError, match=r"Requesting 13-fold .* class 'rare' has 12 .*cv=12"):
        clf.fit(X, rare)


def test_routed_weights_reach_the_model_that_requests_them():
    asking = Listening().set_fit_request
    plain = LocallyCalibratedClassifier(Listening(), "platt").fit(X, Y, sample_weight=WEIGHT)
    with config_context(enable_metadata_routing=True):
        clf = LocallyCalibratedClassifier(asking(sample_weight=True), "platt")
        clf.fit(X, Y, sample_weight=WEIGHT)
    np.testing.assert_array_equal(clf.predict_proba(X), plain.predict_proba(X))


def test_routed_weights_reach_the_calibrator_alone_where_the_model_declines():
    with config_context(enable_metadata_routing=True):
        model = Listening().set_fit_request(sample_weight=False, price=True)
        clf = LocallyCalibratedClassifier(model, ListeningPlatt())
        clf.fit(X, Y, sample_weight=WEIGHT, price=WEIGHT)
    *models, calibrator = SEEN
    assert all(seen["weight"] is None and seen["price"] is not None for seen in SEEN[:5])
    assert len(models) == 6
    np.testing.assert_array_equal(calibrator["weight"], WEIGHT)


def test_routing_asks_what_nobody_has_said():
    with (
        config_context(enable_metadata_routing=True),
        pytest.raises(UnsetMetadataPassedError, match="sample_weight"),
    ):
        LocallyCalibratedClassifier(Listening(), "platt").fit(X, Y, sample_weight=WEIGHT)


def test_groups_and_weights_are_routed_through_cross_validation():
    with config_context(enable_metadata_routing=True):
        model = Listening().set_fit_request(sample_weight=True)
        clf = LocallyCalibratedClassifier(model, ListeningPlatt())
        clf.set_fit_request(groups=True, sample_weight=True)
        clf.set_score_request(sample_weight=False)
        metadata = {"groups": GROUPS, "sample_weight": WEIGHT}
        cross_validate(clf, X, Y, cv=GroupKFold(2), params=metadata)
    [first, second] = [seen for seen in SEEN if "groups" in seen]
    for seen in (first, second):
        assert seen["groups"].shape == seen["weight"].shape == (60,)
        assert np.unique(seen["groups"]).shape == (15,)
